"""Renders the segments of all jobs with bounded concurrency, the one under the play-head first.

A segment in flight has a thread, from the first step of conditioning to the last sample. How many
there are, and which is next, the backend's `BackendQueue` decides. A segment gives its slot back
before its file is written, so generation goes on while files are saved.

A segment for which the memory didn't suffice is set aside until its lane is empty, and tried once
more with the device to itself. One that was cut before its end is tried once more at once, with
another seed, unless its line names one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, closing
from contextvars import Context
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from cachetools import LRUCache

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples, join_chunks, resample, write_wav
from studio.audio.decode import decode
from studio.audio.encode import change_tempo
from studio.audio.guarded_decode import decode_guarded
from studio.audio.line_edges import trim_edges
from studio.audio.stream_resume import StreamResume
from studio.backends.base import SPEED, Backend, Capabilities, SpeechRequest
from studio.dialog.planning import AudioSegment, SpeechSegment
from studio.engine.backend_queue import BackendQueue, QueuedSegment
from studio.engine.busy_time import find_device_clock
from studio.engine.event_log import EventLog, StateChange
from studio.engine.job import Job, SegmentRecord, SegmentState, SegmentTry
from studio.engine.model_manager import ModelManager
from studio.engine.model_pool import ConditioningCache, ModelPool
from studio.engine.speech_speed import SpeechSpeeds
from studio.engine.take_variation import TakeVariations, Variation
from studio.errors import (
    Cancelled,
    DiskFull,
    ModelUnavailable,
    OutOfMemory,
    ReadingChanged,
    SpeechFailed,
    StorageFailed,
    StudioError,
    hide_folders,
)
from studio.quality.checks import (
    CheckTake,
    ExpectedSpeech,
    FindWordIssues,
    QualityReport,
    TakeMetrics,
    build_expected_speech,
    check_take,
)

log = logging.getLogger(__name__)

SaveClip = Callable[[Path, Clip], None]
"""Writes a clip; called in threads."""

CheckClip = Callable[[Clip], QualityReport]
"""Checks the clip of a segment of speech; called in threads."""

_KEPT_SAMPLES = 256

_GIVING_WAY_S = 0.02
"""How often a segment asks whether the one at the play-head sounds, for which it waits."""


class Renderer:
    """Runs jobs on the engine's event loop; all its methods are called there.

    Attributes:
        check: Checks takes, in threads.
        find_word_issues: Compares the words of tries with their text, in threads; None without a
            recogniser.
    """

    def __init__(
        self,
        models: ModelPool,
        conditioning: ConditioningCache,
        *,
        max_concurrency: int,
        save: SaveClip = write_wav,
        speeds: SpeechSpeeds | None = None,
    ) -> None:
        """Render on the backends in `models`.

        Args:
            models: Loads and leases the backends.
            conditioning: Shared by all jobs.
            max_concurrency: Segments in flight on a backend that has no slots of its own.
            save: Writes a clip; called in threads.
            speeds: Measures how fast each backend speaks; None for nobody who asks.
        """
        self._models = models
        self._conditioning = conditioning
        self._max_concurrency = max_concurrency
        self._save = save
        self._speeds = speeds or SpeechSpeeds(None, "cpu")
        self._variations = TakeVariations()
        self.check: CheckTake = check_take
        self.find_word_issues: FindWordIssues | None = None
        # Guards the measurements of samples, by the digests of their files.
        self._samples_lock = threading.Lock()
        self._samples: LRUCache[str, TakeMetrics] = LRUCache(_KEPT_SAMPLES)
        self._queues: dict[str, BackendQueue] = {}
        self._jobs: list[Job] = []
        self._tasks: set[asyncio.Task[None]] = set()
        # Events of segments that wait for a load, set when their job is cancelled.
        self._load_waiters: dict[asyncio.Task[Any], Job] = {}
        # Not the loop's default executor, which is small: saving must not wait for speech.
        self._threads = ThreadPoolExecutor(max_workers=256, thread_name_prefix="speak")

    @property
    def in_flight(self) -> int:
        return sum(lane.in_flight for lane in self._queues.values())

    @property
    def queued(self) -> int:
        return sum(lane.waiting for lane in self._queues.values())

    def measure_silence_s(self, backend_name: str) -> float:
        """The longest time for which a line in flight has produced no audio; from any thread.

        Lines that a backend queues wait for each other: as long as one ends, none is silent.
        """
        jobs = [job for job in self._jobs if job.spec.backend_name == backend_name]
        silent_s = max((job.measure_silence_s() for job in jobs), default=0.0)
        manager = self._models.get_manager(backend_name)
        lane = self._queues.get(backend_name)
        if lane is not None and manager.backend.capabilities.queues_requests:
            silent_s = min(silent_s, time.monotonic() - lane.spoken_s)
        # Lines wait in their slots while the model is being loaded, which isn't a fault.
        return min(manager.loaded_for_s, silent_s)

    def set_max_concurrency(self, max_concurrency: int) -> None:
        """Change how many segments may be in flight; current ones run to their end."""
        self._max_concurrency = max_concurrency
        for lane in self._queues.values():
            lane.max_concurrency = max_concurrency
            self._start_ready(lane)

    def submit(self, job: Job) -> None:
        """Submit a job, which runs until its events end."""
        for one in self._jobs:
            if one.spec.gives_way:
                self.cancel(one)
        lane = self._get_queue(job.spec.backend_name)
        self._jobs = [*(one for one in self._jobs if not one.events.closed), job]
        lane.add(job, job.queue_speech())
        for record in job.records:
            if isinstance(record.segment, AudioSegment):
                self._start(self._render_audio(job, record, record.segment))
        self._start_ready(lane)

    def focus(self, job: Job, segment_idx: int) -> None:
        """Move a job's play-head to a segment: it and those after it go first."""
        lane = self._get_queue(job.spec.backend_name)
        lane.scheduler.focus(job, segment_idx)
        self._start_ready(lane)

    def cancel(self, job: Job) -> None:
        """Stop a job: no further segment starts, and those in flight stop at their next step."""
        if job.cancelled or job.events.closed:
            return
        job.cancelled = True
        for record in self._get_queue(job.spec.backend_name).discard(job):
            job.advance(record, SegmentState.CANCELLED)
        self._models.notify(StateChange.WORK)
        for task, waiting in self._load_waiters.items():
            if waiting is job:
                task.cancel()

    async def close(self) -> None:
        """Cancel all jobs and wait for their threads."""
        for job in self._jobs:
            self.cancel(job)
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._threads.shutdown()

    def _get_queue(self, backend_name: str) -> BackendQueue:
        if backend_name not in self._queues:
            manager = self._models.get_manager(backend_name)
            self._queues[backend_name] = BackendQueue(manager, self._max_concurrency)
        return self._queues[backend_name]

    def _start_ready(self, lane: BackendQueue) -> None:
        while (turn := lane.take()) is not None:
            lane.begin(turn)
            turn.job.start_segment(turn.record)
            self._start(self._render(lane, turn))
        self._models.notify(StateChange.WORK)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _render(self, lane: BackendQueue, turn: QueuedSegment) -> None:
        spoken: SynthesisResult | None = None
        try:
            spoken = await self._generate(lane, turn)
            if spoken is not None:
                await self._save_or_stop(turn.job, turn.record, spoken)
        finally:
            lane.unsaved -= 1
            lane.unsaved_s -= spoken.clip.duration_s if spoken is not None else 0.0
            self._start_ready(lane)

    async def _render_audio(self, job: Job, record: SegmentRecord, segment: AudioSegment) -> None:
        """Save a recording's audio with the other segments."""
        spoken = await decode_audio_segment(job, record, segment)
        if spoken is not None:
            await self._save_or_stop(job, record, spoken)

    async def _save_or_stop(self, job: Job, record: SegmentRecord, spoken: SynthesisResult) -> None:
        """Save a segment; the first for which the disk has no room stops its job."""
        try:
            check = partial(self._check_segment, job, record)
            await save_segment(job, record, spoken, save=self._save, check=check)
        except DiskFull as error:
            if job.fatal_message is not None:
                job.advance(record, SegmentState.CANCELLED)
                return
            job.fatal_message = str(error)
            self.cancel(job)
            job.fail(record, str(error), type(error).__name__)

    async def _generate(self, lane: BackendQueue, turn: QueuedSegment) -> SynthesisResult | None:
        """Speak a segment in a thread, with a slot and a lease; None if there is no audio."""
        job, record = turn.job, turn.record
        try:
            async with self._lease(lane.manager, job) as backend:
                self._start_ready(lane)  # loading the model may have changed its slots
                spoken = await self._synthesize_with_retry(backend, turn)
            lane.unsaved_s += spoken.clip.duration_s
            lane.spoken_s = time.monotonic()
            return spoken
        except Cancelled:
            # If the load was stopped, the next segment would only start it again.
            self.cancel(job)
            job.advance(record, SegmentState.CANCELLED)
        except ModelUnavailable as error:
            self._fail_job(lane, job, str(error))
            job.fail(record, str(error), type(error).__name__)
        except OutOfMemory as error:
            self._queue_oom_retry(lane, turn, error)
        except StudioError as error:
            job.fail(record, str(error), type(error).__name__)
        # Broad, because here any fault of a backend becomes a record, and other segments go on.
        except Exception as error:
            log.exception("job %s segment %d", job.job_id, record.segment.segment_idx)
            job.fail(
                record, describe_fault(lane.manager.backend.title, error), type(error).__name__
            )
        finally:
            lane.end(turn)
            job.release_slot()
            self._start_ready(lane)
        return None

    @asynccontextmanager
    async def _lease(self, manager: ModelManager, job: Job) -> AsyncIterator[Backend]:
        """Lease a backend; a cancelled job doesn't wait for its load to end."""
        task = asyncio.current_task()
        assert task is not None
        async with AsyncExitStack() as stack:
            self._load_waiters[task] = job
            try:
                backend = await stack.enter_async_context(manager.using())
            except asyncio.CancelledError:
                if not job.cancelled:
                    raise
                task.uncancel()
                raise Cancelled("The line was cancelled before it was spoken.") from None
            finally:
                del self._load_waiters[task]
            yield backend

    def _queue_oom_retry(self, lane: BackendQueue, turn: QueuedSegment, error: OutOfMemory) -> None:
        """Queue a segment that ran out of memory for its only retry."""
        job, record = turn.job, turn.record
        if lane.exclusive:
            job.fail(record, str(error), type(error).__name__)
        elif job.cancelled:
            job.advance(record, SegmentState.CANCELLED)
        else:
            log.info("job %s segment %d: %s", job.job_id, record.segment.segment_idx, error)
            job.advance(record, SegmentState.QUEUED)
            lane.oom_retries.append(turn)

    async def _synthesize_with_retry(
        self, backend: Backend, turn: QueuedSegment
    ) -> SynthesisResult:
        """Speak a segment, and retry it once if it was cut off."""
        job, record = turn.job, turn.record
        spoken = await self._synthesize_once(backend, turn)
        if spoken.cut_error is None and job.spec.tries > 1:
            return await self._retry_for_quality(backend, turn, spoken)
        if spoken.cut_error is None or not may_retry(record) or job.cancelled:
            return spoken
        segment = record.segment
        assert isinstance(segment, SpeechSegment)
        seed = derive_cut_retry_seed(segment.seed, backend.capabilities.take_seeds[0])
        job.restart_segment(record, str(spoken.cut_error), seed)
        try:
            return await self._synthesize_once(backend, turn)
        except OutOfMemory:
            raise
        except SpeechFailed as error:
            # The retry gave no audio, so that of the first try stays.
            log.info("job %s segment %d: %s", job.job_id, record.segment.segment_idx, error)
            return spoken

    async def _retry_for_quality(
        self, backend: Backend, turn: QueuedSegment, spoken: SynthesisResult
    ) -> SynthesisResult:
        """Retry a segment with quality issues, each time with another seed; keep the best try."""
        job, record, segment = turn.job, turn.record, turn.record.segment
        assert isinstance(segment, SpeechSegment)
        seed, tries = segment.seed, 1 if segment.seed_is_own else job.spec.tries
        spoken, latest = await self._record_try(turn, spoken, seed)
        fewest = latest.score
        for _ in range(1, tries):
            if not latest.issues or job.cancelled:
                break
            seed = derive_quality_retry_seed(seed, backend.capabilities.take_seeds[0])
            job.restart_segment(record, latest.issues[0].message, seed)
            try:
                fresh = await self._synthesize_once(backend, turn)
            except SpeechFailed as error:
                log.info("job %s segment %d: %s", job.job_id, segment.segment_idx, error)
                break  # the audio so far can be played
            if fresh.cut_error is not None:
                continue
            if np.array_equal(fresh.clip.samples, spoken.clip.samples):
                # The voice says it the same way again, which is no further try.
                record.retry_reason = record.retry_reason if len(record.tries) > 1 else None
                break
            fresh, latest = await self._record_try(turn, fresh, seed)
            if latest.score < fewest:
                spoken, fewest = fresh, latest.score
                record.best_try = len(record.tries) - 1
        return spoken

    async def _record_try(
        self, turn: QueuedSegment, spoken: SynthesisResult, seed: int | None
    ) -> tuple[SynthesisResult, SegmentTry]:
        """Check a try, and keep what was found with its audio."""
        job, record = turn.job, turn.record
        report = await asyncio.to_thread(self._check_try, job, record, spoken.clip)
        issues = job.find_try_issues(record, report)
        path = job.try_path(record, len(record.tries) + 1) if job.spec.tries > 1 else None
        if path is not None:
            try:
                await asyncio.to_thread(self._save, path, spoken.clip)
            except StorageFailed as error:
                log.info("job %s segment %d: %s", job.job_id, record.segment.segment_idx, error)
                path = None
        record.tries.append(SegmentTry(seed, report, len(spoken.clip), issues, path))
        return replace(spoken, report=report), record.tries[-1]

    def _check_segment(self, job: Job, record: SegmentRecord, clip: Clip) -> QualityReport:
        """Check a segment's speech, and compare it with its sample; runs in a thread."""
        report = self.check(clip, build_expected_speech(record.segment))
        sample = self._measure_sample(job, record)
        if sample is None:
            return report
        metrics = replace(report.metrics, sample_mean_pitch=sample.mean_pitch)
        return replace(report, metrics=metrics)

    def _measure_sample(self, job: Job, record: SegmentRecord) -> TakeMetrics | None:
        """The measurements of the sample that a segment's voice is cloned from."""
        segment = record.segment
        assert isinstance(segment, SpeechSegment)
        try:
            sample = job.spec.cast.load_voice(segment.speaker, segment.mood).sample
        except StudioError:  # it was removed meanwhile
            return None
        if sample is None:
            return None
        with self._samples_lock:
            if sample.sha256 not in self._samples:
                self._samples[sample.sha256] = self.check(sample.clip, ExpectedSpeech("")).metrics
            return self._samples[sample.sha256]

    def _check_try(self, job: Job, record: SegmentRecord, clip: Clip) -> QualityReport:
        """Check the sound and the words of a try; runs in a thread."""
        report = self._check_segment(job, record, clip)
        if self.find_word_issues is None:
            return report
        try:
            found = self.find_word_issues(clip, build_expected_speech(record.segment))
        except StudioError as error:
            log.warning("the words of a try weren't checked: %s", error)
            return report
        return replace(report, issues=report.issues + found)

    async def _synthesize_once(self, backend: Backend, turn: QueuedSegment) -> SynthesisResult:
        loop = asyncio.get_running_loop()
        lane = self._get_queue(turn.job.spec.backend_name)

        def follow() -> None:
            if turn.priority().ahead == 0:
                loop.call_soon_threadsafe(self._start_ready, lane)
            while lane.gives_way(turn) and not turn.job.cancelled:
                time.sleep(_GIVING_WAY_S)

        known = self._conditioning, self._speeds, self._variations
        work = partial(synthesize, backend, turn, *known, follow)
        try:
            return await loop.run_in_executor(self._threads, work)
        except ReadingChanged as error:
            # Nothing may be joined to what was streamed, so the whole line is read once more.
            turn.job.withdraw_audio(turn.record)
            segment_idx = turn.record.segment.segment_idx
            log.info("job %s segment %d: %s", turn.job.job_id, segment_idx, error)
            return await loop.run_in_executor(self._threads, work)

    def _fail_job(self, lane: BackendQueue, job: Job, message: str) -> None:
        """Fail all waiting segments of a job at once, if the model can't be loaded."""
        job.fatal_message = message
        for record in lane.discard(job):
            job.fail(record, message, "ModelUnavailable")


