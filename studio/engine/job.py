"""A render job: its spec, the state of each segment, and the events that followers read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.dialog.planning import FailedSegment, Plan, Segment, SilenceSegment, SpeechSegment
from studio.engine.feed import Feed
from studio.quality.checks import QualityReport
from studio.voices.cast import Cast


class SegmentState(StrEnum):
    """How far a segment is. Silence and existing audio go from planned to saved.

    A segment that found no memory goes from started back to queued, once. One that was cut may be
    started again, with another seed and a message, also once.
    """

    PLANNED = "planned"
    QUEUED = "queued"
    STARTED = "started"
    GENERATED = "generated"
    SAVED = "saved"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL_STATES = frozenset({SegmentState.SAVED, SegmentState.FAILED, SegmentState.CANCELLED})


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One step of a job; `segment_idx` None when it concerns the job as a whole."""

    state: str
    at_s: float
    segment_idx: int | None = None
    samples: int | None = None
    message: str | None = None


@dataclass(slots=True)
class SegmentRecord:
    """One segment's fate.

    Attributes:
        samples: Length at the studio's rate, known when generated.
        path: The saved WAV; None for silence, and until saved. That of a segment that failed holds
            what was made before it was cut.
        message: Why it failed.
        fault: What kind of error it was, by the name of its class.
        cut: Whether it failed by not coming to its end, so that its audio isn't whole.
        retry_reason: Why a first try was thrown away; None when there was just one.
        live: Chunks of a speech segment as they are generated; closed when all are there. A second
            try with another seed has a new one, and the former is withdrawn.
        at_s: When each state was reached, in seconds since the job began.
        first_chunk_s: When the first audio was there.
        last_chunk_s: When the latest was.
        streamed_samples: How much could be heard of it so far, at the studio's rate.
        seed: Of the latest try, where that isn't the segment's own.
        report: What its samples tell; of speech that came to its end, known when saved.
    """

    segment: Segment
    state: SegmentState = SegmentState.PLANNED
    samples: int | None = None
    path: Path | None = None
    message: str | None = None
    fault: str | None = None
    cut: bool = False
    retry_reason: str | None = None
    live: Feed[Samples] = field(default_factory=Feed)
    at_s: dict[SegmentState, float] = field(default_factory=dict)
    first_chunk_s: float | None = None
    last_chunk_s: float = 0.0
    streamed_samples: int = 0
    seed: int | None = None
    report: QualityReport | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in FINAL_STATES


log = logging.getLogger(__name__)


MAX_TRIES = 4
"""How often a doubtful line may be spoken at most."""


class JobState(StrEnum):
    """How far a job is; `done` also when some segments failed."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class SegmentFailure:
    """A segment that could not be spoken, with the script's line.

    Attributes:
        cut: Whether a part of it was spoken, which can be heard.
    """

    segment_idx: int
    line_number: int
    message: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class JobSummary:
    """A job in figures, in seconds; `first_audio_s` until the scene can be heard from its start."""

    audio_s: float
    wall_s: float
    first_audio_s: float | None
    max_in_flight: int
    failed: int


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a job is to render, and with what.

    Attributes:
        plan: The segments.
        backend_name: Who speaks.
        cast: Whose voice each speaker has.
        folder: An existing folder for the segments' files.
        resolve_audio: From a path as written in the script to a file; raises `AudioRejected`
            for one that may not be read.
        notify: Told each event after the job has it, on the engine's loop: it must not wait.
        is_part: It is one of many jobs of a render, whose owner tells of them together.
        tries: How often a segment is spoken at most while it is doubtful; the least doubtful stays.
    """

    plan: Plan
    backend_name: str
    cast: Cast
    folder: Path
    resolve_audio: Callable[[str], Path]
    notify: Callable[[JobEvent], None] = lambda _: None
    is_part: bool = False
    tries: int = 1


