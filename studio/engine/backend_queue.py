"""The queue of one backend: which waiting segment is next, and whether there is room for it.

Segments are ranked only here. A batched backend gets some before it has a slot for them, so that
their prompts are ready, and asks for their priorities again when a slot is free.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from studio.backends.base import Priority
from studio.dialog.planning import SpeechSegment
from studio.engine.job import Job, SegmentRecord
from studio.engine.model_manager import ModelManager

JobT = TypeVar("JobT", bound=Hashable)


@dataclass(slots=True, eq=False)
class _JobQueue(Generic[JobT]):
    """The waiting segments of a job, the next one first.

    Attributes:
        number: How many segments were queued before it.
        round_start: The `number` of the first job of its round.
        weights: By segment; in a round the heaviest goes first. Empty if only the order counts.
        play_head: Its play-head, if it ever had one.
        rank: The sort key of its next segment, by which the job has its place among the others.
    """

    job: JobT
    number: int
    round_start: int
    weights: Mapping[int, float]
    waiting: list[int]
    play_head: int | None = None
    rank: tuple[float, ...] = ()

    def order(self, segment_idx: int) -> tuple[float, ...]:
        """The sort key of a segment of a job without the focus; the smallest goes first."""
        weight = self.weights.get(segment_idx, 0) if self.play_head is None else 0
        is_behind = segment_idx < (self.play_head or 0)
        return self.round_start, -weight, self.number, is_behind, segment_idx

    def move_play_head(self, segment_idx: int) -> None:
        """Order the segments from the play-head on, and those before it last."""
        in_order = sorted(self.waiting)
        at = bisect_left(in_order, segment_idx)
        self.waiting, self.play_head = in_order[at:] + in_order[:at], segment_idx


class SegmentScheduler(Generic[JobT]):
    """Ranks the segments of several jobs.

    The focused job goes first, from its play-head on. The others follow in order of submission,
    each from its play-head on, with the segments before it last. With weights, jobs that are
    submitted together form a round, in which the heaviest segment goes first: so the last slots
    become idle together, and no job waits for more than a round of later ones.
    """

    def __init__(self) -> None:
        # Jobs with waiting segments, and the same in order of their next ones: so neither a long
        # job nor a move of the play-head ranks segment by segment.
        self._queues: dict[JobT, _JobQueue[JobT]] = {}
        self._ranked: list[tuple[tuple[float, ...], _JobQueue[JobT]]] = []
        # Replaced, not changed, as the generating threads read it.
        self._play_head: tuple[JobT, int] | None = None
        self._n_added = self._n_waiting = 0

    def add(
        self,
        job: JobT,
        segment_idxs: Collection[int],
        weights: Mapping[int, float] | None = None,
        *,
        round_size: int = 1,
    ) -> None:
        """Queue the segments of a new job.

        Args:
            job: The job.
            segment_idxs: In any order.
            weights: Estimated cost of each.
            round_size: Most segments of a round of several jobs.
        """
        number = self._n_added
        self._n_added += len(segment_idxs)
        self._n_waiting += len(segment_idxs)
        round_start = number - number % round_size
        if self._n_added > round_start + round_size:  # it gets a round of its own
            round_start = number
        queue = _JobQueue(job, number, round_start, weights or {}, list(segment_idxs))
        if self._play_head is not None and self._play_head[0] == job:
            queue.move_play_head(self._play_head[1])
        else:
            queue.waiting.sort(key=queue.order)
        self._insert(queue)

    def focus(self, job: JobT, segment_idx: int) -> None:
        """Move a job's play-head to a segment, and focus the job."""
        self._play_head = (job, segment_idx)
        queue = self._remove(job)
        if queue is not None:
            queue.move_play_head(segment_idx)
            self._insert(queue)

    def is_play_head_next(self) -> bool:
        """Whether `take` returns exactly the segment at the play-head."""
        queue = self._find_next()
        return queue is not None and self._rank(queue, queue.waiting[0]).ahead == 0

    def take(self) -> tuple[JobT, int, Callable[[], Priority]] | None:
        """Take the next segment to speak; None if none is waiting.

        Returns:
            Its job, its index, and a function that returns its current priority, for any thread.
        """
        queue = self._find_next()
        if queue is None:
            return None
        self._remove(queue.job)
        self._n_waiting -= 1
        segment_idx = queue.waiting.pop(0)
        self._insert(queue)
        return queue.job, segment_idx, partial(self._rank, queue, segment_idx)

    def discard(self, job: JobT) -> list[int]:
        """Remove a job; returns its waiting segments."""
        queue = self._remove(job)
        discarded = sorted(queue.waiting) if queue is not None else []
        self._n_waiting -= len(discarded)
        return discarded

    def __len__(self) -> int:
        return self._n_waiting

    def _find_next(self) -> _JobQueue[JobT] | None:
        focused = self._queues.get(self._play_head[0]) if self._play_head is not None else None
        if focused is not None and self._rank(focused, focused.waiting[0]).is_listened:
            return focused
        return self._ranked[0][1] if self._ranked else None

    def _insert(self, queue: _JobQueue[JobT]) -> None:
        if queue.waiting:
            queue.rank = queue.order(queue.waiting[0])
            self._queues[queue.job] = queue
            insort(self._ranked, (queue.rank, queue))

    def _remove(self, job: JobT) -> _JobQueue[JobT] | None:
        queue = self._queues.pop(job, None)
        if queue is not None:
            del self._ranked[bisect_left(self._ranked, (queue.rank, queue))]
        return queue

    def _rank(self, queue: _JobQueue[JobT], segment_idx: int) -> Priority:
        play_head = self._play_head
        if play_head is not None and play_head[0] == queue.job and segment_idx >= play_head[1]:
            return Priority(segment_idx - play_head[1])
        return Priority(order=queue.order(segment_idx))


