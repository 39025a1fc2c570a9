"""How a new take differs where the voice says a line the same way each time, whatever the seed.

Whether an engine without seeds varies by itself depends on its weights: a graph may draw noise, or
none. So something short is said twice, when a new take is asked of it first.
"""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from studio.backends.base import VARIED_SEEDS, Backend, SpeechRequest
from studio.errors import SpeechFailed

_PROBE = "1, 2."  # which can be read in every language
_LEAST_PACE, _MOST_PACE = 0.03, 0.06  # less isn't heard, more sounds hurried
_SEMITONES = 0.4


class Variation(NamedTuple):
    """Factors of a take's pace and of its pitch."""

    pace: float = 1.0
    pitch: float = 1.0


class TakeVariations:
    """Knows which engines vary by themselves; safe from any thread."""

    def __init__(self) -> None:
        # Guards what was found, by an engine's name and revision.
        self._lock = threading.Lock()
        self._varies: dict[tuple[str, str], bool] = {}

    def find(self, backend: Backend, request: SpeechRequest) -> Variation:
        """How the studio varies a request: always the same for a seed, and only for a new take."""
        seed, (first, end) = request.seed, VARIED_SEEDS
        if seed is None or not first <= seed < end or backend.capabilities.seeded:
            return Variation()
        with self._lock:
            key = backend.name, backend.revision
            if key not in self._varies:
                self._varies[key] = _varies_by_itself(backend, request)
        if self._varies[key]:
            return Variation()
        turn, more, pitch = map(float, np.random.default_rng(seed).uniform(-1, 1, 3))
        pace = math.copysign(_LEAST_PACE + (_MOST_PACE - _LEAST_PACE) * abs(more), turn)
        return Variation(1 + pace, 2 ** (_SEMITONES * pitch / 12))


def _varies_by_itself(backend: Backend, request: SpeechRequest) -> bool:
    try:
        first, second = (
            np.concatenate([*backend.speak(replace(request, text=_PROBE, seed=seed))])
            for seed in VARIED_SEEDS
        )
    except (SpeechFailed, ValueError):  # it said nothing
        return False
    return not np.array_equal(first, second)
