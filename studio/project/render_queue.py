"""The state of a project's render: its waiting lines, its jobs, and its progress.

Lines are submitted to the engine a few at a time, so that waiting ones can still be edited, skipped
or moved to the front.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from studio.audio.clip import Clip
from studio.audio.timeline import SilencePart, TakePart, lay_out_part
from studio.dialog.directions import cut_directions
from studio.dialog.gaps import GAP, START
from studio.dialog.model import Pronounce
from studio.dialog.planning import SilenceSegment
from studio.dialog.text_view import TextView
from studio.engine.busy_time import BusyTime
from studio.engine.engine import Render
from studio.engine.job import Job, SegmentState
from studio.engine.remaining_time import RemainingTime, weigh_text
from studio.errors import StorageFailed
from studio.project.document import LineKind, ProjectLine
from studio.project.takes import Take, TakeStore, generate_take_id
from studio.quality.checks import QualityReport, merge_reports

log = logging.getLogger(__name__)

# Hundreds of lines a second may end; a render that is over in seconds is estimated more often.
_ESTIMATE_INTERVAL_S = (0.1, 1.0)
_ESTIMATE_SHARE = 0.05  # of the time that the render has taken


@dataclass(frozen=True, slots=True)
class LineJobSpec:
    """All that determines a line's take.

    Attributes:
        key: As in `Take`, and so is `voice`.
        is_extra_take: Whether a further take is wanted, although one fits.
        language: The language, if the line doesn't name one.
        pronounce: Gives the line's text as it is spoken.
        view: What is said of it, with the places in it.
        take_id: The id of its take; a freed take gets its own again.
    """

    line: ProjectLine
    key: str
    seed: int
    voice: str
    backend: str
    is_extra_take: bool = False
    language: str | None = None
    pronounce: Pronounce | None = None
    view: Callable[[str], TextView] = cut_directions
    take_id: str = field(default_factory=generate_take_id)


_FIRST_STEPS = (SegmentState.PLANNED, SegmentState.QUEUED, SegmentState.STARTED)


@dataclass(slots=True, eq=False)
class LineJob:
    """The render of one line on the engine.

    Attributes:
        is_finished: Whether a thread is handling its end.
        is_dropped: Whether its result isn't needed any more.
        began_s: When its job began, in seconds since the render did.
        take: Its take, once that is saved.
    """

    spec: LineJobSpec
    render: Render
    began_s: float = 0.0
    has_started: bool = False
    is_finished: bool = False
    is_dropped: bool = False
    take: Take | None = None

    @property
    def line_id(self) -> str:
        return self.spec.line.line_id

    @property
    def job(self) -> Job:
        return self.render.job

    @property
    def at_s(self) -> dict[str, float]:
        """When each step was reached, in seconds since the render began.

        Of several segments the first is planned, queued and started, and the last generated.
        """
        reached: dict[str, list[float]] = {}
        for record in self.job.records:
            if not isinstance(record.segment, SilenceSegment):
                for state, at_s in record.at_s.items():
                    reached.setdefault(state.value, []).append(self.began_s + at_s)
        return {
            name: round(min(times) if name in _FIRST_STEPS else max(times), 6)
            for name, times in reached.items()
        }

    @property
    def message(self) -> str | None:
        """Why it can't become a take; None if it can, or was cancelled."""
        return next((failure.message for failure in self.job.list_failures()), None)

    @property
    def is_same(self) -> bool:
        """Whether its take is one that the line had, as it would have sounded like that."""
        return self.take is not None and self.take.take_id != self.spec.take_id

    @property
    def is_cut(self) -> bool:
        """Whether its speech was cut off, with audio up to there."""
        return any(
            record.state is SegmentState.FAILED and record.has_audio for record in self.job.records
        )

    def remove_segments(self) -> None:
        """Delete its files, which a take has by now or nobody needs."""
        try:
            self.render.remove_folder()
        except StorageFailed as error:
            log.warning("line %s: %s", self.line_id, error)

    @property
    def is_begun(self) -> bool:
        waiting = (SegmentState.PLANNED, SegmentState.QUEUED)
        return any(record.state not in waiting for record in self.job.records)

    @property
    def spoken_s(self) -> tuple[float, float] | None:
        """How many seconds ago a backend began with it, and was done, or 0; None before that."""
        records, now_s = self.job.records, self.job.measure_elapsed_s()
        began = [record.began_s for record in records if record.began_s is not None]
        if not began:
            return None
        ends = [record.at_s.get(SegmentState.GENERATED, now_s) for record in records]
        return now_s - min(began), (now_s - max(ends)) if self.job.is_generated else 0.0

    @property
    def report(self) -> QualityReport | None:
        """Its quality report; None if it isn't speech, or is incomplete."""
        parts = [record.report for record in self.job.records if record.report is not None]
        return None if self.is_cut or not parts else merge_reports(parts)