@dataclass(frozen=True, slots=True)
class SynthesisResult:
    """The audio of a segment.

    Attributes:
        clip: At the studio's rate.
        live: Its chunks as they were streamed; joined, they are the clip.
        cut_error: Why it is incomplete; None if it is complete.
        report: Its quality report, if it was checked already.
    """

    clip: Clip
    live: EventLog[Samples]
    cut_error: SpeechFailed | None = None
    report: QualityReport | None = None


def may_retry(record: SegmentRecord) -> bool:
    """Whether a segment that was cut off may be retried with another seed."""
    segment = record.segment
    assert isinstance(segment, SpeechSegment)
    return record.retry_reason is None and not segment.seed_is_own


def synthesize(
    backend: Backend,
    turn: QueuedSegment,
    conditioning: ConditioningCache,
    speeds: SpeechSpeeds,
    variations: TakeVariations,
    follow: Callable[[], None],
) -> SynthesisResult:
    """Do everything for a segment that needs the backend; runs in a thread.

    `follow` is called after each chunk, and may wait for another segment.

    Raises:
        SpeechFailed: There is no audio; speech that was cut off is returned instead.
        ReadingChanged: It can't be joined to what an earlier try streamed.
        OutOfMemory: The device has no room for it.
        Cancelled: The job was.
    """
    job, record = turn.job, turn.record
    if job.cancelled:
        raise Cancelled
    request = _build_request(backend, turn, conditioning)
    variation = variations.find(backend, request)
    job.begin_synthesis(record)
    live, cut = record.live, None
    # After a lack of memory the first try's audio was streamed already.
    resume = StreamResume(partial(job.add_chunk, record), live.read())
    try:
        with (
            job.spec.busy.span(find_device_clock(backend, job.measure_elapsed_s)),
            speeds.span(backend.name, lambda: resume.delivered_s),
            closing(_generate_chunks(backend, request, turn, variation)) as spoken,
        ):
            for chunk in spoken:
                if job.cancelled:
                    raise Cancelled
                resume.take(chunk)
                follow()
        resume.end()
    except (OutOfMemory, ReadingChanged):
        raise
    except SpeechFailed as error:
        if not resume.chunks:
            raise
        cut = error
    if not resume.chunks:
        raise SpeechFailed(f"{backend.title} made no sound for this line.")
    return SynthesisResult(Clip(join_chunks(resume.chunks)), live, cut)


