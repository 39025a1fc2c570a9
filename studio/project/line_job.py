"""One line's render job: its spec, its start, the take it becomes, and its retries."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from studio.audio.clip import Clip
from studio.audio.timeline import SilencePart, TakePart, TimelinePart, lay_out
from studio.dialog.line_text import Pronounce
from studio.dialog.model import Dialog
from studio.dialog.planning import SilenceSegment, plan
from studio.engine.engine import SpeechEngine
from studio.engine.job import Job, JobEvent, JobSpec, SegmentState
from studio.engine.segment_synthesis import derive_quality_retry_seed
from studio.errors import AudioRejected, BadInput, StorageFailed
from studio.project.document import LineKind, ProjectLine, check_audio_name
from studio.project.takes import Take, TakeStore, generate_take_id
from studio.quality.checks import QualityReport, merge_reports
from studio.storage.disk import Disk
from studio.voices.cast import Cast


@dataclass(frozen=True, slots=True)
class LineJobSpec:
    """All that a line's take is made of.

    Attributes:
        key: As in `Take`; `voice` too.
        is_extra_take: A further take was asked for, beside one that fits already.
        language: What is spoken where the line doesn't say.
        pronounce: What a voice hears of the line's text.
        take_id: Of the take it becomes; one that is gone comes back under its own.
    """

    line: ProjectLine
    key: str
    seed: int
    voice: str
    backend: str
    is_extra_take: bool = False
    language: str | None = None
    pronounce: Pronounce | None = None
    take_id: str = field(default_factory=generate_take_id)


@dataclass(frozen=True, slots=True)
class RenderDeps:
    """Where and with what lines are made.

    Attributes:
        segments_folder: Folder of the segments under way.
        audio_folder: Folder of the files that audio lines play.
    """

    engine: SpeechEngine
    cast: Cast
    segments_folder: Path
    audio_folder: Path
    disk: Disk


@dataclass(slots=True, eq=False)
class LineJob:
    """A line that was given to the engine, as a job of its own.

    Attributes:
        is_finished: Somebody takes care of its end.
        is_dropped: Nobody needs it any more.
    """

    spec: LineJobSpec
    job: Job
    has_started: bool = False
    is_finished: bool = False
    is_dropped: bool = False

    @property
    def line_id(self) -> str:
        """Whose take it becomes."""
        return self.spec.line.line_id

    @property
    def take_id(self) -> str:
        """The take it becomes."""
        return self.spec.take_id

    @property
    def message(self) -> str | None:
        """Why it can't become a take; None when it can, or was cancelled."""
        return next((failure.message for failure in self.job.list_failures()), None)

    @property
    def is_cut(self) -> bool:
        """Whether it was stopped before its end, and what was spoken until then is there."""
        return any(
            record.state is SegmentState.FAILED and record.path is not None
            for record in self.job.records
        )

    @property
    def report(self) -> QualityReport | None:
        """What its samples tell; None of what isn't speech, or isn't whole."""
        parts = [record.report for record in self.job.records if record.report is not None]
        return None if self.is_cut or not parts else merge_reports(parts)


