"""A render job: its spec, the state of each segment, the events for followers, its results."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache, partial
from pathlib import Path

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.audio.export import Caption
from studio.audio.file_tags import FileTags, find_common_language, list_names
from studio.audio.scene_file import Scene
from studio.audio.timeline import (
    FailedPart,
    SilencePart,
    TakePart,
    Timeline,
    TimelinePart,
    lay_out,
    lay_out_part,
    stream_timeline,
)
from studio.dialog.model import name_key
from studio.dialog.planning import FailedSegment, Plan, Segment, SilenceSegment, SpeechSegment
from studio.engine.busy_time import BusyTime
from studio.engine.event_log import EventLog
from studio.engine.remaining_time import RemainingTime, weigh
from studio.errors import AudioRejected, Conflict
from studio.quality.checks import (
    QualityIssue,
    QualityReport,
    TakeMetrics,
    build_late_issue,
    check_max_duration,
    score_issues,
)
from studio.quality.voice_drift import VoiceBaseline, build_baseline, find_outliers
from studio.voices.cast import Cast


class SegmentState(StrEnum):
    """The state of a segment. Silence and audio lines go from planned to saved.

    A segment that ran out of memory goes from started back to queued, once. One that was cut off
    may be started again, with another seed and a message, also once.
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
    """One step of a job; `segment_idx` is None if it concerns the job as a whole."""

    state: str
    at_s: float
    segment_idx: int | None = None
    samples: int | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class SegmentTry:
    """One of several tries of a segment, and what is wrong with it.

    Attributes:
        seed: As the backend got it.
        report: Its quality report.
        samples: Its length.
        issues: Its quality issues, also compared with the segments of its voice: with those so far,
            and with all once they are there.
        path: Its WAV; None in a job without a folder, or if the disk had no room for it.
    """

    seed: int | None
    report: QualityReport
    samples: int
    issues: tuple[QualityIssue, ...]
    path: Path | None

    @property
    def score(self) -> float:
        """Of its issues, see `score_issues`; the try with the lowest is used."""
        return score_issues(self.issues)

    @property
    def message(self) -> str:
        return " ".join(issue.message for issue in self.issues)


@dataclass(slots=True)
class SegmentRecord:
    """The state and result of one segment.

    Attributes:
        samples: Length at the studio's rate, known once it is generated.
        path: The saved WAV; None for silence, and until it is saved. That of a failed segment has
            the audio before it was cut off.
        clip: What would be in the WAV, where the disk had no room for one.
        message: Why it failed.
        fault: The class name of its error.
        cut: Whether it failed because its speech didn't end, so that its audio is incomplete.
        retry_reason: Why the first try was discarded; None if there was only one.
        at_s: When each state was reached, in seconds since the job started.
        began_s: When a backend began with it, after the model was loaded.
        first_chunk_s: When the first audio arrived.
        last_chunk_s: When the latest audio arrived.
        streamed_samples: Audio streamed so far, at the studio's rate.
        seed: The seed of the latest try, if it isn't the segment's own.
        report: The quality report of complete speech, known once it is saved.
        tries: Every complete try, in order, if more than one was allowed.
        best_try: Index of the one that is used.
    """

    segment: Segment
    state: SegmentState = SegmentState.PLANNED
    samples: int | None = None
    path: Path | None = None
    clip: Clip | None = None
    message: str | None = None
    fault: str | None = None
    cut: bool = False
    retry_reason: str | None = None
    at_s: dict[SegmentState, float] = field(default_factory=dict)
    began_s: float | None = None
    first_chunk_s: float | None = None
    last_chunk_s: float = 0.0
    streamed_samples: int = 0
    seed: int | None = None
    report: QualityReport | None = None
    tries: list[SegmentTry] = field(default_factory=list)
    best_try: int = 0
    _live: EventLog[Samples] | None = None

    @property
    def live(self) -> EventLog[Samples]:
        """Chunks of a speech segment as they are generated; closed after the last one.

        Another reading has a new log, and the earlier one is withdrawn.
        """
        with _OPENING:
            if self._live is None:
                self._live = EventLog()
            return self._live

    def renew_live(self) -> None:
        """Withdraw what was streamed; the next reading has a new log."""
        previous, self._live = self.live, EventLog()
        previous.close(withdrawn=True)

    def free_live(self) -> None:
        """Close the log and free its chunks; those who read it keep it, others read the file."""
        live, self._live = self.live, _NOTHING_LIVE
        live.close()

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def has_audio(self) -> bool:
        return self.path is not None or self.clip is not None

    @property
    def timestamps_s(self) -> dict[str, float]:
        """When each state was reached, by its name, in seconds since the job started."""
        return {state.value: round(at_s, 6) for state, at_s in self.at_s.items()}