def derive_cut_retry_seed(seed: int | None, least: int = 0) -> int | None:
    """The seed of the retry of speech that was cut off, derived from the first seed.

    Args:
        seed: None where the backend chooses one for itself.
        least: Of those of its new takes; above 0 any other changes nothing.
    """
    return _derive_seed(seed, "second try", least)


def derive_quality_retry_seed(seed: int | None, least: int = 0) -> int | None:
    """The seed of the next quality retry, other than that of a retry after a cut."""
    return _derive_seed(seed, "further try", least)


def _derive_seed(seed: int | None, why: str, least: int) -> int | None:
    if seed is None and not least:
        return None
    digest = hashlib.sha256(f"{why} {seed}".encode()).digest()
    return least + (int.from_bytes(digest[:4]) >> 1)  # 31 bits, which every backend takes


def _build_request(
    backend: Backend, turn: QueuedSegment, conditioning: ConditioningCache
) -> SpeechRequest:
    job, record, segment = turn.job, turn.record, turn.record.segment
    assert isinstance(segment, SpeechSegment)
    voice = job.spec.cast.load_voice(segment.speaker, segment.mood).with_instruction(
        segment.instruct
    )
    own = backend.capabilities.params
    return SpeechRequest(
        text=segment.text,
        conditioning=conditioning.get(backend, voice),
        language=segment.language,
        seed=segment.seed if record.retry_reason is None else record.seed,
        params={one.name: segment.params[one.name] for one in own if one.name in segment.params},
        cancelled=lambda: job.cancelled,
        priority=turn.priority,
        is_evened=job.spec.cast.evens_lines,
    )