def start_line_job(
    recipe: LineJobSpec, deps: RenderDeps, notify: Callable[[LineJob], None], *, listen: bool
) -> LineJob:
    """Give a line to the engine.

    Args:
        recipe: What is made.
        deps: With what.
        notify: Told on the engine's loop when it begins to speak and when it ends.
        listen: It goes before all others.

    Raises:
        StorageFailed: There is no room for its files.
        LimitReached: A visitor has had too much already.
    """
    job_id = secrets.token_hex(8)
    # Not the take's id: one that is given up may still be writing when the next try begins.
    folder = deps.segments_folder / job_id
    deps.disk.make_folder(folder)
    backend = deps.engine.models.get_manager(recipe.backend).backend
    # A seed that the line names stands in it; any other one may be followed by a second one.
    own = recipe.seed if recipe.line.seed is not None else None
    language = recipe.line.language or recipe.language
    line = replace(recipe.line, seed=own, language=language).to_dialog_line()
    limits = backend.capabilities.limits()
    planned = plan(Dialog((line,)), limits, seed=recipe.seed, pronounce=recipe.pronounce)
    begun: list[LineJob] = []

    def tell(event: JobEvent) -> None:
        if event.segment_idx is None or event.state == SegmentState.STARTED:
            notify(begun[0])

    order = JobSpec(
        planned,
        recipe.backend,
        deps.cast,
        folder,
        _build_audio_resolver(deps.audio_folder),
        notify=tell,
        is_part=True,
    )
    job = Job(job_id, order)
    making = LineJob(recipe, job)
    begun.append(making)
    try:
        deps.engine.submit(job, listen=listen)
    except BaseException:
        deps.disk.remove(folder)
        raise
    return making


def save_take(making: LineJob, shelf: TakeStore, disk: Disk) -> Take:
    """Make a take of a line that was spoken, or of what was spoken of one that was cut.

    Raises:
        StorageFailed: It can't be written, or its segments are gone.
    """
    recipe, records = making.spec, making.job.records
    audio: Path | Clip
    if len(records) == 1 and records[0].path is not None:
        audio, samples = records[0].path, records[0].samples or 0
    else:
        audio = _join_segments(making.job)
        samples = len(audio)
    line = recipe.line
    take = Take(
        take_id=making.take_id,
        line_id=line.line_id,
        key=recipe.key,
        seed=recipe.seed,
        backend=recipe.backend,
        text=line.text if line.kind is LineKind.SPEECH else line.path or "",
        voice=recipe.voice,
        samples=samples,
        created_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        language=line.language,
        params=dict(line.params),
        cut=making.is_cut,
        doubts=making.report.issues if making.report else (),
        figures=making.report.metrics if making.report else None,
    )
    shelf.add(take, audio)
    disk.remove(making.job.spec.folder)
    return take


def _join_segments(job: Job) -> Clip:
    """The segments of a line that have sound, and the pauses between them."""
    parts: list[TimelinePart] = []
    for record in job.records:
        segment = record.segment
        if isinstance(segment, SilenceSegment):
            parts.append(SilencePart(segment.segment_idx, segment.duration_s))
        elif record.path is not None:
            parts.append(TakePart(segment.segment_idx, record.path))
    timeline = lay_out(parts)
    if timeline.skipped:
        raise StorageFailed(timeline.skipped[0].message)
    blocks = [*timeline.blocks(), np.zeros(0, dtype=np.float32)]
    return Clip(np.concatenate(blocks))


def _build_audio_resolver(folder: Path) -> Callable[[str], Path]:
    def resolve(written: str) -> Path:
        try:
            return folder / check_audio_name(written)
        except BadInput as error:
            raise AudioRejected(str(error)) from error

    return resolve


def choose_retry_seed(take: Take, takes: Sequence[Take], most: int) -> int | None:
    """The seed of the try after a take.

    Args:
        take: A doubtful one, just made.
        takes: All of its line.
        most: How many tries there may be, the first included.

    Returns:
        None when there were as many already, or that one was made before.
    """
    seeds = {one.seed for one in takes if one.key == take.key}
    follows = derive_quality_retry_seed(take.seed)
    if follows in seeds or _count_attempts(take, takes) >= most:
        return None
    return follows


def is_retry(take: Take, takes: Sequence[Take]) -> bool:
    """Whether a take was made since another one was doubtful."""
    return _count_attempts(take, takes) > 1


def _count_attempts(take: Take, takes: Sequence[Take]) -> int:
    """Which try a take is, from 1."""
    before = {derive_quality_retry_seed(one.seed): one.seed for one in takes if one.key == take.key}
    number, seed = 1, take.seed
    while seed in before and number <= len(before):
        seed = before[seed]
        number += 1
    return number
