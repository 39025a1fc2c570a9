"""Repair of a recording for use as a voice sample: long silences cut, offset removed, level set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from studio.audio.analysis import (
    FRAME_S,
    Levels,
    detect_above_noise,
    measure_levels,
    shorten_silences,
)
from studio.audio.clip import Clip, Samples

SPEECH_LEVEL_DB = -20.0
"""Loudness of the speech after a repair: mean power of the frames that hold speech."""

MAX_PEAK_DB = -1.0
"""No sample is louder after a repair."""

LONG_SILENCE_S = 0.8

_KEPT_SILENCE_S = 0.4
_EDGE_S = 0.1
_FADE_S = 0.01
_MARGIN_FRAMES = 1
"""Of 20 ms: the soft beginning and end of a word belong to it."""

_AUDIBLE_S = 0.05
_AUDIBLE_DB = 0.5


@dataclass(frozen=True, slots=True)
class RepairedClip:
    """A repaired recording; `steps` says in words what was done, empty when nothing was."""

    clip: Clip
    steps: tuple[str, ...]
    before: Levels
    after: Levels


def repair(clip: Clip) -> RepairedClip:
    """Shorten silences, remove a DC offset and bring speech to `SPEECH_LEVEL_DB`.

    What is louder than `MAX_PEAK_DB` then is pressed down smoothly, rather than leaving all of it
    too quiet. Noise, music and distortion stay: taking them out changes the voice. The noise of a
    room isn't made louder where nobody speaks.

    Args:
        clip: Mono; one without any speech is given back as it is.
    """
    before = measure_levels(clip)
    if before.speech_share == 0:
        return RepairedClip(clip, (), before, before)
    centred = Clip(
        clip.samples - clip.samples.mean(dtype=np.float64).astype(np.float32), clip.rate_hz
    )
    shorter = shorten_silences(
        centred, min_s=LONG_SILENCE_S, keep_s=_KEPT_SILENCE_S, edge_s=_EDGE_S
    )
    steps = _list_steps(clip.duration_s - shorter.duration_s, measure_levels(shorter).speech_db)
    repaired = Clip(_fade_ends(_level_speech(shorter).samples, clip.rate_hz), clip.rate_hz)
    return RepairedClip(repaired, tuple(steps), before, measure_levels(repaired))


def _list_steps(cut_s: float, level_db: float) -> Iterator[str]:
    if cut_s >= _AUDIBLE_S:
        yield f"trimmed {cut_s:.1f} s of silence"
    if abs(SPEECH_LEVEL_DB - level_db) >= _AUDIBLE_DB:
        yield f"levelled from {level_db:.0f} to {SPEECH_LEVEL_DB:.0f} dB"


def _level_speech(clip: Clip) -> Clip:
    """Bring speech to `SPEECH_LEVEL_DB`; in two passes, as soft clipping lowers it a little.

    In a noisy recording nothing is made louder where nobody speaks.
    """
    share = _find_speech_share(clip)
    for _ in range(2):
        gain = 10 ** ((SPEECH_LEVEL_DB - measure_levels(clip).speech_db) / 20)
        gains = 1 + (gain - 1) * share if gain > 1 else np.float32(gain)
        clip = Clip(_soft_clip(clip.samples * gains), clip.rate_hz)
    return clip


def _find_speech_share(clip: Clip) -> Samples:
    """1 where somebody speaks, 0 where there is only noise; 1 throughout a clean recording."""
    speech = detect_above_noise(clip)
    if speech is None:
        return np.ones(len(clip), dtype=np.float32)
    speech = np.convolve(speech, np.ones(2 * _MARGIN_FRAMES + 1), mode="same") > 0
    middles = (np.arange(len(speech)) + 0.5) * FRAME_S * clip.rate_hz
    return np.interp(np.arange(len(clip)), middles, speech).astype(np.float32)


def _soft_clip(samples: Samples) -> Samples:
    """Soft-clip samples to `MAX_PEAK_DB`; those below 0.7 of it aren't changed."""
    peak = 10 ** (MAX_PEAK_DB / 20)
    if np.abs(samples).max(initial=0.0) <= peak:
        return samples
    knee = 0.7 * peak
    loud = np.abs(samples) > knee
    over = (np.abs(samples[loud]) - knee) / (peak - knee)
    bent = samples.copy()
    bent[loud] = np.sign(samples[loud]) * (knee + (peak - knee) * np.tanh(over))
    return bent


def _fade_ends(samples: Samples, rate_hz: int) -> Samples:
    samples = samples.copy()
    ramp = np.linspace(0.0, 1.0, min(len(samples), round(_FADE_S * rate_hz)), dtype=np.float32)
    samples[: len(ramp)] *= ramp
    samples[len(samples) - len(ramp) :] *= ramp[::-1]
    return samples
