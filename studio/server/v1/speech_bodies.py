"""A speech request: its body, and the backend and voice that it names.

Names and shapes are OpenAI's and vLLM-Omni's, not the studio's. A voice is a speaker of the
library, a preset of the backend, or a recording in the request.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from studio.audio.clip import Clip
from studio.audio.decode import DecodeLimits
from studio.audio.encode import MAX_SPEED, MIN_SPEED
from studio.audio.formats import AudioFormat
from studio.audio.guarded_decode import decode_guarded
from studio.audio.timeline import MAX_PACE
from studio.backends.base import Backend, canonical_name
from studio.backends.registry import offer_of
from studio.backends.voice_names import VoiceNames
from studio.dialog.attributes import MAX_PARAMS, MAX_SEED
from studio.dialog.gaps import MAX_GAP_S, NATURAL_GAP_S
from studio.dialog.model import ParamValue, clean_name
from studio.dialog.pronunciation import MAX_PRONUNCIATIONS
from studio.engine.job import MAX_TRIES
from studio.errors import BadInput, EngineBusy, ModelUnavailable, NotFound, SampleRejected, about
from studio.project.ops import PronunciationFields
from studio.server.transfers import LoudnessChoice
from studio.server.v1.timing_bodies import Granularity
from studio.services.studio import Studio
from studio.storage.json_bounds import BoundedModel, cut_names
from studio.voices.cast import Cast
from studio.voices.samples import MAX_SAMPLE_S, MIN_SAMPLE_S
from studio.voices.speaker import Sample, Voice

MAX_INPUT_CHARS = 20_000
_MAX_SPEAKERS = 1_000
MAX_REFERENCE_CHARS = 16_000_000
"""A data URL of 12 MB of audio, which is a minute of uncompressed stereo."""

Speed = Annotated[float, Field(ge=MIN_SPEED, le=MAX_SPEED, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED, strict=True)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


Format = Annotated[
    AudioFormat,
    BeforeValidator(lambda one: one.lower() or "mp3" if isinstance(one, str) else one),
]
"""A format in small letters or capitals; nothing is OpenAI's default."""


class VoiceId(BaseModel):
    """A voice's id as an object, which OpenAI's API allows."""

    id: Name


_PARAMS_HELP = "The engine's parameters, by the names and in the ranges of GET /v1/models."
Params = Annotated[dict[str, Any], Field(max_length=MAX_PARAMS)]

OTHERS_FIELDS = frozenset((
    "allowed_custom_voice", "backend", "background_prompt", "batch_size", "chunk_method",
    "download_format", "extra_params", "initial_codec_chunk_frames", "lang_code", "max_chunk_len",
    "max_new_tokens", "metadata", "n", "normalization_options", "non_streaming_mode",
    "output_format", "prompt", "return_download_link", "return_timestamps", "sample_rate",
    "speaker_embedding", "stream", "stream_options", "streaming_strategy", "user",
    "voice_settings", "volume_multiplier", "x_vector_only_mode",
))  # fmt: skip
"""What clients of other speech servers send along; it is ignored."""


class RequestFields(BoundedModel):
    """A request in which null means the same as nothing."""

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value is not None}