def _find_tempo(backend: Backend, record: SegmentRecord) -> float:
    """How much faster a segment is to be than the backend speaks it."""
    assert isinstance(record.segment, SpeechSegment)
    if backend.capabilities.has_own_speed:
        return 1.0
    return float(record.segment.params.get(SPEED.name, 1.0))


def _generate_chunks(
    backend: Backend, request: SpeechRequest, turn: QueuedSegment, variation: Variation
) -> Generator[Samples]:
    """A backend's chunks at the studio's rate; closing this iterator closes the backend's."""
    can, speed = backend.capabilities, variation.pace / variation.pitch
    if can.has_own_speed and speed != 1.0:
        request, speed = _speed_up(can, request, speed), 1.0
    speed *= _find_tempo(backend, turn.record)
    rate_hz = round(can.sample_rate_hz * variation.pitch)
    spoken: Iterator[Samples] = backend.speak(request)
    if rate_hz != STUDIO_RATE_HZ:
        spoken = resample(spoken, rate_hz, STUDIO_RATE_HZ)
    if speed != 1.0:
        spoken = change_tempo(spoken, speed)
    begins, ends = turn.job.find_edges(turn.record)
    yield from trim_edges(spoken, begins=begins, ends=ends) if begins or ends else spoken


def _speed_up(can: Capabilities, request: SpeechRequest, times: float) -> SpeechRequest:
    """A request for the model's own speed, so many times as fast as it is, within its range."""
    own = next(one for one in can.params if one.name == SPEED.name)
    speed = float(request.params.get(SPEED.name, own.default)) * times
    speed = min(own.maximum, max(own.minimum, speed))
    return replace(request, params={**request.params, SPEED.name: speed})


