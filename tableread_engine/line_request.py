"""One line that another program asks for, and the recording its voice is cloned from."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from studio.audio.clip import STUDIO_RATE_HZ, Clip, from_pcm16, resample
from studio.errors import BadInput, SampleRejected
from studio.voices.samples import check_clip, load_sample
from studio.voices.speaker import Sample

Reference = str | Path | npt.NDArray[Any] | tuple[npt.NDArray[Any], int]
"""A file, an array at 24,000 Hz, or an array and its rate; see `LineRequest.reference`."""

_ALIASES = {"ref_audio": "reference", "ref_text": "transcript", "max_new_tokens": "max_frames"}
_MAX_SEED = 2**63 - 1
_MIN_RATE_HZ, _MAX_RATE_HZ = 4_000, 384_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LineRequest:
    """One line to speak.

    A mapping may stand in for it, with these names, those of faster-qwen3-tts-batch (`ref_audio`,
    `ref_text`, `max_new_tokens`) and the model's parameters by their own names.

    Attributes:
        text: At most as long as the model speaks in one pass; `SpeechModel.max_chars`.
        language: A BCP-47 code or the English name; None or "Auto" for the model's own choice.
        reference: The recording of the voice, of 1 s or more: a file in any format that FFmpeg
            reads; or float within [-1, 1] or int16, [samples] or [samples, channels], at
            24,000 Hz or with its rate in Hz behind it. None for the model's built-in voice.
        transcript: What the recording says; Qwen3-TTS clones it more closely with it.
        preset: One of the model's own voices, instead of a recording.
        description: A voice in words, for models that make one from them.
        seed: 0 or more; same seed, same audio. None for another one each time.
        max_frames: Where the line is cut: frames of 80 ms of Qwen3-TTS, speech tokens of 40 ms of
            Chatterbox. The bound that the studio derives from the text holds in any case.
        params: Of sampling, by the names of `SpeechModel.params`; a missing one takes its default.
    """

    text: str
    language: str | None = None
    reference: Reference | None = None
    transcript: str | None = None
    preset: str | None = None
    description: str | None = None
    seed: int | None = None
    max_frames: int | None = None
    params: Mapping[str, float] = field(default_factory=dict)


_FIELDS = tuple(one.name for one in fields(LineRequest) if one.name != "params")
_TEXTS = ("text", "language", "transcript", "preset", "description")


def read_request(
    given: LineRequest | Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> LineRequest:
    """A request with defaults for what it leaves out.

    Args:
        given: A request, or a mapping as `LineRequest` describes it.
        defaults: By the same names.

    Raises:
        BadInput: It is neither, has no text, or a value is of the wrong type; parameters aren't
            checked, because each model has its own.
    """
    named = {**_by_name(defaults or {}), **_by_name(given)}
    own = {name: named.pop(name) for name in _FIELDS if name in named}
    if "text" not in own:
        raise BadInput("A request needs a text.")
    for name in _TEXTS:
        if not isinstance(own.get(name, ""), str):
            raise BadInput(f"“{name}” must be text.")
    _check_whole("seed", own.get("seed"), 0)
    _check_whole("max_frames", own.get("max_frames"), 1)
    return LineRequest(**own, params=named)


def _by_name(given: LineRequest | Mapping[str, Any]) -> dict[str, Any]:
    """What is set in a request, parameters included, by our names."""
    if isinstance(given, LineRequest):
        given = {name: getattr(given, name) for name in (*_FIELDS, "params")}
    if not isinstance(given, Mapping) or not isinstance(given.get("params", {}), Mapping):
        raise BadInput("A request is a LineRequest or a mapping with its names.")
    flat = {**{name: one for name, one in given.items() if name != "params"}, **_params(given)}
    return {_ALIASES.get(name, str(name)): one for name, one in flat.items() if one is not None}


def _params(given: Mapping[str, Any]) -> Mapping[str, Any]:
    params: Mapping[str, Any] = given.get("params", {})
    return params


def _check_whole(name: str, value: Any, minimum: int) -> None:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and not (is_whole and minimum <= value <= _MAX_SEED):
        raise BadInput(f"“{name}” must be a whole number from {minimum}.")


def identify_reference(reference: Reference) -> Hashable:
    """A key of a recording that stays while its content does; reads no file.

    Raises:
        SampleRejected: An array is none that can be a recording.
    """
    if isinstance(reference, str | Path):
        try:
            stat = Path(reference).stat()
        except (OSError, ValueError):  # reading it says why
            return str(reference)
        return str(Path(reference).absolute()), stat.st_size, stat.st_mtime_ns
    return _hash_clip(_clip_of(reference))


def read_reference(reference: Reference, transcript: str | None) -> Sample:
    """Read a recording as a sample of a voice, with the studio's checks.

    Raises:
        SampleRejected: It can't be read, or can't serve as a voice.
    """
    if isinstance(reference, str | Path):
        return load_sample(Path(reference), transcript=transcript)
    clip = _clip_of(reference)
    report = check_clip(clip)
    if report.fatal:
        raise SampleRejected(report.fatal.message)
    return Sample(report.clip, _hash_clip(clip), transcript)


def _hash_clip(clip: Clip) -> str:
    return hashlib.sha256(clip.samples.tobytes()).hexdigest()


def _clip_of(reference: Any) -> Clip:
    """An array as a mono clip at the studio's rate.

    Raises:
        SampleRejected: It is none that can be a recording.
    """
    is_pair = isinstance(reference, tuple) and len(reference) == 2
    samples, rate_hz = reference if is_pair else (reference, STUDIO_RATE_HZ)
    samples = np.asarray(samples)
    samples = from_pcm16(samples) if samples.dtype == np.int16 else samples
    is_audio = np.issubdtype(samples.dtype, np.floating) and samples.ndim in (1, 2)
    if not is_audio or not samples.size or not np.isfinite(samples).all():
        raise SampleRejected(
            "A recording is a file, or an array of finite float or int16 numbers, [samples] or "
            "[samples, channels], which a tuple may hold with its rate."
        )
    if not isinstance(rate_hz, int | np.integer) or not _MIN_RATE_HZ <= rate_hz <= _MAX_RATE_HZ:
        raise SampleRejected(
            f"The rate of a recording is a whole number from {_MIN_RATE_HZ} to {_MAX_RATE_HZ} Hz."
        )
    mono = samples if samples.ndim == 1 else samples.mean(axis=1)
    clip = np.clip(mono, -1.0, 1.0).astype(np.float32)
    if rate_hz != STUDIO_RATE_HZ:
        clip = np.concatenate(list(resample(iter([clip]), int(rate_hz), STUDIO_RATE_HZ)))
    return Clip(clip)