def write_take(line_job: LineJob, take_store: TakeStore, others: Sequence[Take] = ()) -> Take:
    """Save a line's audio as a take, even if its speech was cut off.

    Args:
        line_job: Its job, which has ended.
        take_store: Where it is saved.
        others: Takes of the line. If one of them sounds the same, it is returned and none is saved.
    """
    spec, records, line = line_job.spec, line_job.job.records, line_job.spec.line
    audio: Path | Clip
    if len(records) == 1 and records[0].path is not None:
        audio, samples = records[0].path, records[0].samples or 0
    elif len(records) == 1 and records[0].clip is not None:
        audio, samples = records[0].clip, len(records[0].clip)
    else:
        audio = _join_segments(line_job.job)
        samples = len(audio)
    report = line_job.report
    take = Take(
        take_id=spec.take_id,
        line_id=line.line_id,
        key=spec.key,
        seed=spec.seed,
        backend=spec.backend,
        text=line.text if line.kind is LineKind.SPEECH else line.path or "",
        voice=spec.voice,
        samples=samples,
        created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        language=line.language,
        params={name: value for name, value in line.params.items() if name not in (GAP, START)},
        cut=line_job.is_cut,
        doubts=report.issues if report else (),
        figures=report.metrics if report else None,
        pauses=tuple(_iter_pauses(line_job.job)),
        at_s=line_job.at_s,
    )
    if (same := take_store.find_same(take, audio, others)) is not None:
        return same
    take_store.add(take, audio)
    return take_store.get(take.take_id) or take


def _iter_pauses(job: Job) -> Iterator[tuple[int, int]]:
    """First sample and the one after the last of each pause inside a line."""
    at_sample = 0
    for record in job.records:
        end_sample = at_sample + (record.samples or 0)
        if isinstance(record.segment, SilenceSegment):
            yield at_sample, end_sample
        at_sample = end_sample


def _join_segments(job: Job) -> Clip:
    """Join the segments of a line that have audio, and the pauses between them."""
    blocks = [np.zeros(0, dtype=np.float32)]
    for record in job.records:
        segment = record.segment
        if isinstance(segment, SilenceSegment):
            silence = SilencePart(segment.segment_idx, segment.duration_s)
            blocks += lay_out_part(silence).blocks()
        elif record.clip is not None:
            blocks.append(record.clip.samples)
        elif record.path is not None:
            blocks += lay_out_part(TakePart(segment.segment_idx, record.path)).blocks()
    return Clip(np.concatenate(blocks))


@dataclass(frozen=True, slots=True)
class LineFailure:
    """Why a line has no take for its key."""

    key: str
    message: str


@dataclass(slots=True)
class RenderProgress:
    """The progress of a render, from its first line to its last; later requests join it."""

    total: int = 0
    done: int = 0
    failed: int = 0
    audio_s: float = 0.0
    began_s: float = field(default_factory=time.monotonic)
    remaining: RemainingTime = field(default_factory=lambda: RemainingTime({}))
    first_audio_s: float | None = None
    ended_s: float | None = None
    cancelled: bool = False
    message: str | None = None
    busy: BusyTime = field(default_factory=BusyTime)

    @property
    def wall_s(self) -> float:
        """Seconds since it started, or its total duration."""
        return (self.ended_s if self.ended_s is not None else time.monotonic()) - self.began_s


