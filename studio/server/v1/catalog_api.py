"""What speaks under `/v1`: the models, and the voices, which programs may add to and remove from.

Clients differ in where they look: OpenAI's read `/models`; Open WebUI reads `models` of
`/audio/models` and `voices` of `/audio/voices`, as objects of `id` and `name`; vLLM-Omni's read
`uploaded_voices` and send samples to `/audio/voices`; Home Assistant's read `data`.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, File, Form, UploadFile
from pydantic import BaseModel, Field

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import Backend
from studio.backends.registry import offer_of
from studio.errors import BadInput, NotFound, about
from studio.server.policies import UPLOAD_BYTES, DiskUse, RequestClass, StudioDep, speech_policy
from studio.server.transfers import store_upload
from studio.server.v1.speech_bodies import backend_for
from studio.services.studio import Studio
from studio.services.voice_library import NewSample, TrimSpec
from studio.voices.speaker import Speaker


class ModelParam(BaseModel):
    """A parameter of a backend."""

    name: str
    minimum: float
    maximum: float
    default: float
    whole: bool = Field(description="Whether it takes whole numbers only.")
    help: str


class ModelAbilities(BaseModel):
    """What a backend can do.

    With `cloning` or `builtin_voice` it takes `ref_audio`; without `cloning` a recording only sets
    the pitch of the voice.
    """

    cloning: bool = Field(description="Speaks in the voice of a recording.")
    builtin_voice: bool = Field(description="Takes any name as a voice.")
    presets: list[str] = Field(description="Voices of its own, for task_type CustomVoice.")
    described_voices: bool = Field(description="Takes task_type VoiceDesign.")
    instructions: bool = Field(description="Follows instructions on how a voice speaks a text.")
    languages: dict[str, str] = Field(description="Names by code; empty where it has one only.")
    tags: list[str] = Field(description="Sounds that it performs if a text has them in brackets.")
    streaming: bool = Field(description="Sends audio before the line is finished.")
    params: list[ModelParam] = Field(description="What `params` of a request may hold.")
    sample_rate_hz: int = Field(description="Of the audio sent, whatever the backend's own.")
    max_chars: int = Field(description="Longer texts are split into pieces of that length.")


class ModelCard(BaseModel):
    """A backend."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "tableread"
    title: str
    capabilities: ModelAbilities


class ModelName(BaseModel):
    """A backend's id and title."""

    id: str
    name: str


class ModelList(BaseModel):
    """The backends that can speak now; `models` are the same, for clients that look there."""

    object: Literal["list"] = "list"
    data: list[ModelCard]
    models: list[ModelName]


class VoiceName(BaseModel):
    """A voice's id and name."""

    id: str
    name: str


class VoiceCard(BaseModel):
    """A voice; `kind` is `speaker` for the library's and `preset` for a backend's."""

    id: str
    name: str
    kind: Literal["speaker", "preset"]
    languages: list[str]


class UploadedVoice(BaseModel):
    """A speaker with a sample, as vLLM-Omni describes an uploaded voice."""

    name: str
    consent: str | None = Field(description="When its owner agreed, in UTC.")
    created_at: int = Field(description="Seconds since 1970.")
    file_size: int
    mime_type: Literal["audio/wav"] = "audio/wav"
    ref_text: str | None = None
    speaker_description: str | None = None


class VoiceList(BaseModel):
    """The voices of a backend, and of the library."""

    voices: list[VoiceName] | list[str]
    data: list[VoiceCard]
    uploaded_voices: list[UploadedVoice]


class VoiceAdded(BaseModel):
    """A voice that was added."""

    success: Literal[True] = True
    voice: UploadedVoice


class VoiceRemoved(BaseModel):
    """A voice that was removed."""

    success: Literal[True] = True
    message: str


catalog_routes = APIRouter()

_FALSE = frozenset({"", "0", "false", "no", "none", "null", "off"})


@catalog_routes.get("/models")
@speech_policy()
def models(studio: StudioDep) -> ModelList:
    """The backends that can speak now, without a download."""
    cards = [
        model_card(backend) for backend in studio.backends().values() if offer_of(backend).ready
    ]
    names = [ModelName(id=card.id, name=card.title) for card in cards]
    return ModelList(data=cards, models=names)


@catalog_routes.get("/audio/models")
@speech_policy()
def audio_models(studio: StudioDep) -> ModelList:
    """The same, at the address where Open WebUI looks for them."""
    return models(studio)