class Job:
    """A render owned by the server; any number of pages may watch it.

    The engine's loop changes it; other threads only read.

    Attributes:
        fatal_message: Why no segment can be spoken at all, such as a model that can't be loaded.
    """

    def __init__(
        self, job_id: str, order: JobSpec, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Lay out the records of an order's plan; `job_id` is unique."""
        self.job_id = job_id
        self.spec = order
        self.state = JobState.RUNNING
        self.events: Feed[JobEvent] = Feed()
        self.in_flight = 0
        self.max_in_flight = 0
        self.cancelled = False
        self.fatal_message: str | None = None
        self._clock = clock
        self._began_s = clock()
        self._ended_s: float | None = None
        self.records = [SegmentRecord(segment) for segment in order.plan.segments]
        self._open = len(self.records)
        for record in self.records:
            self._record_state(record, SegmentState.PLANNED)

    def queue_speech(self) -> list[int]:
        """Finish what needs no backend; returns the speech segments, which now are queued.

        Audio lines stay planned: the caller lays them in.
        """
        speech = []
        for record in self.records:
            segment = record.segment
            if isinstance(segment, SilenceSegment):
                record.samples = round(segment.duration_s * STUDIO_RATE_HZ)
                self.advance(record, SegmentState.SAVED)
            elif isinstance(segment, FailedSegment):
                self.fail(record, segment.message, "BadInput")
            elif isinstance(segment, SpeechSegment):
                self.advance(record, SegmentState.QUEUED)
                speech.append(segment.segment_idx)
        self._end_if_all_final()
        return speech

    def segment_path(self, record: SegmentRecord) -> Path:
        """Where a segment's WAV goes."""
        return self.spec.folder / f"{record.segment.segment_idx:05d}.wav"

    def start_segment(self, record: SegmentRecord) -> None:
        """A slot took the segment."""
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        self.advance(record, SegmentState.STARTED)

    def restart_segment(self, record: SegmentRecord, why: str, seed: int | None) -> None:
        """A segment's try is thrown away, and what was heard of it with it; the next has a seed."""
        previous, record.live = record.live, Feed()
        record.retry_reason, record.seed = why, seed
        record.streamed_samples, record.first_chunk_s = 0, None
        previous.withdraw()
        segment_idx = record.segment.segment_idx
        log.info("job %s segment %d starts again: %s", self.job_id, segment_idx, why)
        self._publish(JobEvent(record.state, self.measure_elapsed_s(), segment_idx, message=why))

    def release_slot(self) -> None:
        """A segment gave its slot back."""
        self.in_flight -= 1

    def add_chunk(self, record: SegmentRecord, chunk: Samples) -> None:
        """A chunk was generated; called from the thread that generates."""
        if record.first_chunk_s is None:
            record.first_chunk_s = self.measure_elapsed_s()
        record.last_chunk_s = self.measure_elapsed_s()
        record.streamed_samples += len(chunk)
        record.live.append(chunk)

    def advance(self, record: SegmentRecord, state: SegmentState) -> None:
        """Move a segment on and tell everybody."""
        assert record.state not in FINAL_STATES
        record.state = state
        self._record_state(record, state)
        if record.is_final:
            record.live.close()
            # Readers under way keep the old feed; later ones find the file. Frees the chunks.
            record.live = Feed()
            record.live.close()
            self._open -= 1
            self._end_if_all_final()

    def fail(self, record: SegmentRecord, message: str, fault: str = "SpeechFailed") -> None:
        """Leave an error record at the segment's place; `fault` is the error's class."""
        record.message = message
        record.fault = fault
        self.advance(record, SegmentState.FAILED)

    def measure_silence_s(self) -> float:
        """How long the segment in flight that was silent for the longest has made no sound."""
        if not self.in_flight:
            return 0.0
        signs_s = [
            max(record.at_s[SegmentState.STARTED], record.last_chunk_s)
            for record in self.records
            if record.state is SegmentState.STARTED
        ]
        return self.measure_elapsed_s() - min(signs_s) if signs_s else 0.0

    def list_failures(self) -> tuple[SegmentFailure, ...]:
        """What could not be spoken, in order."""
        return tuple(
            _build_failure(record, record.message or "")
            for record in self.records
            if record.state is SegmentState.FAILED
        )

    def list_retries(self) -> tuple[SegmentFailure, ...]:
        """Segments of which another try is kept or was made, and why one was thrown away."""
        return tuple(
            _build_failure(record, record.retry_reason)
            for record in self.records
            if record.retry_reason is not None and record.state is SegmentState.SAVED
        )

    def summarize(self) -> JobSummary:
        """The job in figures, so far."""
        samples = sum(
            record.samples or 0 for record in self.records if record.state is SegmentState.SAVED
        )
        return JobSummary(
            audio_s=samples / STUDIO_RATE_HZ,
            wall_s=self._ended_s if self._ended_s is not None else self.measure_elapsed_s(),
            first_audio_s=self._first_audio_s(),
            max_in_flight=self.max_in_flight,
            failed=len(self.list_failures()),
        )

    def measure_elapsed_s(self) -> float:
        """Seconds since the job began."""
        return self._clock() - self._began_s

    def _first_audio_s(self) -> float | None:
        """When the first audible segment of the scene had its first chunk."""
        for record in self.records:
            if isinstance(record.segment, FailedSegment | SilenceSegment):
                continue
            if record.state is not SegmentState.FAILED:
                return record.first_chunk_s
        return None

    def _record_state(self, record: SegmentRecord, state: SegmentState) -> None:
        at_s = self.measure_elapsed_s()
        record.at_s[state] = at_s
        segment_idx = record.segment.segment_idx
        self._publish(JobEvent(state, at_s, segment_idx, record.samples, record.message))
        log.debug("job %s segment %d %s at %.3f s", self.job_id, segment_idx, state, at_s)

    def _publish(self, event: JobEvent) -> None:
        self.events.append(event)
        self.spec.notify(event)

    def _end_if_all_final(self) -> None:
        if self._open or self.events.closed:
            return
        self._ended_s = self.measure_elapsed_s()
        self.state = JobState.CANCELLED if self.cancelled else JobState.DONE
        ended = JobEvent(self.state, self._ended_s)
        self.events.append(ended)
        self.events.close()
        self.spec.notify(ended)
        summary = self.summarize()
        log.log(
            logging.DEBUG if self.spec.is_part else logging.INFO,
            "job %s %s: %.1f s of audio in %.2f s, first after %.3f s, at most %d in flight, "
            "%d failed",
            self.job_id,
            self.state,
            summary.audio_s,
            summary.wall_s,
            summary.first_audio_s or 0.0,
            summary.max_in_flight,
            summary.failed,
        )


def _build_failure(record: SegmentRecord, message: str) -> SegmentFailure:
    segment = record.segment
    return SegmentFailure(segment.segment_idx, segment.line_number, message, record.cut)