class RenderQueue:
    """The queue of a project's render. Under the session's lock.

    Attributes:
        queued: Lines that have to be made, including those with a job, with a new seed if one is
            wanted.
        line_jobs: The jobs of lines that were submitted to the engine.
        failures: Why lines have no take.
        progress: The running render, or the last one.
        play_head: The line at the play-head: it and those after it go first.
        unsaved: Jobs whose result waits for room on the disk.
        shortage: Why the render waits for room; None while it doesn't.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._short_since_s = 0.0
        # The latest estimate of the seconds that are left, and when it was made.
        self._estimate: tuple[float | None, float] | None = None
        self.queued: dict[str, int | None] = {}
        self.line_jobs: dict[str, LineJob] = {}
        self.failures: dict[str, LineFailure] = {}
        self.progress: RenderProgress | None = None
        self.play_head: str | None = None
        self.unsaved: list[LineJob] = []
        self.shortage: str | None = None

    def enqueue(self, lines: Mapping[str, int | None]) -> bool:
        """Queue lines, each with a new seed or its own; those queued already don't change.

        Returns:
            Whether this starts a render.
        """
        fresh = {line_id: seed for line_id, seed in lines.items() if line_id not in self.queued}
        begins = bool(fresh) and (self.progress is None or self.progress.ended_s is not None)
        if begins:
            self.progress = RenderProgress(began_s=self._clock())
            self._estimate = None
        if self.progress is not None:
            self.progress.total += len(fresh)
        for line_id in fresh:
            self.failures.pop(line_id, None)
        self.queued.update(fresh)
        return begins

    def list_waiting(self, order: Iterable[str]) -> list[str]:
        """Queued lines without a job, those at the play-head first.

        Args:
            order: Line ids in the order of playback.
        """
        waiting = self.queued.keys() - self.line_jobs.keys()
        if not waiting:
            return []
        order = list(order)
        start = order.index(self.play_head) if self.play_head in order else 0
        ahead = [line_id for line_id in order[start:] + order[:start] if line_id in waiting]
        gone = waiting.difference(ahead)
        return ahead + [line_id for line_id in self.queued if line_id in gone]

    def complete(
        self, line_id: str, audio_s: float | None = None, retry_seed: int | None = None
    ) -> None:
        """Take a finished line out of the queue, or queue it again with a seed."""
        self._remove(line_id)
        if retry_seed is not None:
            self.queued[line_id] = retry_seed
        if self.progress is not None:
            self.progress.total += (retry_seed is not None) - (audio_s is None)
            self.progress.done += audio_s is not None
            self.progress.audio_s += audio_s or 0.0

    def fail(self, line_id: str, key: str, message: str) -> None:
        """Record why a line can't be made; valid as long as the line has this key."""
        self._remove(line_id)
        self.failures[line_id] = LineFailure(key, message)
        if self.progress is not None:
            self.progress.failed += 1

    def clear(self, message: str | None) -> list[str]:
        """Empty the queue; returns its lines."""
        dropped = list(self.queued)
        self.queued.clear()
        self.set_shortage(None)
        if self.progress is not None and self.progress.ended_s is None:
            self.progress.cancelled, self.progress.message = True, message
        return dropped

    def record_first_audio(self, line_job: LineJob) -> None:
        """Record a render's time to first audio, when its first line ends."""
        first_chunk_s = line_job.job.records[0].first_chunk_s
        run = self.progress
        if run is None or run.first_audio_s is not None or first_chunk_s is None:
            return
        since_s = line_job.job.measure_elapsed_s() - first_chunk_s
        run.first_audio_s = max(0.0, run.wall_s - since_s)

    def set_shortage(self, why: str | None) -> None:
        """Begin or end the wait for room; that time says nothing of how long lines take."""
        now_s = self._clock()
        if why is not None and self.shortage is None:
            self._short_since_s = now_s
        elif why is None and self.shortage is not None and self.progress is not None:
            self.progress.remaining.skip(now_s - self._short_since_s)
        self.shortage, self._estimate = why, None

    def drop_job(self, line_id: str) -> LineJob | None:
        """Take the job of a line away, which stays queued."""
        if self.progress is not None:
            self.progress.remaining.interrupt(line_id)
        return self.line_jobs.pop(line_id, None)

    def estimate(self, lines: Mapping[str, ProjectLine]) -> bool:
        """Estimate how long the render still takes, at most once a second or, at first, ten times.

        Args:
            lines: The project's, as they are now.

        Returns:
            Whether there is a new estimate.
        """
        run, now_s = self.progress, self._clock()
        if run is None or self.shortage is not None or run.remaining.knows_too_little:
            return False
        least_s, most_s = _ESTIMATE_INTERVAL_S
        interval_s = min(most_s, max(least_s, _ESTIMATE_SHARE * (now_s - run.began_s)))
        if self._estimate is not None and now_s - self._estimate[1] < interval_s:
            return False
        queued = ((line_id, lines.get(line_id)) for line_id in self.queued)
        run.remaining.expect(
            {
                line_id: weigh_text(line.text)
                for line_id, line in queued
                if line is not None and line.kind is LineKind.SPEECH
            }
        )
        for line_job in self.line_jobs.values():
            self._time(line_job)
        self._estimate = run.remaining.estimate_s(now_s), now_s
        return True

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the render is done, by the latest estimate; None if nothing is known."""
        left_s, at_s = self._estimate or (None, 0.0)
        if not self.queued or left_s is None:
            return None
        return max(0.0, left_s - (self._clock() - at_s))

    def _time(self, line_job: LineJob) -> float | None:
        """Note since when a line is spoken; returns until when it was, or now."""
        spoken_s, line = line_job.spoken_s, line_job.spec.line
        if self.progress is None or spoken_s is None or line.kind is not LineKind.SPEECH:
            return None
        now_s, (began_s, ended_s) = self._clock(), spoken_s
        weight = weigh_text(line.text)
        self.progress.remaining.begin(line_job.line_id, now_s - began_s, weight=weight)
        return now_s - ended_s

    def end_if_idle(self) -> RenderProgress | None:
        """End the render if the queue is empty; returns it if this ended it."""
        if self.queued or self.progress is None or self.progress.ended_s is not None:
            return None
        self.progress.ended_s = self._clock()
        return self.progress

    def _remove(self, line_id: str) -> None:
        self.queued.pop(line_id, None)
        line_job = self.line_jobs.pop(line_id, None)
        ended_s = self._time(line_job) if line_job is not None else None
        if ended_s is not None and self.progress is not None:
            self.progress.remaining.end(line_id, ended_s)
