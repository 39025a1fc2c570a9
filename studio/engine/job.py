"""A render in progress: what was planned, how far each segment is, and what was heard of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.dialog.planning import FailedSegment, Plan, SilenceSegment, SpeechSegment
from studio.engine.feed import Feed
from studio.engine.record import FINAL_STATES, Event, SegmentRecord, SegmentState
from studio.speakers.cast import Cast

log = logging.getLogger(__name__)


MAX_TRIES = 4
"""How often a doubtful line may be spoken at most."""


class JobState(StrEnum):
    """How far a job is; `done` also when some segments failed."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Failure:
    """A segment that could not be spoken, with the script's line.

    Attributes:
        cut: Whether a part of it was spoken, which can be heard.
    """

    segment_idx: int
    line_number: int
    message: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """A job in figures, in seconds; `first_audio_s` until the scene can be heard from its start."""

    audio_s: float
    wall_s: float
    first_audio_s: float | None
    max_in_flight: int
    failed: int


@dataclass(frozen=True, slots=True)
class Order:
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
    notify: Callable[[Event], None] = lambda _: None
    is_part: bool = False
    tries: int = 1


class Job:
    """A render owned by the server; any number of pages may watch it.

    The engine's loop changes it; other threads only read.

    Attributes:
        gave_up: Why no segment can be spoken at all, such as a model that can't be loaded.
    """

    def __init__(
        self, job_id: str, order: Order, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Lay out the records of an order's plan; `job_id` is unique."""
        self.job_id = job_id
        self.order = order
        self.state = JobState.RUNNING
        self.events: Feed[Event] = Feed()
        self.in_flight = 0
        self.max_in_flight = 0
        self.cancelled = False
        self.gave_up: str | None = None
        self._clock = clock
        self._began_s = clock()
        self._ended_s: float | None = None
        self.records = [SegmentRecord(segment) for segment in order.plan.segments]
        self._open = len(self.records)
        for record in self.records:
            self._note(record, SegmentState.PLANNED)

    def settle(self) -> list[int]:
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
        return self.order.folder / f"{record.segment.segment_idx:05d}.wav"

    def begin(self, record: SegmentRecord) -> None:
        """A slot took the segment."""
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        self.advance(record, SegmentState.STARTED)

    def start_again(self, record: SegmentRecord, why: str, seed: int | None) -> None:
        """A segment's try is thrown away, and what was heard of it with it; the next has a seed."""
        former, record.live = record.live, Feed()
        record.retried, record.seed = why, seed
        record.heard_samples, record.first_chunk_s = 0, None
        former.withdraw()
        segment_idx = record.segment.segment_idx
        log.info("job %s segment %d starts again: %s", self.job_id, segment_idx, why)
        self._tell(Event(record.state, self.elapsed_s(), segment_idx, message=why))

    def leave(self) -> None:
        """A segment gave its slot back."""
        self.in_flight -= 1

    def heard(self, record: SegmentRecord, chunk: Samples) -> None:
        """A chunk was generated; called from the thread that generates."""
        if record.first_chunk_s is None:
            record.first_chunk_s = self.elapsed_s()
        record.last_chunk_s = self.elapsed_s()
        record.heard_samples += len(chunk)
        record.live.append(chunk)

    def advance(self, record: SegmentRecord, state: SegmentState) -> None:
        """Move a segment on and tell everybody."""
        assert record.state not in FINAL_STATES
        record.state = state
        self._note(record, state)
        if record.final:
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

    def silent_s(self) -> float:
        """How long the segment in flight that was silent for the longest has made no sound."""
        if not self.in_flight:
            return 0.0
        signs_s = [
            max(record.at_s[SegmentState.STARTED], record.last_chunk_s)
            for record in self.records
            if record.state is SegmentState.STARTED
        ]
        return self.elapsed_s() - min(signs_s) if signs_s else 0.0

    def failures(self) -> tuple[Failure, ...]:
        """What could not be spoken, in order."""
        return tuple(
            _told(record, record.message or "")
            for record in self.records
            if record.state is SegmentState.FAILED
        )

    def second_tries(self) -> tuple[Failure, ...]:
        """Segments of which another try is kept or was made, and why one was thrown away."""
        return tuple(
            _told(record, record.retried)
            for record in self.records
            if record.retried is not None and record.state is SegmentState.SAVED
        )

    def summary(self) -> Summary:
        """The job in figures, so far."""
        samples = sum(
            record.samples or 0 for record in self.records if record.state is SegmentState.SAVED
        )
        return Summary(
            audio_s=samples / STUDIO_RATE_HZ,
            wall_s=self._ended_s if self._ended_s is not None else self.elapsed_s(),
            first_audio_s=self._first_audio_s(),
            max_in_flight=self.max_in_flight,
            failed=len(self.failures()),
        )

    def elapsed_s(self) -> float:
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

    def _note(self, record: SegmentRecord, state: SegmentState) -> None:
        at_s = self.elapsed_s()
        record.at_s[state] = at_s
        segment_idx = record.segment.segment_idx
        self._tell(Event(state, at_s, segment_idx, record.samples, record.message))
        log.debug("job %s segment %d %s at %.3f s", self.job_id, segment_idx, state, at_s)

    def _tell(self, event: Event) -> None:
        self.events.append(event)
        self.order.notify(event)

    def _end_if_all_final(self) -> None:
        if self._open or self.events.closed:
            return
        self._ended_s = self.elapsed_s()
        self.state = JobState.CANCELLED if self.cancelled else JobState.DONE
        ended = Event(self.state, self._ended_s)
        self.events.append(ended)
        self.events.close()
        self.order.notify(ended)
        summary = self.summary()
        log.log(
            logging.DEBUG if self.order.is_part else logging.INFO,
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


def _told(record: SegmentRecord, message: str) -> Failure:
    segment = record.segment
    return Failure(segment.segment_idx, segment.line_number, message, record.cut)