async def save_segment(
    job: Job, record: SegmentRecord, spoken: SynthesisResult, *, save: SaveClip, check: CheckClip
) -> None:
    """Write generated audio to disk in a thread; a segment that was cut off is saved and fails.

    Raises:
        DiskFull: The disk has no room for it, and the job can't do without.
    """
    record.samples = len(spoken.clip)
    if spoken.cut_error is None:
        job.advance(record, SegmentState.GENERATED)
    # An earlier try may be the best; who listens to the last one can't be given the rest of it.
    record.live.close(withdrawn=spoken.live is not record.live)
    try:
        report = await asyncio.to_thread(
            _keep_and_check, job, record, spoken, save=save, check=check
        )
        if report is not None:
            job.add_report(record, report)
    except DiskFull:
        raise
    except StudioError as error:
        job.fail(record, str(error), type(error).__name__)
    # Broad, as the job would otherwise never learn that this segment has ended.
    except Exception as error:
        log.exception("job %s segment %d", job.job_id, record.segment.segment_idx)
        job.fail(record, describe_fault("Saving", error), type(error).__name__)
    else:
        if spoken.cut_error is None:
            job.advance(record, SegmentState.SAVED)
        else:
            record.cut = True
            job.fail(record, str(spoken.cut_error), type(spoken.cut_error).__name__)


