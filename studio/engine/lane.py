"""What one backend has to do, and whether it has room for more."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from studio.engine.job import Job, SegmentRecord
from studio.engine.model_manager import ModelManager
from studio.engine.scheduler import Scheduler

MAX_UNSAVED = 64
"""Clips that may wait for the disk before generation waits too; bounds memory."""

Turn = tuple[Job, SegmentRecord]


@dataclass(slots=True)
class Lane:
    """What waits for one backend, and what is in flight on it.

    Attributes:
        set_aside: Segments that wait to be tried again, each alone.
        one_alone: Whether such a segment is in flight.
    """

    manager: ModelManager
    bound: int
    scheduler: Scheduler = field(default_factory=Scheduler)
    set_aside: deque[Turn] = field(default_factory=deque)
    in_flight: int = 0
    unsaved: int = 0
    one_alone: bool = False

    @property
    def waiting(self) -> int:
        """Segments that wait for a slot."""
        return len(self.scheduler) + len(self.set_aside)

    def has_room(self) -> bool:
        """Whether one more segment may start."""
        if self.set_aside:
            return self.in_flight == 0
        return not self.one_alone and self.in_flight < self.bound and self.unsaved < MAX_UNSAVED

    def discard(self, job: Job) -> list[SegmentRecord]:
        """Forget what waits of a job; what that was."""
        waiting = [job.records[idx] for idx in self.scheduler.discard(job.job_id)]
        waiting += [record for owner, record in self.set_aside if owner is job]
        self.set_aside = deque(turn for turn in self.set_aside if turn[0] is not job)
        return waiting
