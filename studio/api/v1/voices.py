"""Whose voice a request asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from studio.api.v1.bodies import ModelAbilities, ModelCard, SpeechBody, VoiceCard
from studio.api.v1.reference import read_reference
from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import Backend, Preset
from studio.backends.registry import offer_of
from studio.dialog.names import clean_name
from studio.errors import BadInput, ModelUnavailable, NotFound
from studio.service import Studio
from studio.speakers.cast import Cast
from studio.speakers.speaker import Voice

DEFAULT = "alloy"
"""The name of the voice of a request that names none."""

OWN_CHOICE = frozenset({"tts-1", "tts-1-hd", "gpt-4o-mini-tts"})
"""Names of OpenAI's models that stand for whatever the studio speaks with."""


def backend_for(studio: Studio, model: str | None) -> Backend:
    """The backend a request names; a request never makes the studio download one.

    Raises:
        NotFound: There is no such model.
        ModelUnavailable: It can't speak here now.
    """
    name = studio.backend_name if model is None or model in OWN_CHOICE else model
    backend = studio.backends().get(name)
    if backend is None:
        raise NotFound(f"There is no model “{name}” here. GET /v1/models lists those there are.")
    offer = offer_of(backend)
    if not offer.ready:
        raise ModelUnavailable(offer.unavailable or offer.to_fetch or "")
    return backend


def card_of(backend: Backend) -> ModelCard:
    """What a backend is and can do."""
    can = backend.capabilities
    abilities = ModelAbilities(
        cloning=can.cloning,
        builtin_voice=can.builtin_voice,
        presets=[preset.preset_id for preset in can.presets],
        described_voices=can.described_voices,
        instructions=can.instructions,
        languages=dict(can.languages),
        tags=sorted(can.tags),
        streaming=can.streaming,
        sample_rate_hz=STUDIO_RATE_HZ,
        max_chars=can.max_chars,
    )
    return ModelCard(id=backend.name, created=0, title=backend.title, capabilities=abilities)


def cards_of(studio: Studio, backend: Backend) -> list[VoiceCard]:
    """The library's speakers and the backend's presets."""
    speakers = [
        VoiceCard(
            id=speaker.name,
            name=speaker.name,
            kind="speaker",
            languages=[speaker.language] if speaker.language else [],
        )
        for speaker in studio.speakers.list()
    ]
    presets = [
        VoiceCard(
            id=preset.preset_id,
            name=preset.label,
            kind="preset",
            languages=list(preset.languages),
        )
        for preset in backend.capabilities.presets
    ]
    return speakers + presets


def voice_for(studio: Studio, backend: Backend, body: SpeechBody) -> Voice:
    """The voice of one text.

    Raises:
        BadInput: The backend has no such voice, or can't make one of what the request gives.
    """
    _check_task(backend, body)
    name = body.voice_name
    if body.ref_audio is not None:
        return Voice(_name(name or DEFAULT), read_reference(body.ref_audio, body.ref_text))
    if body.task_type == "VoiceDesign":
        return Voice(_name(name or DEFAULT), description=body.instructions)
    presets = backend.capabilities.presets
    if name is None and presets and not backend.capabilities.builtin_voice:
        name = presets[0].preset_id
    voice = named_voice(studio, backend, name or DEFAULT)
    if voice.preset is not None and body.instructions:
        # How to speak; a backend that takes no such words leaves them alone.
        return replace(voice, description=body.instructions)
    return voice


def named_voice(studio: Studio, backend: Backend, written: str) -> Voice:
    """A voice by its name: the library's speaker, a preset, or the built-in voice.

    Raises:
        BadInput: Neither the library nor the backend has it.
        SampleRejected: The speaker's sample can't be used.
    """
    name = _name(written)
    if studio.speakers.find(name) is not None:
        return Cast(studio.speakers, {}).voice_of(name)
    preset = _preset(backend, name)
    if preset is not None:
        return Voice(name, preset=preset.preset_id)
    if backend.capabilities.builtin_voice:
        return Voice(name)
    raise BadInput(
        f"There is no voice “{name}”. GET /v1/audio/voices lists those there are; a recording in "
        "ref_audio gives another."
    )


def language_for(backend: Backend, wanted: str | None) -> str | None:
    """A language as the studio codes it; None for the backend's own choice."""
    if wanted is None or wanted.casefold() in {"", "auto"}:
        return None
    return _by_name(backend.capabilities.languages).get(wanted.casefold(), wanted)


def _by_name(languages: Mapping[str, str]) -> dict[str, str]:
    return {title.casefold(): code for code, title in languages.items()}


def _preset(backend: Backend, name: str) -> Preset | None:
    wanted = name.casefold()
    for preset in backend.capabilities.presets:
        if wanted in {preset.preset_id.casefold(), preset.label.casefold()}:
            return preset
    return None


def _name(written: str) -> str:
    return clean_name(re.sub(r"[\[\]|]", " ", written))


def _check_task(backend: Backend, body: SpeechBody) -> None:
    """Hold a request to what the backend can do."""
    can = backend.capabilities
    # A backend that has a voice for everybody shapes it by a sample, as well as it can.
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