log = logging.getLogger(__name__)

# A job may have 20,000 segments, and a log takes more than a kilobyte: a segment has one from the
# time on when somebody writes or reads it, under a lock as those are several threads, and when it
# is final it shares this one.
_OPENING = threading.Lock()
_NOTHING_LIVE: EventLog[Samples] = EventLog()
_NOTHING_LIVE.close()

MAX_TRIES = 4
"""Most tries of a line with quality issues."""

_BASELINE_GROWTH = 1.1


class JobState(StrEnum):
    """The state of a job; it is `done` even if some segments failed."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class SegmentFailure:
    """A segment that couldn't be spoken, with the line of the script.

    Attributes:
        cut: Whether a part of it was spoken, which can be played.
    """

    segment_idx: int
    line_number: int
    message: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class JobSummary:
    """Totals of a job.

    Attributes:
        first_audio_s: When the scene could be played from its start.
        device_busy_s: For how long the device worked while a segment was being spoken; without
            CUDA, for how long at least one was.
    """

    audio_s: float
    wall_s: float
    first_audio_s: float | None
    max_in_flight: int
    failed: int
    device_busy_s: float


def refuse_audio(written: str) -> Path:
    """Refuse every audio line.

    Raises:
        AudioRejected: Always.
    """
    raise AudioRejected(f"The audio file “{written}” can't be used here.")


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a job is to render, and how.

    Attributes:
        plan: The segments.
        backend_name: The backend.
        cast: The voice of each speaker.
        folder: An existing folder for the segments' files; None keeps their audio in memory.
        resolve_audio: Finds the file of a path in the script; raises `AudioRejected` for one that
            may not be read.
        notify: Called with each event on the engine's loop, so it must not block.
        is_part: Whether it is one of many jobs of a render, whose owner reports them as one.
        tries: Most tries of a segment with quality issues; the best one is used.
        survives_full_disk: Whether a segment for which the disk has no room stays in memory; if
            not, the job is stopped there.
        gives_way: Whether it is cancelled as soon as another job comes.
        busy: Counts for how long the device works; shared by the jobs of one render.
        levels_db: Added to the lines of speakers where they are laid out, by the name's key.
        pans: Where the lines of speakers are between left and right, likewise.
        name_automatic: Names the automatic voice that a name chooses.
    """

    plan: Plan
    backend_name: str
    cast: Cast
    folder: Path | None
    resolve_audio: Callable[[str], Path] = refuse_audio
    notify: Callable[[JobEvent], None] = lambda _: None
    is_part: bool = False
    tries: int = 1
    survives_full_disk: bool = False
    gives_way: bool = False
    busy: BusyTime = field(default_factory=BusyTime)
    levels_db: Mapping[str, float] = field(default_factory=dict)
    pans: Mapping[str, float] = field(default_factory=dict)
    name_automatic: Callable[[str], str] = lambda _: ""


