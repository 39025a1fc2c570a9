"""How long until a render is done, from how long its lines take."""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from studio.dialog.planning import Segment, SpeechSegment

MIN_LINES = 10
"""Fewer finished lines say too little about the others."""

_OVERHEAD_CHARS = 12.0  # what every line costs, however short
_LAID_OUT_LINES = 200  # of more, which line meets which slot hardly matters
_LEAST_LEFT = 0.05  # of a line that takes longer than expected


@dataclass(slots=True)
class _Running:
    """A line that is being spoken, and since when."""

    weight: float
    began_s: float


class RemainingTime:
    """Estimates the seconds that are left, from the tenth finished line on.

    Lines in flight count by how long they have been spoken, so that an estimate between two ends
    of a batch isn't off by half a batch. `begin` may be called from any thread.
    """

    def __init__(self, weights: Mapping[Hashable, float]) -> None:
        self._waiting = dict(weights)
        self._waiting_weight = sum(weights.values())
        self._running: dict[Hashable, _Running] = {}
        self._n_done = 0
        self._done_weight = 0.0
        self._done_s = 0.0
        self._began_s = math.inf
        self._most_running = 1

    def expect(self, waiting: Mapping[Hashable, float]) -> None:
        """These lines wait now, each with its weight, in place of those that did."""
        self._waiting = {line: one for line, one in waiting.items() if line not in self._running}
        self._waiting_weight = sum(self._waiting.values())

    def begin(self, line: Hashable, at_s: float, *, weight: float | None = None) -> None:
        """A line begins to be spoken; one that begins again counts from then on.

        Args:
            line: Which one; ignored if it neither waits, runs nor has a weight here.
            at_s: When.
            weight: Of a line that isn't expected.
        """
        self._began_s = min(self._began_s, at_s)
        if line in self._waiting:
            weight = self._waiting.pop(line)
            self._waiting_weight -= weight
        if line not in self._running and weight is not None:
            self._running[line] = _Running(weight, at_s)
            self._most_running = max(self._most_running, len(self._running))
        elif line in self._running:
            self._running[line].began_s = at_s

    def end(self, line: Hashable, at_s: float) -> None:
        """A line is done, has failed or was cancelled."""
        self._waiting_weight -= self._waiting.pop(line, 0.0)
        run = self._running.pop(line, None)
        if run is not None:
            self._n_done += 1
            self._done_weight += run.weight
            self._done_s += at_s - run.began_s

    def interrupt(self, line: Hashable) -> None:
        """A line isn't spoken any more; it says nothing of the others."""
        self._running.pop(line, None)

    def skip(self, duration_s: float) -> None:
        """Leave a time out in which no line could begin."""
        self._began_s += duration_s

    @property
    def knows_too_little(self) -> bool:
        return self._n_done < MIN_LINES

    def estimate_s(self, at_s: float) -> float | None:
        """Seconds that are left; None while too little is known, 0 when nothing is left."""
        running = list(self._running.values())
        if not running and not self._waiting:
            return 0.0
        if self.knows_too_little or self._done_s <= 0 or at_s <= self._began_s:
            return None
        speed = self._done_weight / self._done_s  # of one line alone, per second
        left = [
            max(_LEAST_LEFT * run.weight, run.weight - speed * (at_s - run.began_s))
            for run in running
        ]
        spoken = self._done_weight + sum(run.weight for run in running) - sum(left)
        rate = spoken / (at_s - self._began_s)  # of all lines together, per second
        waiting = list(self._waiting.values())
        if len(waiting) > _LAID_OUT_LINES:
            return (sum(left) + self._waiting_weight) / rate
        n_slots = max(self._most_running, len(left))
        return self._lay_out(left, waiting, n_slots) * n_slots / rate

    def _lay_out(self, left: list[float], waiting: list[float], n_slots: int) -> float:
        """When the last line ends if each slot takes the next line: the last ones end apart."""
        slots = left + [0.0] * (n_slots - len(left))
        heapq.heapify(slots)
        for weight in waiting:
            heapq.heapreplace(slots, slots[0] + weight)
        return max(slots)


def weigh(segment: Segment) -> float:
    """How much there is to speak in a segment; 0 for what needs no voice."""
    return weigh_text(segment.text) if isinstance(segment, SpeechSegment) else 0.0


def weigh_text(text: str) -> float:
    """How much there is to speak in a line of this text."""
    return len(text) + _OVERHEAD_CHARS