MAX_UNSAVED = 64
"""Clips that may wait for the disk before generation pauses; bounds the memory."""

MAX_UNSAVED_S = 60.0
"""The same in seconds of sound: a line may last minutes, and to check one takes 10 MB a minute."""

_UNSAVED_S_PER_SLOT = 30.0
"""More where many lines are decoded at once, which may all end in the same moment."""

_IN_FLIGHT_S_PER_SEGMENT = 30.0
"""The same where segments aren't decoded together, for each that may be in flight."""

_S_PER_CHAR = 0.1
"""What a character is expected to take: half of what numbers take, and twice what words do."""


@dataclass(frozen=True, slots=True)
class QueuedSegment:
    """A segment that is next, its `priority` as in `SpeechRequest`, and the sound expected."""

    job: Job
    record: SegmentRecord
    priority: Callable[[], Priority]
    expected_s: float


@dataclass(slots=True)
class BackendQueue:
    """The segments that wait for one backend, and those in flight on it.

    Attributes:
        max_concurrency: Segments in flight on a backend without slots of its own.
        oom_retries: Segments that ran out of memory and wait for a retry, each alone.
        turns: The segments in flight; replaced, not changed, as the generating threads read it.
        unsaved: Segments in flight, and those whose sound isn't saved yet.
        unsaved_s: Seconds of sound that aren't saved yet, of segments that have ended.
        exclusive: Whether such a retry is in flight.
        spoken_s: When the last segment got its sound; monotonic seconds.
    """

    manager: ModelManager
    max_concurrency: int
    scheduler: SegmentScheduler[Job] = field(default_factory=SegmentScheduler)
    oom_retries: deque[QueuedSegment] = field(default_factory=deque)
    turns: tuple[QueuedSegment, ...] = ()
    unsaved: int = 0
    unsaved_s: float = 0.0
    exclusive: bool = False
    spoken_s: float = -math.inf

    @property
    def in_flight(self) -> int:
        return len(self.turns)

    @property
    def waiting(self) -> int:
        return len(self.scheduler) + len(self.oom_retries)

    @property
    def _in_slots(self) -> int:
        """Segments that a backend with slots accepts, also those it queues; 0 for any other."""
        can = self.manager.backend.capabilities
        return (can.slots or 0) * (2 if can.queues_requests else 1)

    @property
    def _weight(self) -> Callable[[str], float]:
        return self.manager.backend.capabilities.limits().weight

    def add(self, job: Job, segment_idxs: list[int]) -> None:
        """Queue the speech segments of a new job; on a batched backend the longest go first."""
        in_slots, weights = self._in_slots, dict[int, float]()
        weight = self._weight
        for segment_idx in segment_idxs if in_slots else ():
            weights[segment_idx] = _weigh(job.records[segment_idx], weight)
        self.scheduler.add(job, segment_idxs, weights, round_size=in_slots or 1)

    def take(self) -> QueuedSegment | None:
        """Take the next segment; None if none is waiting, or there is no room for one more."""
        if not self._has_room():
            return None
        self.exclusive = bool(self.oom_retries)
        if self.exclusive:
            return self.oom_retries.popleft()
        taken = self.scheduler.take()
        if taken is None:
            return None
        job, segment_idx, priority = taken
        record = job.records[segment_idx]
        return QueuedSegment(job, record, priority, _S_PER_CHAR * _weigh(record, self._weight))

    def begin(self, turn: QueuedSegment) -> None:
        """Count a segment as in flight and unsaved."""
        self.turns = (*self.turns, turn)
        self.unsaved += 1

    def end(self, turn: QueuedSegment) -> None:
        """Count a segment as in flight no more."""
        self.turns = tuple(one for one in self.turns if one is not turn)
        self.exclusive = False

    def gives_way(self, turn: QueuedSegment | None = None) -> bool:
        """Whether a segment, or any new one, has to wait until the one at the play-head sounds.

        So it is where lines in flight are computed side by side, not together: the first sound of
        the one that somebody waits for would come later by theirs. From any thread.
        """
        can = self.manager.backend.capabilities
        if not can.slots or can.queues_requests:
            return False
        silent = (one for one in self.turns if one.record.first_chunk_s is None)
        return any(one is not turn and one.priority().ahead == 0 for one in silent)

    def _has_room(self) -> bool:
        if self.oom_retries:
            return self.in_flight == 0
        if self.exclusive or self.unsaved >= MAX_UNSAVED + self._in_slots or self.gives_way():
            return False
        if self.unsaved_s >= MAX_UNSAVED_S + _UNSAVED_S_PER_SLOT * self._in_slots:
            return False
        if not self._in_slots:
            return self.in_flight < self.max_concurrency and self._has_room_for_sound()
        # The line at the play-head may exceed the bound, so that it waits in the backend.
        return self.in_flight < self._in_slots + self.scheduler.is_play_head_next()

    def _has_room_for_sound(self) -> bool:
        """Whether not too much sound is being made: a segment may last minutes."""
        most_s = _IN_FLIGHT_S_PER_SEGMENT * self.max_concurrency
        in_flight_s = sum(one.expected_s for one in self.turns)
        return self.in_flight == 0 or in_flight_s + self.unsaved_s < most_s

    def discard(self, job: Job) -> list[SegmentRecord]:
        """Remove the waiting segments of a job; returns them."""
        waiting = [job.records[idx] for idx in self.scheduler.discard(job)]
        waiting += [turn.record for turn in self.oom_retries if turn.job is job]
        self.oom_retries = deque(turn for turn in self.oom_retries if turn.job is not job)
        return waiting


def _weigh(record: SegmentRecord, weight: Callable[[str], float]) -> float:
    assert isinstance(record.segment, SpeechSegment)
    return sum(map(weight, record.segment.text))
