"""Scenes of the draft voice for tests of levels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import soundfile
import soxr

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples, write_wav
from studio.audio.export import Caption
from studio.audio.timeline import SilencePart, TakePart, Timeline, TimelinePart, lay_out
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.voices.speaker import Voice

LINES = (
    ("Ida", "The lamp is still burning, and nobody has climbed the stairs since Tuesday."),
    ("Tom", "Did you really think that I would not notice? You left all the letters here!"),
    ("Ida", "I heard the door. It was the wind, as it always is."),
    ("Tom", "Then the wind has a key."),
)


def spoken() -> list[Clip]:
    """Each line in its speaker's voice."""
    backend = DraftBackend(workers=1)
    backend.load(lambda _: None)
    try:
        return [
            Clip(np.concatenate(list(backend.speak(request))))
            for request in (
                SpeechRequest(text=text, conditioning=backend.condition(Voice(speaker)))
                for speaker, text in LINES
            )
        ]
    finally:
        backend.unload()


def laid(
    folder: Path, clips: list[Clip], *, gains_db: Mapping[str, float] | None = None
) -> tuple[Timeline, dict[int, Caption]]:
    """The lines with half a second between them; a speaker may be louder or quieter."""
    parts: list[TimelinePart] = []
    captions = {}
    for number, ((speaker, text), clip) in enumerate(zip(LINES, clips, strict=True)):
        gain = np.float32(10 ** ((gains_db or {}).get(speaker, 0.0) / 20))
        path = folder / f"{number}.wav"
        write_wav(path, Clip(clip.samples * gain))
        parts += [TakePart(2 * number, path), SilencePart(2 * number + 1, 0.5)]
        captions[2 * number] = Caption(number + 1, speaker, text)
    return lay_out(parts), captions


def true_peak_db(samples: Samples) -> float:
    """The highest level at sixteen times the rate, by another resampler than FFmpeg's."""
    return 20 * float(np.log10(np.abs(soxr.resample(samples, 1, 16, "VHQ")).max()))


def read(path: Path) -> Samples:
    samples, rate_hz = soundfile.read(path, dtype="float32")
    assert rate_hz == STUDIO_RATE_HZ
    return samples