class SpeechBody(RequestFields):
    """One text to speak; the engine's parameters may stand beside the fields listed here."""

    model_config = ConfigDict(extra="allow")

    input: str = Field(min_length=1, max_length=MAX_INPUT_CHARS, description="The text.")
    model: Name | None = Field(
        None,
        description="A backend's name; `tts-1`, `tts-1-hd`, `gpt-4o-mini-tts`, dated or not, or "
        "none mean the studio's own choice.",
    )
    voice: Name | VoiceId | None = Field(
        None,
        description="A voice of GET /v1/audio/voices, or one of OpenAI's; any name with "
        "`TABLEREAD_ANY_VOICE`.",
    )
    response_format: Format = Field(AudioFormat.MP3, description="`pcm` is s16le, mono, 24 kHz.")
    speed: Speed = Field(1.0, description="At the same pitch.")
    instructions: str | None = Field(
        None, max_length=5_000, description="How to speak, or what the voice is like."
    )
    stream_format: Literal["audio", "sse"] = Field(
        "audio", description="The bytes of the audio, or events that hold them."
    )
    language: str | None = Field(None, max_length=100, description="A code or an English name.")
    ref_audio: str | None = Field(
        None, max_length=MAX_REFERENCE_CHARS, description="A recording as a base64 data URL."
    )
    ref_text: str | None = Field(None, max_length=5_000, description="What the recording says.")
    task_type: Literal["Base", "CustomVoice", "VoiceDesign"] | None = Field(
        None, description="As in vLLM-Omni."
    )
    seed: Seed | None = Field(None, description="A whole number, for the same take again.")
    timestamp_granularities: list[Granularity] = Field(
        default_factory=list,
        max_length=2,
        description="With stream_format sse: the last event says when each is said.",
    )
    params: Params = Field(default_factory=dict, description=_PARAMS_HELP)

    @model_validator(mode="after")
    def _check_timestamps(self) -> SpeechBody:
        if self.timestamp_granularities and self.stream_format != "sse":
            raise ValueError("timestamp_granularities needs stream_format sse")
        return self

    def check_params(self, backend: Backend) -> dict[str, ParamValue]:
        """The engine's parameters, wherever in the request they stand, as it checks them."""
        check = partial(backend.capabilities.check_params, backend.title)
        extra = {k: v for k, v in (self.model_extra or {}).items() if k not in OTHERS_FIELDS}
        with about("params"):
            params = check(self.params)
        return check(extra) | params

    @property
    def voice_name(self) -> str | None:
        return self.voice.id if isinstance(self.voice, VoiceId) else self.voice


class CharacterFields(BoundedModel):
    """What the lines of a character have where they say nothing themselves."""

    model_config = ConfigDict(extra="forbid")

    params: Params = Field(default_factory=dict, description=_PARAMS_HELP)
    level_db: float = Field(
        0.0, ge=-30, le=12, allow_inf_nan=False, description="Added to the level of its lines."
    )
    pan: float = Field(
        0.0,
        ge=-1,
        le=1,
        allow_inf_nan=False,
        description="From -1, left, to 1, right; the audio is stereo if any line is panned.",
    )


class DialogBody(RequestFields):
    """A dialog to render: script text, or items as the studio's JSON files have them."""

    model_config = ConfigDict(extra="forbid")

    input: str | Annotated[list[dict[str, Any]], Field(fail_fast=True)] = Field(
        description="Script text, or a list of items."
    )
    model: Name | None = Field(None, description="As for speech.")
    voices: Annotated[dict[str, Name], cut_names(_MAX_SPEAKERS)] = Field(
        default_factory=dict,
        max_length=_MAX_SPEAKERS,
        description="Voices by the name in the script.",
    )
    seed: Seed | None = Field(None, description="For lines without one.")
    params: Params = Field(
        default_factory=dict, description=f"For lines without them. {_PARAMS_HELP}"
    )
    characters: Annotated[dict[str, CharacterFields], cut_names(_MAX_SPEAKERS)] = Field(
        default_factory=dict,
        max_length=_MAX_SPEAKERS,
        description="Settings by the name in the script: `params`, `level_db`, "
        "from -30 to 12, and `pan`, from -1, left, to 1, right.",
    )
    pronunciations: list[PronunciationFields] = Field(
        default_factory=list,
        max_length=MAX_PRONUNCIATIONS,
        fail_fast=True,
        description="How words are said; nothing else of the dialog changes.",
    )
    loudness: LoudnessChoice = Field(
        "rendered",
        description="Of the finished audio in every format: a level by its name, or in LUFS.",
    )
    even_voices: bool = Field(
        False, strict=True, description="Bring all speakers to one loudness first."
    )
    gap_s: float = Field(
        0.0,
        ge=0,
        le=MAX_GAP_S,
        description="Silence between two lines, in seconds, with a natural spread, and three times "
        "as long before a section; an item's own `gap_s` is exact. The page's new projects "
        f"have {NATURAL_GAP_S:g}.",
    )
    fit: bool = Field(
        False,
        strict=True,
        description="Of subtitles: each line begins when the text says, and what is too long for "
        f"its time is spoken up to {MAX_PACE:g} times as fast. An item's own `start_s`, in seconds "
        "from the start, does the same.",
    )
    tries: int = Field(
        1,
        strict=True,
        ge=1,
        le=MAX_TRIES,
        description="How often a line with quality issues is spoken at most; the one with the "
        "lowest score is used.",
    )
    stream: bool = Field(False, description="Respond with the progress events of the render.")


