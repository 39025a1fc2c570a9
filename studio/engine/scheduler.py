"""Which waiting segment is spoken next. Pure: no threads, no awaits, no audio."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class _Waiting:
    """The waiting segments of one job, ascending, and where it is being listened to.

    Attributes:
        weights: By segment; the heaviest goes first while nobody has listened. Empty where order
            is all that counts.
    """

    segment_idxs: list[int]
    weights: Mapping[int, int]
    play_head: int | None = None

    def take_ahead(self) -> int | None:
        """Take the first at or after the play-head."""
        place = bisect_left(self.segment_idxs, self.play_head or 0)
        return self.segment_idxs.pop(place) if place < len(self.segment_idxs) else None

    def take(self) -> int:
        """Take the first at or after the play-head, or the heaviest, or the very first."""
        if self.weights and self.play_head is None:
            heaviest = max(self.segment_idxs, key=lambda idx: (self.weights[idx], -idx))
            self.segment_idxs.remove(heaviest)
            return heaviest
        ahead = self.take_ahead()
        return ahead if ahead is not None else self.segment_idxs.pop(0)


class Scheduler:
    """Orders waiting segments of several jobs.

    The job that is listened to goes first, from its play-head on. Then jobs in the order they
    came, each from its play-head on and what lies before it last; one that nobody has listened to
    its heaviest segments first, where weights are given.
    """

    def __init__(self) -> None:
        """Start with nothing waiting."""
        self._jobs: dict[str, _Waiting] = {}
        self._listened: str | None = None

    def add(
        self, job_id: str, segment_idxs: Iterable[int], weights: Mapping[int, int] | None = None
    ) -> None:
        """Let segments of a new job wait."""
        assert job_id not in self._jobs
        play_head = 0 if job_id == self._listened else None
        waiting = _Waiting(sorted(segment_idxs), weights or {}, play_head)
        if waiting.segment_idxs:
            self._jobs[job_id] = waiting

    def focus(self, job_id: str, segment_idx: int) -> None:
        """Move the play-head: this job is listened to from now on, here."""
        self._listened = job_id
        if job_id in self._jobs:
            self._jobs[job_id].play_head = segment_idx

    def has_urgent(self) -> bool:
        """Whether the very segment at the play-head waits; `take` gives it next."""
        listened = self._jobs.get(self._listened or "")
        return listened is not None and listened.play_head in listened.segment_idxs

    def take(self) -> tuple[str, int] | None:
        """Take the next segment to speak, None when nothing waits."""
        listened = self._jobs.get(self._listened or "")
        if listened is not None:
            ahead = listened.take_ahead()
            if ahead is not None:
                return self._taken(self._listened or "", ahead)
        for job_id, waiting in self._jobs.items():
            return self._taken(job_id, waiting.take())
        return None

    def discard(self, job_id: str) -> list[int]:
        """Forget a job; returns what still waited."""
        waiting = self._jobs.pop(job_id, None)
        return waiting.segment_idxs if waiting else []

    def __len__(self) -> int:
        """Count the waiting segments of all jobs."""
        return sum(len(waiting.segment_idxs) for waiting in self._jobs.values())

    def _taken(self, job_id: str, segment_idx: int) -> tuple[str, int]:
        if not self._jobs[job_id].segment_idxs:
            del self._jobs[job_id]
        return job_id, segment_idx
