"""Backends on small checkpoints, speakers with samples, and requests, for the tests of qwen3."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from qwen3_checkpoint import FEW_GROUPS, GROUPS, small_checkpoint

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.backends.base import SpeechRequest
from studio.backends.options import BackendOptions, BatchOptions
from studio.backends.qwen3.backend import Qwen3Backend
from studio.errors import SpeechFailed
from studio.voices.speaker import Sample, Voice

if TYPE_CHECKING:
    from studio.backends.qwen3.qwen3_model import Qwen3Model

LINE = "The kettle is on, and the door is open."
TRANSCRIPT = "Hello."


def made_backend(
    kind: str = "base", *, groups: int = FEW_GROUPS, **options: object
) -> Qwen3Backend:
    """A backend that isn't loaded, on the CPU."""
    source = str(small_checkpoint(kind, groups=groups))
    options.setdefault("batch", BatchOptions(enabled=False))  # line by line
    return Qwen3Backend(BackendOptions(qwen3_model=source, device="cpu", **options))


def use_one_core() -> None:
    """Matrices this small lose more by waiting for each other's threads than they gain."""
    import torch

    torch.set_num_threads(1)


def loaded_backend(kind: str = "base", *, groups: int = FEW_GROUPS) -> Qwen3Backend:
    """A loaded backend that all tests of a run share; leave it loaded."""
    return _shared_backend(kind, groups)  # one key, however it was asked for


@cache
def _shared_backend(kind: str, groups: int) -> Qwen3Backend:
    use_one_core()
    backend = made_backend(kind, groups=groups)
    backend.load(lambda _progress: None)
    return backend


def loaded_package(kind: str = "base", *, ends: bool = True, groups: int = GROUPS) -> Any:
    """The package's own model of a checkpoint, which all tests of a run share."""
    return _shared_package(kind, ends, groups)


@cache
def _shared_package(kind: str, ends: bool, groups: int) -> Any:
    import torch
    from qwen_tts import Qwen3TTSModel

    use_one_core()
    folder = small_checkpoint(kind, ends=ends, groups=groups)
    return Qwen3TTSModel.from_pretrained(str(folder), dtype=torch.float32, device_map="cpu")


def loaded_model(kind: str = "base", *, ends: bool = True, groups: int = GROUPS) -> Qwen3Model:
    """The backend's model of the same checkpoint, for what the backend doesn't show."""
    return _shared_model(kind, ends, groups)


@cache
def _shared_model(kind: str, ends: bool, groups: int) -> Qwen3Model:
    from studio.backends.qwen3.qwen3_model import load_model

    use_one_core()
    return load_model(small_checkpoint(kind, ends=ends, groups=groups), "cpu")


def recording(pitch_hz: float = 140.0, duration_s: float = 2.2) -> Clip:
    """A buzz whose loudness rises and falls, as different per pitch as two voices."""
    at_s = np.arange(round(duration_s * STUDIO_RATE_HZ)) / STUDIO_RATE_HZ
    buzz = sum(np.sin(2 * np.pi * pitch_hz * n * at_s) / n for n in range(1, 8))
    swell = 0.6 + 0.4 * np.sin(2 * np.pi * 3 * at_s)
    return Clip((0.2 * buzz * swell).astype(np.float32))


def speaker(
    name: str = "Ida", *, pitch_hz: float = 140.0, transcript: str | None = TRANSCRIPT
) -> Voice:
    """A speaker with a sample; without a transcript only its timbre is taken."""
    clip = recording(pitch_hz)
    sha256 = hashlib.sha256(clip.samples.tobytes()).hexdigest()
    return Voice(name, sample=Sample(clip, sha256, transcript))


VOICES = {
    "base": speaker(),
    "custom_voice": Voice("Ida", preset="ryan", description="Shout it out loud."),
    "voice_design": Voice("Ida", description="An old sailor, hoarse and kind."),
}
"""One for each kind of checkpoint."""


def request_for(
    backend: Qwen3Backend, voice: Voice, text: str = LINE, **fields: object
) -> SpeechRequest:
    return SpeechRequest(text, backend.condition(voice), **({"seed": 7} | fields))


def whole(chunks: Iterable[Samples]) -> Samples:
    return np.concatenate(list(chunks))


def collected(chunks: Iterable[Any]) -> list[Any]:
    """All that an iterator yields, whether the line ended or was cut at the bound."""
    made = []
    with suppress(SpeechFailed):
        made.extend(chunks)
    return made