class DialogFailure(BaseModel):
    """A line that could not be spoken."""

    segment: int
    line: int
    message: str


class DialogDoubt(BaseModel):
    """A spoken line with quality issues: their kinds, and a message about them."""

    segment: int
    line: int
    kinds: list[str]
    message: str


class DialogTry(BaseModel):
    """One of several tries of a segment; its audio is at `…/segments/{segment}/tries/{number}`."""

    segment: int
    line: int
    number: int = Field(description="From 1, in the order in which they were spoken.")
    seed: int | None
    score: float = Field(
        description="Of words, voice, ends, silence and loudness; 0 is without a fault."
    )
    kinds: list[str]
    message: str
    used: bool


class DialogTimestamps(BaseModel):
    """When a segment was planned, queued, started, generated and saved, or failed."""

    segment: int
    line: int
    at_s: dict[str, float] = Field(description="Seconds since the render started, by step.")


class DialogNotice(BaseModel):
    """A remark about how the dialog was read or is spoken; line 0 is the whole."""

    line: int
    message: str


class DialogCard(BaseModel):
    """The current state of a dialog's render."""

    id: str
    object: Literal["dialog"] = "dialog"
    status: Literal["running", "done", "cancelled"]
    model: str
    lines: int
    segments: int
    finished: int
    audio_s: float
    device_busy_s: float = Field(
        description="Seconds for which the device worked while a line was being spoken."
    )
    failed: list[DialogFailure]
    doubtful: list[DialogDoubt]
    tries: list[DialogTry] = Field(description="Of the segments that were spoken several times.")
    timestamps: list[DialogTimestamps] = Field(description="Empty until the render has ended.")
    notices: list[DialogNotice] = Field(
        description="What was left out of the text, and what the voices can't do."
    )


class DialogDeleted(BaseModel):
    """A render that was stopped and deleted."""

    id: str
    object: Literal["dialog.deleted"] = "dialog.deleted"
    deleted: Literal[True] = True


_LIMITS = DecodeLimits(max_bytes=12_000_000, max_duration_s=120.0)
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*;base64,", re.ASCII)
_NAME = "ref_audio"
_AT_ONCE = 2
_MOST_WAITING = 8

T = TypeVar("T")


class References:
    """Decodes recordings in requests in threads of its own, as one may take a minute.

    To be used on the server's event loop only.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="reference")
        self._begun = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Do some work when a thread is free.

        Raises:
            EngineBusy: Too many requests are waiting.
        """
        if self._begun >= _AT_ONCE + _MOST_WAITING:
            raise EngineBusy(
                "Too many recordings are being read; try again in 10 s.", retry_after_s=10
            )
        self._begun += 1
        context = copy_context()  # which says when the caller leaves
        future = asyncio.get_running_loop().run_in_executor(self._threads, context.run, work)
        # Ends with the thread, which may go on for a moment when the caller leaves.
        future.add_done_callback(self._end)
        return await asyncio.shield(future)

    def _end(self, future: asyncio.Future[T]) -> None:
        self._begun -= 1
        if not future.cancelled():
            future.exception()  # retrieved, as its caller may have left