def _keep_and_check(
    job: Job, record: SegmentRecord, spoken: SynthesisResult, *, save: SaveClip, check: CheckClip
) -> QualityReport | None:
    """Write a clip, or keep it in memory, and check its quality; runs in a thread."""
    try:
        if job.spec.folder is None:
            record.clip = spoken.clip
        else:
            path = job.segment_path(record)
            save(path, spoken.clip)
            record.path = path
    except DiskFull:
        if not job.spec.survives_full_disk:
            raise
        record.clip = spoken.clip
    if spoken.cut_error is not None or not isinstance(record.segment, SpeechSegment):
        return None
    return spoken.report or check(spoken.clip)


async def decode_audio_segment(
    job: Job, record: SegmentRecord, segment: AudioSegment
) -> SynthesisResult | None:
    """Convert an audio line to the studio's rate; None if it failed."""
    try:
        clip = await asyncio.to_thread(_decode_audio, job, segment)
    except StudioError as error:
        job.fail(record, str(error), type(error).__name__)
        return None
    # Broad, as any fault of a decoder becomes a record, and other segments go on.
    except Exception as error:
        log.exception("job %s segment %d", job.job_id, record.segment.segment_idx)
        job.fail(record, describe_fault("Decoding", error), type(error).__name__)
        return None
    job.add_chunk(record, clip.samples)
    return SynthesisResult(clip, record.live)


def _decode_audio(job: Job, segment: AudioSegment) -> Clip:
    path = job.spec.resolve_audio(segment.path)
    if not job.spec.is_part:
        return decode(path)
    # A project may come from a stranger, so its recordings are decoded in a guarded process. In a
    # context of its own: this job outlives the request that began it.
    return Context().run(decode_guarded, path)[1]


def describe_fault(who: str, error: Exception) -> str:
    """The message of a line for an unexpected error."""
    return hide_folders(f"{who} failed on this line ({type(error).__name__}: {error}).")
