"""What one backend has to do, and whether it has room for more."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from studio.dialog.planning import SpeechSegment
from studio.engine.job import Job
from studio.engine.model_manager import ModelManager
from studio.engine.record import SegmentRecord
from studio.engine.scheduler import Scheduler

MAX_UNSAVED = 64
"""Clips that may wait for the disk before generation waits too; bounds memory."""

Turn = tuple[Job, SegmentRecord]


@dataclass(slots=True)
class Lane:
    """What waits for one backend, and what is in flight on it.

    Attributes:
        max_concurrency: Segments in flight on a backend that has no slots of its own.
        set_aside: Segments that wait to be tried again, each alone.
        one_alone: Whether such a segment is in flight.
    """

    manager: ModelManager
    max_concurrency: int
    scheduler: Scheduler = field(default_factory=Scheduler)
    set_aside: deque[Turn] = field(default_factory=deque)
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