def read_reference(data_url: str, transcript: str | None) -> Sample:
    """Decode a recording inside a request.

    Args:
        data_url: `data:audio/wav;base64,…`; any other URL is refused, never fetched.
        transcript: The words in the recording, if known.

    Raises:
        BadInput: It is no base64 data URL.
        SampleRejected: It is too short or silent.
    """
    head = _DATA_URL.match(data_url)
    if head is None:
        raise BadInput("ref_audio must be a data URL: data:audio/wav;base64,… Nothing is fetched.")
    try:
        data = base64.b64decode(data_url[head.end() :], validate=True)
    except binascii.Error as error:
        raise BadInput(f"ref_audio holds no valid base64 ({error}).") from error
    with tempfile.TemporaryDirectory(prefix="tableread-reference-") as folder:
        path = Path(folder) / "reference"
        path.write_bytes(data)
        _, clip = decode_guarded(path, limits=_LIMITS, display_name=_NAME)
    return Sample(_checked(clip), hashlib.sha256(data).hexdigest(), transcript or None)


def _checked(clip: Clip) -> Clip:
    if clip.duration_s < MIN_SAMPLE_S:
        raise SampleRejected(f"ref_audio lasts {clip.duration_s:.1f} s; a voice needs 1 s or more.")
    if not clip.samples.any():
        raise SampleRejected("ref_audio is silent.")
    return Clip(clip.samples[: round(MAX_SAMPLE_S * clip.rate_hz)], clip.rate_hz)


OPENAI_VOICES = (
    "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage",
    "shimmer", "verse",
)  # fmt: skip
"""OpenAI's names of voices, which many clients send unasked."""

DEFAULT = "alloy"
"""The voice of a request that names none."""

OWN_CHOICE = re.compile(r"(?:tts-1|tts-1-hd|gpt-4o-mini-tts)(?:-\d{4}(?:-\d\d-\d\d)?)?", re.ASCII)
"""OpenAI's model names, dated or not, for which the studio chooses a backend itself."""


def backend_for(studio: Studio, model: str | None) -> Backend:
    """The backend that a request names; a request never makes the studio download one.

    Raises:
        NotFound: There is no such model.
        ModelUnavailable: It can't speak here now.
    """
    name = studio.backend_name if model is None or OWN_CHOICE.fullmatch(model) else model
    backend = studio.backends().get(canonical_name(name))
    if backend is None:
        raise NotFound(f"There is no model “{name}” here. GET /v1/models lists those there are.")
    offer = offer_of(backend)
    if not offer.ready:
        raise ModelUnavailable(offer.unavailable or offer.to_fetch or "")
    return backend


def voice_for(studio: Studio, backend: Backend, body: SpeechBody) -> Voice:
    """The voice of a speech request.

    Raises:
        BadInput: The backend has no such voice, or can't make one from what the request gives.
    """
    with about("task_type"):
        _check_task(backend, body)
    name = body.voice_name
    if body.ref_audio is not None:
        with about("ref_audio"):
            return Voice(_name(name or DEFAULT), read_reference(body.ref_audio, body.ref_text))
    if body.task_type == "VoiceDesign":
        return Voice(_name(name or DEFAULT), description=body.instructions)
    presets = backend.capabilities.presets
    if name is None and presets and not backend.capabilities.builtin_voice:
        name = presets[0].preset_id
    with about("voice"):
        voice = named_voice(studio, backend, name or DEFAULT)
    if voice.preset is not None and body.instructions:
        # How to speak; a backend that takes no instructions ignores them.
        return replace(voice, description=body.instructions)
    return voice


