"""Whose voice a speech request asks for: a speaker, a preset, or a recording in the request."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.audio.decode import DecodeLimits
from studio.audio.guarded_decode import decode_guarded
from studio.backends.aliases import canonical_name
from studio.backends.base import Backend, Preset
from studio.backends.registry import offer_of
from studio.dialog.names import clean_name
from studio.errors import BadInput, EngineBusy, ModelUnavailable, NotFound, SampleRejected
from studio.server.v1.speech_bodies import ModelAbilities, ModelCard, SpeechBody, VoiceCard
from studio.services.studio import Studio
from studio.voices.cast import Cast
from studio.voices.sample_checks import MAX_SAMPLE_S, MIN_SAMPLE_S
from studio.voices.speaker import Sample, Voice

_LIMITS = DecodeLimits(max_bytes=12_000_000, max_duration_s=120.0)
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*;base64,", re.ASCII)
_NAME = "ref_audio"
_AT_ONCE = 2
_MOST_WAITING = 8

T = TypeVar("T")


class References:
    """Work on recordings in requests, in threads of its own: one may take a minute.

    On the server's loop only.
    """

    def __init__(self) -> None:
        """Start with nothing to do."""
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="reference")
        self._begun = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Do it in its turn.

        Raises:
            EngineBusy: Too many are waiting.
        """
        if self._begun >= _AT_ONCE + _MOST_WAITING:
            raise EngineBusy(
                "Too many recordings are being read; try again in 10 s.", retry_after_s=10
            )
        self._begun += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        # Not when the caller leaves: the thread goes on.
        future.add_done_callback(self._end)
        return await asyncio.shield(future)

    def _end(self, future: asyncio.Future[T]) -> None:
        self._begun -= 1
        if not future.cancelled():
            future.exception()  # seen: nobody may be waiting for it any more


def read_reference(data_url: str, transcript: str | None) -> Sample:
    """Decode a recording that a request holds.

    Args:
        data_url: `data:audio/wav;base64,…`; addresses of other places are never fetched.
        transcript: What it says, when known.

    Raises:
        BadInput: It is no base64 data URL.
        AudioRejected: It can't be decoded, or is larger than the limits.
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
    backend = studio.backends().get(canonical_name(name))
    if backend is None:
        raise NotFound(f"There is no model “{name}” here. GET /v1/models lists those there are.")
    offer = offer_of(backend)
    if not offer.ready:
        raise ModelUnavailable(offer.unavailable or offer.to_fetch or "")
    return backend


def model_card(backend: Backend) -> ModelCard:
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


def voice_cards(studio: Studio, backend: Backend) -> list[VoiceCard]:
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
