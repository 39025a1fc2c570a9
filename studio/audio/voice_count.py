"""Whether two voices speak in a recording, judged by the pitch of what lies between its pauses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from studio.audio.analysis import (
    FRAME_S,
    detect_speech_frames,
    estimate_fundamental_hz,
    find_runs,
)
from studio.audio.clip import Clip

_PAUSE_S = 0.12
_MIN_PHRASE_S = 0.35
_MAX_PHRASE_S = 2.0  # a longer one is measured in pieces, as turns may follow without a pause
_MIN_VOICE_S = 1.0
_MIN_DISTANCE_SEMITONES = 5.0
_MIN_SEPARATION = 3.0
"""Distance of the two pitches over their spread; phrases spread evenly over a range have 3.5."""


@dataclass(frozen=True, slots=True)
class FoundVoice:
    """One voice of a recording: its pitch, and for how long it speaks."""

    pitch_hz: float
    speech_s: float


def find_two_voices(clip: Clip) -> tuple[FoundVoice, FoundVoice] | None:
    """The two voices of a recording, the lower first; None where one voice may be all there is.

    Only pitch is compared: two voices that are alike aren't told apart, and one that changes
    between high and low may be taken for two.
    """
    phrases = list(_measure_phrases(clip))
    split = _find_split(phrases)
    if split is None:
        return None
    low, high = ([one for one in phrases if (one[0] > split) is above] for above in (False, True))
    return _average(low), _average(high)


def _measure_phrases(clip: Clip) -> Iterator[tuple[float, float]]:
    """Pitch in semitones above 1 Hz and length in seconds of what lies between pauses."""
    for part in cut_phrases(clip, _MIN_PHRASE_S):
        pitch_hz = estimate_fundamental_hz(part)
        if pitch_hz is not None:
            yield 12 * math.log2(pitch_hz), part.duration_s


def cut_phrases(clip: Clip, min_s: float) -> Iterator[Clip]:
    """What lies between the pauses of a recording, as views; shorter phrases are left out.

    A phrase is at most 2 s long, as somebody else may go on without a pause.
    """
    size = round(FRAME_S * clip.rate_hz)
    for first, after in _find_phrases(detect_speech_frames(clip), min_s):
        yield Clip(clip.samples[first * size : after * size], clip.rate_hz)


def _find_phrases(speech: npt.NDArray[np.bool_], min_s: float) -> Iterator[tuple[int, int]]:
    pauses = [one for one in find_runs(~speech) if one[1] - one[0] >= _PAUSE_S / FRAME_S]
    begins = [0, *(after for _, after in pauses)]
    ends = [*(first for first, _ in pauses), len(speech)]
    for begin, end in zip(begins, ends, strict=True):
        if (end - begin) * FRAME_S < min_s:
            continue
        n_pieces = math.ceil((end - begin) * FRAME_S / _MAX_PHRASE_S)
        edges = np.linspace(begin, end, n_pieces + 1).round().astype(int).tolist()
        yield from pairwise(edges)


def _find_split(phrases: Sequence[tuple[float, float]]) -> float | None:
    """The pitch between two voices, in semitones, where the phrases fall into two groups."""
    pitches, lengths_s = np.array(phrases).reshape(-1, 2).T
    best: tuple[float, float] | None = None
    for split in sorted(set(pitches.tolist()))[:-1]:
        low = pitches <= split
        means = [float(np.average(pitches[one], weights=lengths_s[one])) for one in (low, ~low)]
        spread = math.sqrt(
            float(np.average((pitches - np.where(low, *means)) ** 2, weights=lengths_s))
        )
        is_long = min(lengths_s[low].sum(), lengths_s[~low].sum()) >= _MIN_VOICE_S
        distance = means[1] - means[0]
        is_far = distance >= max(_MIN_DISTANCE_SEMITONES, _MIN_SEPARATION * spread)
        if is_long and is_far and (best is None or spread < best[0]):
            best = spread, split
    return best[1] if best else None


def _average(phrases: Sequence[tuple[float, float]]) -> FoundVoice:
    speech_s = sum(length_s for _, length_s in phrases)
    pitch = sum(pitch * length_s for pitch, length_s in phrases) / speech_s
    return FoundVoice(2 ** (pitch / 12), speech_s)
