"""The results of a job so far: its timeline, captions, export and quality issues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path

from studio.audio.clip import Samples, to_pcm16
from studio.audio.export import Caption, OnProgress
from studio.audio.loudness import Loudness
from studio.audio.mastering import Mastering, plan_master
from studio.audio.scene_file import ExportOptions, list_speakers, write_scene
from studio.audio.timeline import FailedPart, SilencePart, TakePart, Timeline, TimelinePart, lay_out
from studio.dialog.names import name_key
from studio.dialog.planning import SilenceSegment, SpeechSegment
from studio.engine.job import Job, SegmentRecord, SegmentState
from studio.errors import Conflict
from studio.quality.checks import (
    QualityIssue,
    TakeMetrics,
    VoiceBaseline,
    build_baseline,
    find_outliers,
)


@dataclass(frozen=True, slots=True)
class SegmentIssues:
    """A segment that was spoken and is to be heard before it is used, with the script's line."""

    segment_idx: int
    line_number: int
    issues: tuple[QualityIssue, ...]

    @property
    def message(self) -> str:
        """All doubts in one piece."""
        return " ".join(doubt.message for doubt in self.issues)


def find_segment_issues(job: Job) -> tuple[SegmentIssues, ...]:
    """Segments of a job that are doubtful as far as it has come, in order.

    A voice's segments are compared with each other once there are eight of them.
    """
    usual = _build_baselines(job)
    found = []
    for record in job.records:
        if record.report is None:
            continue
        others = find_outliers(record.report.metrics, usual.get(_build_voice_key(record)))
        if doubts := record.report.issues + others:
            segment = record.segment
            found.append(SegmentIssues(segment.segment_idx, segment.line_number, doubts))
    return tuple(found)


def _build_baselines(job: Job) -> dict[Hashable, VoiceBaseline | None]:
    figures: dict[Hashable, list[TakeMetrics]] = defaultdict(list)
    for record in job.records:
        if record.report is not None:
            figures[_build_voice_key(record)].append(record.report.metrics)
    return {voice: build_baseline(others) for voice, others in figures.items()}


def _build_voice_key(record: SegmentRecord) -> Hashable:
    """What segments have in common that are to sound alike."""
    segment = record.segment
    assert isinstance(segment, SpeechSegment)
    params = tuple(sorted(segment.params.items()))
    how = (segment.mood, segment.instruct, segment.language)
    return (name_key(segment.speaker), *how, params)


JOB_EXPORT_DEFAULTS = ExportOptions()


def build_job_timeline(job: Job) -> Timeline:
    """Saved segments and silences in order; failed ones are skipped and named.

    What is not finished yet is left out without a word: the timeline is of now.
    """
    parts = (_build_part(record) for record in job.records)
    return lay_out(part for part in parts if part is not None)


def export_job(
    job: Job,
    path: Path,
    choice: ExportOptions = JOB_EXPORT_DEFAULTS,
    *,
    on_progress: OnProgress | None = None,
) -> Loudness | None:
    """Write the scene as it is now to a file; its suffix says how.

    Returns:
        What the file holds, where the choice has it measured.

    Raises:
        BadInput: The suffix is none of .wav, .flac, .mp3 and .zip, or the scene has no loudness.
        Conflict: No segment is ready.
        StorageFailed: The file can't be written; what was there before is untouched.
    """
    timeline = build_job_timeline(job)
    if timeline.n_samples == 0:
        raise Conflict("Nothing has been spoken yet, so there is nothing to save.")
    return write_scene(path, timeline, build_captions(job), choice, on_progress=on_progress)


def read_mastered_blocks(job: Job, mastering: Mastering) -> Iterator[Samples]:
    """The scene as it is now, at a level; float32 [samples] at the studio's rate.

    Raises:
        BadInput: It is too quiet or too short to have a loudness.
        StorageFailed: A take can't be read.
    """
    timeline = build_job_timeline(job)
    return plan_master(timeline, list_speakers(build_captions(job)), mastering).blocks(timeline)


def build_captions(job: Job) -> dict[int, Caption]:
    """Who says what, and what is doubtful about it, by `segment_idx`."""
    messages = {one.segment_idx: one.message for one in find_segment_issues(job)}
    return {
        idx: _build_caption(record, messages.get(idx)) for idx, record in enumerate(job.records)
    }


def read_segment_pcm(path: Path) -> bytes:
    """A saved segment as s16le mono at the studio's rate.

    Raises:
        StorageFailed: The file is gone or broken.
    """
    return b"".join(to_pcm16(block).tobytes() for block in lay_out([TakePart(0, path)]).blocks())


def _build_part(record: SegmentRecord) -> TimelinePart | None:
    segment_idx = record.segment.segment_idx
    if record.state is SegmentState.FAILED:
        return FailedPart(segment_idx, record.message or "")
    if record.state is not SegmentState.SAVED:
        return None
    if isinstance(record.segment, SilenceSegment):
        return SilencePart(segment_idx, record.segment.duration_s)
    assert record.path is not None
    return TakePart(segment_idx, record.path)


def _build_caption(record: SegmentRecord, message: str | None) -> Caption:
    segment = record.segment
    return Caption(
        segment.line_number,
        getattr(segment, "speaker", None),
        getattr(segment, "text", None),
        (message,) if message else (),
    )
