"""The queue of one backend: which waiting segment is next, and whether there is a slot for it."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from studio.dialog.planning import SpeechSegment
from studio.engine.job import Job, SegmentRecord
from studio.engine.model_manager import ModelManager


@dataclass(slots=True)
class _WaitingJob:
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


class SegmentScheduler:
    """Orders waiting segments of several jobs.

    The job that is listened to goes first, from its play-head on. Then jobs in the order they
    came, each from its play-head on and what lies before it last; one that nobody has listened to
    its heaviest segments first, where weights are given.
    """

    def __init__(self) -> None:
        """Start with nothing waiting."""
        self._jobs: dict[str, _WaitingJob] = {}
        self._listened: str | None = None

    def add(
        self, job_id: str, segment_idxs: Iterable[int], weights: Mapping[int, int] | None = None
    ) -> None:
        """Let segments of a new job wait."""
        assert job_id not in self._jobs
        play_head = 0 if job_id == self._listened else None
        waiting = _WaitingJob(sorted(segment_idxs), weights or {}, play_head)
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


MAX_UNSAVED = 64
"""Clips that may wait for the disk before generation waits too; bounds memory."""

QueuedSegment = tuple[Job, SegmentRecord]


@dataclass(slots=True)
class BackendQueue:
    """What waits for one backend, and what is in flight on it.

    Attributes:
        max_concurrency: Segments in flight on a backend that has no slots of its own.
        set_aside: Segments that wait to be tried again, each alone.
        one_alone: Whether such a segment is in flight.
    """

    manager: ModelManager
    max_concurrency: int
    scheduler: SegmentScheduler = field(default_factory=SegmentScheduler)
    set_aside: deque[QueuedSegment] = field(default_factory=deque)
    in_flight: int = 0
    unsaved: int = 0
    one_alone: bool = False

    @property
    def waiting(self) -> int:
        """Segments that wait for a slot."""
        return len(self.scheduler) + len(self.set_aside)

    @property
    def bound(self) -> int:
        """Segments that may be in flight; a load may change what the backend takes."""
        return self._in_slots or self.max_concurrency

    @property
    def takes_one_more(self) -> bool:
        """Whether the line at the play-head may go past the bound: it waits where slots are shared.

        One at a time, and only on a batched backend, which chooses itself who gets a slot next.
        """
        return self._in_slots > 0 and self.in_flight == self.bound and self.scheduler.has_urgent()

    @property
    def _in_slots(self) -> int:
        """Segments that a batched backend takes; 0 for the others."""
        can = self.manager.backend.capabilities
        return can.slots + can.beyond_slots if can.slots else 0

    def add(self, job: Job, segment_idxs: list[int]) -> None:
        """Let speech segments of a new job wait; where many run together, the longest go first."""
        weights = None
        if self.manager.backend.capabilities.slots:
            segments = [job.records[idx].segment for idx in segment_idxs]
            weights = {
                segment.segment_idx: len(segment.text)
                for segment in segments
                if isinstance(segment, SpeechSegment)
            }
        self.scheduler.add(job.job_id, segment_idxs, weights)

    def has_room(self) -> bool:
        """Whether one more segment may start."""
        if self.set_aside:
            return self.in_flight == 0
        if self.one_alone:
            return False
        if self.in_flight >= self.bound and not self.takes_one_more:
            return False
        return self.unsaved < MAX_UNSAVED + self._in_slots

    def discard(self, job: Job) -> list[SegmentRecord]:
        """Forget what waits of a job; what that was."""
        waiting = [job.records[idx] for idx in self.scheduler.discard(job.job_id)]
        waiting += [record for owner, record in self.set_aside if owner is job]
        self.set_aside = deque(turn for turn in self.set_aside if turn[0] is not job)
        return waiting