class Job:
    """A render that the server owns; any number of pages may follow it.

    Only the engine's loop changes it; other threads read it.

    Attributes:
        fatal_message: Why no segment can be spoken, such as a model that can't be loaded, or why
            none can be saved.
    """

    def __init__(
        self, job_id: str, order: JobSpec, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.job_id = job_id
        self.spec = order
        self.state = JobState.RUNNING
        self.events: EventLog[JobEvent] = EventLog()
        self.in_flight = 0
        self.max_in_flight = 0
        self.cancelled = False
        self.fatal_message: str | None = None
        self._clock = clock
        self._began_s = clock()
        self._ended_s: float | None = None
        self.records = [SegmentRecord(segment) for segment in order.plan.segments]
        self._open = len(self.records)
        # Of each voice's reports, its measurements, and its baseline as of so many.
        self._metrics: dict[Hashable, list[TakeMetrics]] = defaultdict(list)
        self._baselines: dict[Hashable, tuple[int, VoiceBaseline | None]] = {}
        self._remaining = RemainingTime(
            {one.segment_idx: weigh(one) for one in order.plan.segments if weigh(one)}
        )
        for record in self.records:
            self._record_state(record, SegmentState.PLANNED)

    @property
    def n_open(self) -> int:
        return self._open

    @property
    def is_generated(self) -> bool:
        """Whether all audio was generated, so that at most files remain to be saved."""
        return all(one.is_final or one.state is SegmentState.GENERATED for one in self.records)

    def queue_speech(self) -> list[int]:
        """Finish the segments that need no backend; returns the speech segments, now queued.

        Audio lines stay planned, because the caller inserts them.
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

    def find_edges(self, record: SegmentRecord) -> tuple[bool, bool]:
        """Whether a segment's beginning and its end are cut.

        Between the sentences of a long line the voice's own pause stays; in the middle of one that
        was too long there is none.
        """
        if not self.spec.cast.evens_lines:
            return False, False
        idx = record.segment.segment_idx
        before, own, behind = (
            self.records[at].segment if 0 <= at < len(self.records) else None
            for at in (idx - 1, idx, idx + 1)
        )
        return not _is_sentence_end(before, own), not _is_sentence_end(own, behind)

    def segment_path(self, record: SegmentRecord) -> Path:
        """The path of a segment's WAV, in a job with a folder."""
        assert self.spec.folder is not None
        return self.spec.folder / f"{record.segment.segment_idx:05d}.wav"

    def try_path(self, record: SegmentRecord, number: int) -> Path | None:
        """The path of a try's WAV, numbered from 1; None in a job without a folder."""
        if self.spec.folder is None:
            return None
        return self.segment_path(record).with_suffix(f".try{number}.wav")

    def start_segment(self, record: SegmentRecord) -> None:
        """Record that a segment got a slot."""
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        self.advance(record, SegmentState.STARTED)

    def restart_segment(self, record: SegmentRecord, why: str, seed: int | None) -> None:
        """Discard a segment's try with its audio; the next try has another seed."""
        record.retry_reason, record.seed = why, seed
        self.withdraw_audio(record)
        segment_idx = record.segment.segment_idx
        log.info("job %s segment %d starts again: %s", self.job_id, segment_idx, why)
        self._publish(JobEvent(record.state, self.measure_elapsed_s(), segment_idx, message=why))

    def withdraw_audio(self, record: SegmentRecord) -> None:
        """Invalidate what was streamed of a segment, which is read from its start again."""
        record.streamed_samples, record.first_chunk_s = 0, None
        record.renew_live()

    def release_slot(self) -> None:
        """Record that a segment has released its slot."""
        self.in_flight -= 1

    def begin_synthesis(self, record: SegmentRecord) -> None:
        """Record that a backend begins with a segment; called in the generating thread."""
        record.began_s = self.measure_elapsed_s()
        self._remaining.begin(record.segment.segment_idx, record.began_s)

    def estimate_remaining_s(self) -> float | None:
        """Seconds until the job is done; None until ten lines have been spoken."""
        return self._remaining.estimate_s(self.measure_elapsed_s())

    def add_chunk(self, record: SegmentRecord, chunk: Samples) -> None:
        """Add a generated chunk; called in the generating thread."""
        if record.first_chunk_s is None:
            record.first_chunk_s = self.measure_elapsed_s()
        record.last_chunk_s = self.measure_elapsed_s()
        record.streamed_samples += len(chunk)
        record.live.append(chunk)

    def advance(self, record: SegmentRecord, state: SegmentState) -> None:
        """Change a segment's state and append the event."""
        assert record.state not in FINAL_STATES
        record.state = state
        self._record_state(record, state)
        if record.is_final or state is SegmentState.GENERATED:
            self._remaining.end(record.segment.segment_idx, record.at_s[state])
        if record.is_final:
            record.free_live()
            self._open -= 1
            self._end_if_all_final()

    def fail(self, record: SegmentRecord, message: str, fault: str = "SpeechFailed") -> None:
        """Record a segment's failure; `fault` is the class name of the error."""
        record.message = message
        record.fault = fault
        self.advance(record, SegmentState.FAILED)

    def measure_silence_s(self) -> float:
        """The longest time for which a segment in flight has produced no audio."""
        if not self.in_flight:
            return 0.0
        signs_s = [
            max(record.at_s[SegmentState.STARTED], record.last_chunk_s)
            for record in self.records
            if record.state is SegmentState.STARTED
        ]
        return self.measure_elapsed_s() - min(signs_s) if signs_s else 0.0

    def add_report(self, record: SegmentRecord, report: QualityReport) -> None:
        """Record the quality of a segment that was saved."""
        record.report = report
        self._metrics[_build_voice_key(record)].append(report.metrics)

    def find_try_issues(
        self, record: SegmentRecord, report: QualityReport
    ) -> tuple[QualityIssue, ...]:
        """The quality issues of a try, compared with the segments of its voice so far."""
        voice = _build_voice_key(record)
        metrics, (n_known, usual) = self._metrics[voice], self._baselines.get(voice, (0, None))
        # Not each time, as a job may have 20,000 segments.
        if len(metrics) > _BASELINE_GROWTH * n_known:
            usual = build_baseline(metrics, _get_speaker(record))
            self._baselines[voice] = len(metrics), usual
        return _find_issues(self, report, usual)

    def list_failures(self) -> tuple[SegmentFailure, ...]:
        """The segments that couldn't be spoken, in order."""
        return tuple(
            _build_failure(record, record.message or "")
            for record in self.records
            if record.state is SegmentState.FAILED
        )

    def list_retries(self) -> tuple[SegmentFailure, ...]:
        """The segments that were retried, and why a try was discarded."""
        return tuple(
            _build_failure(record, record.retry_reason)
            for record in self.records
            if record.retry_reason is not None and record.state is SegmentState.SAVED
        )

    def summarize(self) -> JobSummary:
        """The job's totals so far."""
        saved = [one for one in self.records if one.state is SegmentState.SAVED]
        gaps_s = (self.spec.plan.gaps_s.get(one.segment.segment_idx, 0.0) for one in saved[1:])
        return JobSummary(
            audio_s=sum(one.samples or 0 for one in saved) / STUDIO_RATE_HZ + sum(gaps_s),
            wall_s=self._ended_s if self._ended_s is not None else self.measure_elapsed_s(),
            first_audio_s=self._first_audio_s(),
            max_in_flight=self.max_in_flight,
            failed=len(self.list_failures()),
            device_busy_s=self.spec.busy.total_s,
        )

    def measure_elapsed_s(self) -> float:
        """Seconds since the job started."""
        return self._clock() - self._began_s

    def _first_audio_s(self) -> float | None:
        """When the scene's first audible segment got its first chunk."""
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
        _judge_tries(self)
        self._ended_s = self.measure_elapsed_s()
        self.state = JobState.CANCELLED if self.cancelled else JobState.DONE
        ended = JobEvent(self.state, self._ended_s)
        self.events.append(ended)
        self.events.close()
        self.spec.notify(ended)
        summary = self.summarize()
        log.log(
            logging.DEBUG if self.spec.is_part else logging.INFO,
            "job %s %s: %.1f s of audio in %.2f s, device busy for %.2f s, first after %.3f s, "
            "at most %d in flight, %d failed",
            self.job_id,
            self.state,
            summary.audio_s,
            summary.wall_s,
            summary.device_busy_s,
            summary.first_audio_s or 0.0,
            summary.max_in_flight,
            summary.failed,
        )


_SENTENCE_END = re.compile(r"[.!?…。！？｡؟।][\W_]*\Z")


def _is_sentence_end(segment: Segment | None, behind: Segment | None) -> bool:
    """Whether a sentence ends between two segments of one line."""
    if not isinstance(segment, SpeechSegment) or not isinstance(behind, SpeechSegment):
        return False
    return segment.line_idx == behind.line_idx and bool(_SENTENCE_END.search(segment.text))


def _build_failure(record: SegmentRecord, message: str) -> SegmentFailure:
    segment = record.segment
    return SegmentFailure(segment.segment_idx, segment.line_number, message, record.cut)


@dataclass(frozen=True, slots=True)
class SegmentIssues:
    """A segment with quality issues, with the line of the script."""

    segment_idx: int
    line_number: int
    issues: tuple[QualityIssue, ...]

    @property
    def message(self) -> str:
        return " ".join(doubt.message for doubt in self.issues)


def find_segment_issues(job: Job) -> tuple[SegmentIssues, ...]:
    """The segments of a job with quality issues so far, in order.

    The segments of a voice are compared with each other once there are eight.
    """
    late = _lay_out(job).late_s.items() if job.spec.plan.starts_s and not job.n_open else ()
    late_s = {job.records[idx].segment.line_idx: by_s for idx, by_s in late}
    usual = _build_baselines(job)
    left_samples: Counter[int] = Counter()  # by line, in its first segment
    for record in job.records:
        left_samples[record.segment.line_idx] += record.samples or 0
    found = []
    for record in job.records:
        if record.report is None:
            continue
        segment = record.segment
        doubts = _find_issues(job, record.report, usual.get(_build_voice_key(record)))
        duration_s = left_samples.pop(segment.line_idx, 0) / STUDIO_RATE_HZ
        if line := job.spec.plan.find_speech(segment.line_idx):
            doubts += check_max_duration(duration_s, line.params)
        if (by_s := late_s.pop(segment.line_idx, None)) is not None:
            doubts += (build_late_issue(by_s),)
        if doubts:
            found.append(SegmentIssues(segment.segment_idx, segment.line_number, doubts))
    return tuple(found)


def _judge_tries(job: Job) -> None:
    """Judge all tries by all lines of their voice, and use the best of each segment.

    While the lines are being spoken, the same sound may stand out of those so far, or not.
    """
    tried = [one for one in job.records if len(one.tries) > 1 and one.report is not None]
    for is_chosen in (False, True) if tried else ():
        usual = _build_baselines(job)
        for record in tried:
            voice = usual.get(_build_voice_key(record))
            record.tries = [
                replace(one, issues=_find_issues(job, one.report, voice)) for one in record.tries
            ]
            scores = [one.score for one in record.tries]
            best = scores.index(min(scores))
            if not is_chosen and record.tries[best].path is not None:
                chosen, record.best_try = record.tries[best], best
                record.path, record.samples = chosen.path, chosen.samples
                record.report = chosen.report


def _find_issues(
    job: Job, report: QualityReport, usual: VoiceBaseline | None
) -> tuple[QualityIssue, ...]:
    return report.issues + find_outliers(report.metrics, usual, job.spec.backend_name)


def _build_baselines(job: Job) -> dict[Hashable, VoiceBaseline | None]:
    metrics: dict[Hashable, list[TakeMetrics]] = defaultdict(list)
    names: dict[Hashable, str] = {}
    for record in job.records:
        if record.report is not None:
            voice = _build_voice_key(record)
            metrics[voice].append(record.report.metrics)
            names[voice] = _get_speaker(record)
    return {voice: build_baseline(takes, names[voice]) for voice, takes in metrics.items()}


def _get_speaker(record: SegmentRecord) -> str:
    assert isinstance(record.segment, SpeechSegment)
    return record.segment.speaker


def _build_voice_key(record: SegmentRecord) -> Hashable:
    """The key of segments that should sound alike."""
    segment = record.segment
    assert isinstance(segment, SpeechSegment)
    params = tuple(sorted(segment.params.items()))
    how = (segment.mood, segment.instruct, segment.language)
    return (name_key(segment.speaker), *how, params)


def build_scene(job: Job) -> Scene:
    """Saved segments and silences in order; failed ones are skipped and named.

    Segments that aren't finished yet are left out silently.

    Raises:
        Conflict: Every line failed; a file of its pauses alone would pass for a scene.
    """
    sounding = [one for one in job.records if not isinstance(one.segment, SilenceSegment)]
    if sounding and all(one.state is SegmentState.FAILED for one in sounding):
        first = job.list_failures()[0]
        raise Conflict(
            "Every line failed, so there is no sound to save. "
            f"Line {first.line_number}: {first.message}"
        )
    messages = {one.segment_idx: one.message for one in find_segment_issues(job)}
    numbers = job.spec.plan.number_lines()
    name_voice = cache(partial(job.spec.cast.name_voice, name_automatic=job.spec.name_automatic))
    parts_of = Counter(one.segment.line_idx for one in sounding)
    captions = {
        idx: replace(
            _build_caption(record, messages.get(idx), job.spec, numbers, name_voice),
            is_whole=parts_of[record.segment.line_idx] == 1,
        )
        for idx, record in enumerate(job.records)
    }
    spoken = [one.segment for one in job.records if isinstance(one.segment, SpeechSegment)]
    tags = FileTags(
        speakers=list_names(one.speaker for one in spoken),
        language=find_common_language(one.language for one in spoken),
        engines=(job.spec.backend_name,) if spoken else (),
    )
    return Scene(_lay_out(job), captions, job.spec.plan.sections, tags)


def _lay_out(job: Job) -> Timeline:
    parts = (_build_part(record, job.spec) for record in job.records)
    return lay_out(part for part in parts if part is not None)


def _build_part(record: SegmentRecord, spec: JobSpec) -> TimelinePart | None:
    segment_idx = record.segment.segment_idx
    if record.state is SegmentState.FAILED:
        return FailedPart(segment_idx, record.message or "")
    if record.state is not SegmentState.SAVED:
        return None
    gap_s = spec.plan.gaps_s.get(segment_idx, 0.0)
    if isinstance(record.segment, SilenceSegment):
        return SilencePart(segment_idx, record.segment.duration_s, gap_s)
    assert record.path is not None
    segment = record.segment
    speaker = name_key(segment.speaker) if isinstance(segment, SpeechSegment) else ""
    level_db, pan = spec.levels_db.get(speaker, 0.0), spec.pans.get(speaker, 0.0)
    start_s = spec.plan.starts_s.get(segment_idx)
    return TakePart(segment_idx, record.path, level_db, gap_s, pan, start_s)


def _build_caption(
    record: SegmentRecord,
    message: str | None,
    spec: JobSpec,
    numbers: Mapping[int, int],
    name_voice: Callable[[str], str],
) -> Caption:
    segment = record.segment
    line = spec.plan.find_speech(segment.line_idx)
    is_spoken = isinstance(segment, SpeechSegment)
    return Caption(
        segment.line_number,
        getattr(segment, "speaker", None),
        getattr(segment, "text", None),
        (message,) if message else (),
        record.timestamps_s,
        number=numbers.get(segment.line_idx),
        written=line.text if line else None,
        params=line.params if line else {},
        engine=spec.backend_name if is_spoken else "",
        voice=name_voice(_get_speaker(record)) if is_spoken else "",
    )


class SegmentAudio:
    """The audio of a segment as it is when playback starts: saved, silent, or generated live."""

    def __init__(self, record: SegmentRecord) -> None:
        self._record = record
        # The log before the path: once the log is replaced, the path is set.
        self._live, self._path, self._clip = record.live, record.path, record.clip

    @property
    def is_withdrawn(self) -> bool:
        """Whether a retry discarded what was streamed; to be checked after the last chunk."""
        return self._live.withdrawn

    @property
    def is_whole(self) -> bool:
        """Whether all of it was streamed; to be checked after the last chunk."""
        made = self._record.state in (SegmentState.GENERATED, SegmentState.SAVED)
        return made and not self.is_withdrawn

    async def stream(self) -> AsyncIterator[Samples]:
        """Yield float32 [samples] at the studio's rate, as soon as they are generated."""
        segment = self._record.segment
        if self._clip is not None:
            yield self._clip.samples
            return
        if self._path is not None:
            part: TimelinePart = TakePart(segment.segment_idx, self._path)
        elif isinstance(segment, SilenceSegment):
            part = SilencePart(segment.segment_idx, segment.duration_s)
        else:
            async for chunk in self._live.subscribe():
                yield chunk
            return
        async for block in stream_timeline(await asyncio.to_thread(lay_out_part, part)):
            yield block
