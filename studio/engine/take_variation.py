"""How a new take differs where the voice says a line the same way each time, whatever the seed.

Whether an engine without seeds varies by itself depends on its weights: a graph may draw noise, or
none. So something short is said twice, when a new take is asked of it first.
"""

from __future__ import annotations

import logging
import math
import threading
from dataclasses import dataclass, replace

import numpy as np

from studio.backends.base import VARIED_SEEDS, Backend, SpeechRequest
from studio.errors import SpeechFailed

log = logging.getLogger(__name__)

_PROBE = "1, 2."  # which every language can read
_PACE = (0.03, 0.06)  # the least that is heard, and the most that doesn't sound hurried
_SEMITONES = 0.4


@dataclass(frozen=True, slots=True)
class Variation:
    """Factors of a take's pace and of its pitch; the first take of a line has none."""

    pace: float = 1.0
    pitch: float = 1.0

    @classmethod
    def from_seed(cls, seed: int) -> Variation:
        """The same for the same seed: 3 to 6 % quicker or slower, and up to 0.4 semitones off."""
        turn, more, pitch = np.random.default_rng(seed).uniform(-1, 1, 3)
        least, most = _PACE
        pace = math.copysign(least + (most - least) * abs(float(more)), float(turn))
        return cls(1 + pace, 2 ** (_SEMITONES * float(pitch) / 12))


class TakeVariations:
    """Knows which engines vary by themselves; safe from any thread."""

    def __init__(self) -> None:
        # Guards what was found, by an engine's name and revision.
        self._lock = threading.Lock()
        self._varies: dict[tuple[str, str], bool] = {}

    def find(self, backend: Backend, request: SpeechRequest) -> Variation:
        """How the studio varies a request: not at all, unless it is for a new take.

        Raises:
            Cancelled: The request was, while it was found out.
        """
        first, end = VARIED_SEEDS
        is_new = request.seed is not None and first <= request.seed < end
        if not is_new or backend.capabilities.seeded or self._find_varies(backend, request):
            return Variation()
        assert request.seed is not None
        return Variation.from_seed(request.seed)

    def _find_varies(self, backend: Backend, request: SpeechRequest) -> bool:
        with self._lock:
            key = backend.name, backend.revision
            if key not in self._varies:
                self._varies[key] = _says_otherwise(backend, request)
            return self._varies[key]


def _says_otherwise(backend: Backend, request: SpeechRequest) -> bool:
    """Whether the same words sound different the second time."""
    try:
        first, second = (
            np.concatenate([*backend.speak(replace(request, text=_PROBE, seed=seed))])
            for seed in VARIED_SEEDS
        )
    except (SpeechFailed, ValueError) as error:  # nothing was said
        log.info("%s: it isn't known whether its takes differ: %s", backend.name, error)
        return False
    varies = not np.array_equal(first, second)
    log.info("%s: two readings are %s", backend.name, "different" if varies else "the same")
    return varies