@catalog_routes.get("/models/{model_id:path}")
@speech_policy()
def model(studio: StudioDep, model_id: str) -> ModelCard:
    """One backend, by its name or one of OpenAI's."""
    card = model_card(backend_for(studio, model_id))
    return card.model_copy(update={"id": model_id})


@catalog_routes.get("/audio/voices")
@speech_policy()
def voices(studio: StudioDep, model: str | None = None, *, legacy: bool = False) -> VoiceList:
    """The library's speakers, and the presets of a backend.

    With `legacy`, `voices` holds names only.
    """
    cards = voice_cards(studio, backend_for(studio, model))
    names = [VoiceName(id=card.id, name=card.name) for card in cards]
    uploaded = [_describe(one) for one in studio.speakers.list() if one.sample is not None]
    return VoiceList(
        voices=[card.id for card in cards] if legacy else names,
        data=cards,
        uploaded_voices=[one for one in uploaded if one is not None],
    )


@catalog_routes.post("/audio/voices")
@speech_policy(
    max_body_bytes=UPLOAD_BYTES,
    request_class=RequestClass.LONG,
    disk=DiskUse.FILL,
    is_upload=True,
)
def add_voice(
    studio: StudioDep,
    audio_sample: Annotated[UploadFile, File(description="A recording of the voice.")],
    name: Annotated[str, Form(min_length=1, max_length=200)],
    consent: Annotated[
        str,
        Form(max_length=500, description="That the voice's owner agreed; no may not stand here."),
    ] = "",
    ref_text: Annotated[str | None, Form(max_length=5_000)] = None,
    speaker_description: Annotated[str | None, Form(max_length=2_000)] = None,
) -> VoiceAdded:
    """Add a voice from a recording, with its owner's consent."""
    studio.speakers.require_open()
    if consent.strip().casefold() in _FALSE:
        with about("consent"):
            raise BadInput("consent is missing: say that the voice is yours, or its owner agreed.")
    with about("audio_sample"):
        upload_id = store_upload(studio, audio_sample, name)
    take = NewSample(TrimSpec(upload_id), consent=True, transcript=ref_text or None)
    voice = _describe(studio.voices.add(name, take, description=speaker_description or None))
    assert voice is not None, "it was given a sample"
    return VoiceAdded(voice=voice)


@catalog_routes.delete("/audio/voices/{name}")
@speech_policy(disk=DiskUse.FREE)
def remove_voice(studio: StudioDep, name: str) -> VoiceRemoved:
    """Move a speaker of the library to the trash."""
    studio.speakers.require_open()
    speaker = studio.speakers.find(name)
    if speaker is None:
        raise NotFound(f"There is no speaker “{name[:100]}” in the library.")
    studio.speakers.remove(speaker.name)
    return VoiceRemoved(message=f"{speaker.name} is in the trash for 30 days.")


def model_card(backend: Backend) -> ModelCard:
    """What a backend is and can do."""
    can = backend.capabilities
    same = ("cloning", "builtin_voice", "described_voices", "instructions", "streaming")
    abilities = ModelAbilities(
        **{name: getattr(can, name) for name in (*same, "max_chars")},
        presets=[preset.preset_id for preset in can.presets],
        languages=dict(can.languages),
        tags=sorted(can.tags),
        params=[ModelParam(**asdict(one), whole=one.is_whole) for one in can.line_params],
        sample_rate_hz=STUDIO_RATE_HZ,
    )
    return ModelCard(id=backend.name, created=0, title=backend.title, capabilities=abilities)


def voice_cards(studio: Studio, backend: Backend) -> list[VoiceCard]:
    """The library's speakers and the backend's presets."""
    cards = []
    for speaker in studio.speakers.list():
        languages = [speaker.language] if speaker.language else []
        cards.append(
            VoiceCard(id=speaker.name, name=speaker.name, kind="speaker", languages=languages)
        )
    for one in backend.capabilities.presets:
        languages = list(one.languages)
        cards.append(
            VoiceCard(id=one.preset_id, name=one.label, kind="preset", languages=languages)
        )
    return cards


def _describe(speaker: Speaker) -> UploadedVoice | None:
    """A speaker as vLLM-Omni describes it; None without a sample that is there."""
    try:
        found = speaker.sample.stat() if speaker.sample else None
    except OSError:  # its file is missing, of which the library's problems tell
        found = None
    if found is None:
        return None
    agreed = speaker.consent_at
    return UploadedVoice(
        name=speaker.name,
        consent=agreed,
        created_at=int(datetime.fromisoformat(agreed).timestamp() if agreed else found.st_mtime),
        file_size=found.st_size,
        ref_text=speaker.transcript,
        speaker_description=speaker.description,
    )
