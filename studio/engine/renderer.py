"""Renders the segments of all jobs with bounded concurrency, the one under the play-head first.

A backend's lane holds at most `bound` segments in flight: in a thread each, from the first step
of conditioning to the last sample. A segment gives its slot back before its file is written, so
generation goes on while files are saved.

A segment for which the memory didn't suffice is set aside until its lane is empty, and tried once
more with the device to itself. One that was cut before its end is tried once more at once, with
another seed, unless its line names one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

from studio.audio.encode import write_wav
from studio.backends.base import Backend
from studio.dialog.planning import AudioSegment, SpeechSegment
from studio.engine.backend_queue import BackendQueue, QueuedSegment
from studio.engine.conditioning_cache import ConditioningCache
from studio.engine.job import Job, SegmentRecord, SegmentState
from studio.engine.model_manager import ModelManager
from studio.engine.model_pool import ModelPool
from studio.engine.segment_synthesis import (
    SaveClip,
    SynthesisResult,
    derive_cut_retry_seed,
    derive_quality_retry_seed,
    describe_fault,
    may_retry,
    save_audio_segment,
    save_segment,
    synthesize,
)
from studio.errors import Cancelled, ModelUnavailable, OutOfMemory, SpeechFailed, StudioError
from studio.quality.checks import check_take, score_issues
from studio.quality.expected_duration import build_expected_speech

log = logging.getLogger(__name__)


class Renderer:
    """Runs jobs on the engine's event loop; all its methods are called there."""

    def __init__(
        self,
        models: ModelPool,
        conditioning: ConditioningCache,
        *,
        max_concurrency: int,
        save: SaveClip = write_wav,
    ) -> None:
        """Serve jobs for the backends in `models`.

        Args:
            models: Loads and leases the backends.
            conditioning: Shared by all jobs.
            max_concurrency: Segments in flight on a backend that has no slots of its own.
            save: Writes a clip; called in threads.
        """
        self._models = models
        self._conditioning = conditioning
        self._max_concurrency = max_concurrency
        self._save = save
        self._lanes: dict[str, BackendQueue] = {}
        self._jobs: dict[str, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Segments that wait for a load, to be woken when their job is cancelled.
        self._at_the_door: dict[asyncio.Task[Any], Job] = {}
        # Replaced whole: threads that speak read it.
        self._play_head: tuple[Job, int] | None = None
        # Not the loop's default executor: that one is small, and saves must not wait for speech.
        self._threads = ThreadPoolExecutor(max_workers=256, thread_name_prefix="speak")

    @property
    def in_flight(self) -> int:
        """Segments being generated now, on all backends."""
        return sum(lane.in_flight for lane in self._lanes.values())

    @property
    def queued(self) -> int:
        """Segments waiting for a slot, on all backends."""
        return sum(lane.waiting for lane in self._lanes.values())

    def silent_s(self, backend_name: str) -> float:
        """How long a line in flight has made no sound, the longest; from any thread."""
        jobs = [job for job in list(self._jobs.values()) if job.order.backend_name == backend_name]
        # While a model is loaded, lines wait for it in their slots.
        loaded_s = self._models.manager(backend_name).loaded_for_s
        return min(loaded_s, max((job.silent_s() for job in jobs), default=0.0))

    def bound_by(self, max_concurrency: int) -> None:
        """Let as many segments be in flight from now on; those that are go on to their end."""
        self._max_concurrency = max_concurrency
        for lane in self._lanes.values():
            lane.max_concurrency = max_concurrency
            self._pump(lane)

    def submit(self, job: Job) -> None:
        """Take a job on; it runs until its event feed closes."""
        lane = self._lane(job.order.backend_name)
        self._jobs = {key: one for key, one in self._jobs.items() if not one.events.closed}
        self._jobs[job.job_id] = job
        lane.add(job, job.settle())
        for record in job.records:
            if isinstance(record.segment, AudioSegment):
                self._start(save_audio_segment(job, record, record.segment, self._save))
        self._pump(lane)

    def focus(self, job: Job, segment_idx: int) -> None:
        """Somebody listens to this job, at this segment: it and what follows go first."""
        self._play_head = (job, segment_idx)
        lane = self._lane(job.order.backend_name)
        lane.scheduler.focus(job.job_id, segment_idx)
        self._pump(lane)

    def cancel(self, job: Job) -> None:
        """Stop a job: nothing more is started, and what is in flight stops at its next step."""
        if job.cancelled or job.events.closed:
            return
        job.cancelled = True
        for record in self._lane(job.order.backend_name).discard(job):
            job.advance(record, SegmentState.CANCELLED)
        for task, waiting in self._at_the_door.items():
            if waiting is job:
                task.cancel()

    async def close(self) -> None:
        """Cancel all jobs and wait for their threads."""
        for job in self._jobs.values():
            self.cancel(job)
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._threads.shutdown()

    def _lane(self, backend_name: str) -> BackendQueue:
        if backend_name not in self._lanes:
            manager = self._models.manager(backend_name)
            self._lanes[backend_name] = BackendQueue(manager, self._max_concurrency)
        return self._lanes[backend_name]

    def _pump(self, lane: BackendQueue) -> None:
        while lane.has_room():
            lane.one_alone = bool(lane.set_aside)
            turn = lane.set_aside.popleft() if lane.one_alone else self._next_turn(lane)
            if turn is None:
                return
            job, record = turn
            lane.in_flight += 1
            lane.unsaved += 1
            job.begin(record)
            self._start(self._render(lane, job, record))

    def _next_turn(self, lane: BackendQueue) -> QueuedSegment | None:
        taken = lane.scheduler.take()
        if taken is None:
            return None
        job = self._jobs[taken[0]]
        return job, job.records[taken[1]]

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _render(self, lane: BackendQueue, job: Job, record: SegmentRecord) -> None:
        try:
            spoken = await self._generate(lane, job, record)
            if spoken is not None:
                await save_segment(job, record, spoken, self._save)
        finally:
            lane.unsaved -= 1
            self._pump(lane)

    async def _generate(
        self, lane: BackendQueue, job: Job, record: SegmentRecord
    ) -> SynthesisResult | None:
        """Speak a segment in a thread, holding a slot and a lease; None when there is no sound."""
        try:
            async with self._lease(lane.manager, job) as backend:
                self._pump(lane)  # a load may have told of more slots
                return await self._spoken(backend, job, record)
        except Cancelled:
            # When it was the load that was stopped: the next segment would only begin it anew.
            self.cancel(job)
            job.advance(record, SegmentState.CANCELLED)
        except ModelUnavailable as error:
            self._give_up(lane, job, str(error))
            job.fail(record, str(error), type(error).__name__)
        except OutOfMemory as error:
            self._set_aside(lane, job, record, error)
        except StudioError as error:
            job.fail(record, str(error), type(error).__name__)
        # The one place where a backend's own fault becomes a record: the other segments go on.
        except Exception as error:
            log.exception("job %s segment %d", job.job_id, record.segment.segment_idx)
            job.fail(
                record, describe_fault(lane.manager.backend.title, error), type(error).__name__
            )
        finally:
            lane.in_flight -= 1
            lane.one_alone = False
            job.leave()
            self._pump(lane)
        return None

    @asynccontextmanager
    async def _lease(self, manager: ModelManager, job: Job) -> AsyncIterator[Backend]:
        """Lease a backend; a cancelled job doesn't wait for its load to end."""
        task = asyncio.current_task()
        assert task is not None
        async with AsyncExitStack() as stack:
            self._at_the_door[task] = job
            try:
                backend = await stack.enter_async_context(manager.using())
            except asyncio.CancelledError:
                if not job.cancelled:
                    raise
                task.uncancel()
                raise Cancelled("The line was cancelled before it was spoken.") from None
            finally:
                del self._at_the_door[task]
            yield backend

    def _set_aside(
        self, lane: BackendQueue, job: Job, record: SegmentRecord, error: OutOfMemory
    ) -> None:
        """Let a segment that found no memory wait for the second try, of which there is one."""
        if lane.one_alone:
            job.fail(record, str(error), type(error).__name__)
        elif job.cancelled:
            job.advance(record, SegmentState.CANCELLED)
        else:
            log.info("job %s segment %d: %s", job.job_id, record.segment.segment_idx, error)
            job.advance(record, SegmentState.QUEUED)
            lane.set_aside.append((job, record))

    def _urgency(self, job: Job, segment_idx: int) -> int | None:
        """Segments between the play-head and this one; called from any thread."""
        if self._play_head is None or self._play_head[0] is not job:
            return None
        ahead = segment_idx - self._play_head[1]
        return ahead if ahead >= 0 else None

    async def _spoken(self, backend: Backend, job: Job, record: SegmentRecord) -> SynthesisResult:
        """Speak a segment, and once more where it was cut."""
        spoken = await self._try(backend, job, record)
        if spoken.cut is None and job.order.tries > 1:
            return await self._least_doubtful(backend, job, record, spoken)
        if spoken.cut is None or not may_retry(record) or job.cancelled:
            return spoken
        segment = record.segment
        assert isinstance(segment, SpeechSegment)
        job.start_again(record, str(spoken.cut), derive_cut_retry_seed(segment.seed))
        try:
            return await self._try(backend, job, record)
        except OutOfMemory:
            raise
        except SpeechFailed as error:
            # Not a sound this time: what the first try made is all there is to hear.
            log.info("job %s segment %d: %s", job.job_id, record.segment.segment_idx, error)
            return spoken

    async def _least_doubtful(
        self, backend: Backend, job: Job, record: SegmentRecord, spoken: SynthesisResult
    ) -> SynthesisResult:
        """Speak a doubtful segment again, each time with another seed, and keep the best."""
        segment = record.segment
        assert isinstance(segment, SpeechSegment)
        said, seed = build_expected_speech(segment), segment.seed
        tries = 1 if segment.seed_is_own else job.order.tries
        doubts = (await asyncio.to_thread(check_take, spoken.clip, said)).doubts
        fewest = score_issues(doubts)
        for _ in range(1, tries):
            if not doubts or job.cancelled:
                break
            seed = derive_quality_retry_seed(seed)
            job.start_again(record, doubts[0].message, seed)
            try:
                fresh = await self._try(backend, job, record)
            except SpeechFailed as error:
                log.info("job %s segment %d: %s", job.job_id, segment.segment_idx, error)
                break  # what there is can be heard
            if fresh.cut is not None:
                continue
            doubts = (await asyncio.to_thread(check_take, fresh.clip, said)).doubts
            if score_issues(doubts) < fewest:
                spoken, fewest = fresh, score_issues(doubts)
        return spoken

    async def _try(self, backend: Backend, job: Job, record: SegmentRecord) -> SynthesisResult:
        work = partial(
            synthesize,
            backend,
            job,
            record,
            conditioning=self._conditioning,
            urgency=lambda: self._urgency(job, record.segment.segment_idx),
        )
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _give_up(self, lane: BackendQueue, job: Job, message: str) -> None:
        """Without a model, what still waits of a job would fail one by one: fail it at once."""
        job.gave_up = message
        for record in lane.discard(job):
            job.fail(record, message, "ModelUnavailable")
