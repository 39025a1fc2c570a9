"""Making a recording of speech fit for a sample: without long silences, at one loudness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from studio.audio.clip import Clip, Samples
from studio.audio.measure import Levels, measure_levels
from studio.audio.silences import without_silences

TARGET_DB = -20.0
"""Loudness of the speech after a repair: mean power of the frames that hold speech."""

PEAK_DB = -1.0
"""No sample is louder after a repair."""

LONG_SILENCE_S = 0.8

_KEPT_SILENCE_S = 0.4
_EDGE_S = 0.1
_FADE_S = 0.01
_HEARD_S = 0.05
_HEARD_DB = 0.5


@dataclass(frozen=True, slots=True)
class Repair:
    """A mended recording; `steps` says in words what was done, nothing when nothing was needed."""

    clip: Clip
    steps: tuple[str, ...]
    before: Levels
    after: Levels


def repair(clip: Clip) -> Repair:
    """Cut silences short, take out an offset and bring speech to `TARGET_DB`.

    What is louder than `PEAK_DB` then is pressed down smoothly, rather than leaving the whole too
    quiet. Noise, music and distortion stay: taking
    them out changes the voice.

    Args:
        clip: Mono; one without any speech is given back as it is.
    """
    before = measure_levels(clip)
    if before.speech_share == 0:
        return Repair(clip, (), before, before)
    steps = []
    centred = Clip(
        clip.samples - clip.samples.mean(dtype=np.float64).astype(np.float32), clip.rate_hz
    )
    shorter = without_silences(
        centred, min_s=LONG_SILENCE_S, keep_s=_KEPT_SILENCE_S, edge_s=_EDGE_S
    )
    cut_s = clip.duration_s - shorter.duration_s
    if cut_s >= _HEARD_S:
        steps.append(f"{cut_s:.1f} s of silence cut away")
    level_db = measure_levels(shorter).speech_db
    if abs(TARGET_DB - level_db) >= _HEARD_DB:
        steps.append(f"brought from {level_db:.0f} to {TARGET_DB:.0f} dB")
    repaired = Clip(_faded(_levelled(shorter).samples, clip.rate_hz), clip.rate_hz)
    return Repair(repaired, tuple(steps), before, measure_levels(repaired))


def _levelled(clip: Clip) -> Clip:
    """A clip with its speech at `TARGET_DB`; twice, as pressing peaks takes some of it."""
    for _ in range(2):
        gain = 10 ** ((TARGET_DB - measure_levels(clip).speech_db) / 20)
        clip = Clip(_pressed(clip.samples * np.float32(gain)), clip.rate_hz)
    return clip


def _pressed(samples: Samples) -> Samples:
    """Samples bent smoothly below `PEAK_DB`; what is below 0.7 of it stays as it is."""
    peak = 10 ** (PEAK_DB / 20)
    if np.abs(samples).max(initial=0.0) <= peak:
        return samples
    knee = 0.7 * peak
    loud = np.abs(samples) > knee
    over = (np.abs(samples[loud]) - knee) / (peak - knee)
    bent = samples.copy()
    bent[loud] = np.sign(samples[loud]) * (knee + (peak - knee) * np.tanh(over))
    return bent


def _faded(samples: Samples, rate_hz: int) -> Samples:
    samples = samples.copy()
    ramp = np.linspace(0.0, 1.0, min(len(samples), round(_FADE_S * rate_hz)), dtype=np.float32)
    samples[: len(ramp)] *= ramp
    samples[len(samples) - len(ramp) :] *= ramp[::-1]
    return samples