def named_voice(studio: Studio, backend: Backend, written: str, *, any_name: bool = False) -> Voice:
    """A voice by its name: the library's speaker, a preset, or the built-in voice.

    One of OpenAI's names is what the studio's options say, and else one of the voices there are,
    always the same while those stay. With `any_name`, or where the studio's options say so, a name
    that no voice has is one of a built-in voice.
    """
    name = _name(written)
    chosen = studio.options.voice_names.get(name.casefold())
    asked = (chosen, name) if chosen and studio.speakers.find(name) is None else (name,)
    for one in asked:
        if (found := _find_voice(studio, backend, one)) is not None:
            return found
    is_openai = name.casefold() in OPENAI_VOICES
    any_name = any_name or is_openai or studio.options.any_voice
    if backend.capabilities.builtin_voice and any_name:
        return Voice(name)
    if is_openai and (usable := _list_usable(studio, backend)):
        chosen = usable[OPENAI_VOICES.index(name.casefold()) % len(usable)]
        if (found := _find_voice(studio, backend, chosen)) is not None:
            return found
    has_others = studio.speakers.list() or backend.capabilities.presets
    if backend.capabilities.builtin_voice and not has_others:
        return Voice(name)
    remedy = "GET /v1/audio/voices lists those there are; a recording in ref_audio gives another."
    # It was found by no name that it may have here, so this says why.
    voice = VoiceNames(studio.speakers, backend).get(name, remedy)
    return Cast(studio.speakers, {}, {name: voice}).load_voice(name)


def _find_voice(studio: Studio, backend: Backend, name: str) -> Voice | None:
    """The library's speaker or the backend's preset of a name."""
    match VoiceNames(studio.speakers, backend).find(name):
        case str():
            return Cast(studio.speakers, {}).load_voice(name)
        case (engine, preset) if engine.name == backend.name:
            return Voice(name.rpartition("/")[2].strip(), preset=preset.preset_id)
    return None


def _list_usable(studio: Studio, backend: Backend) -> list[str]:
    """Names of voices that a backend without a built-in one can speak with, in a fixed order."""
    if backend.capabilities.cloning:
        speakers = (one.name for one in studio.speakers.list() if one.sample is not None)
        if cloned := sorted(speakers, key=str.casefold):
            return cloned
    return [preset.preset_id for preset in backend.capabilities.presets]


def language_for(backend: Backend, wanted: str | None) -> str | None:
    """The code of a requested language; None leaves the choice to the backend."""
    if wanted is None or wanted.casefold() in {"", "auto"}:
        return None
    languages = backend.capabilities.languages
    # "English" where there are "English (America)" and others means any of them.
    any_of = {title.partition(" (")[0]: code.partition("-")[0] for code, title in languages.items()}
    by_name = {**any_of, **{title: code for code, title in languages.items()}}
    codes = {title.casefold(): code for title, code in by_name.items()}
    return codes.get(wanted.casefold(), wanted)


def _name(written: str) -> str:
    return clean_name(re.sub(r"[\[\]|]", " ", written))


def _check_task(backend: Backend, body: SpeechBody) -> None:
    """Refuse a task that the backend can't do."""
    can = backend.capabilities
    # A backend with a built-in voice for any name adapts that voice to a sample.
    takes_samples = can.cloning or can.builtin_voice
    if body.ref_audio is not None and not takes_samples:
        raise BadInput(f"{backend.title} can't clone a voice; leave ref_audio out.")
    if body.task_type == "VoiceDesign" and not (can.described_voices and body.instructions):
        raise BadInput(
            f"{backend.title} makes no voice from a description."
            if not can.described_voices
            else "VoiceDesign needs a description of the voice in instructions."
        )
    if body.task_type == "CustomVoice" and not can.presets:
        raise BadInput(f"{backend.title} has no voices of its own; task_type can't be CustomVoice.")
    if body.task_type == "Base" and not takes_samples:
        raise BadInput(f"{backend.title} can't clone a voice; task_type can't be Base.")
