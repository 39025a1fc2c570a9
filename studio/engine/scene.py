"""What a job has made so far, as one piece of audio."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from studio.audio.clip import Samples
from studio.audio.export import Caption, OnProgress
from studio.audio.loudness import Loudness
from studio.audio.mastering import Mastering, plan_master
from studio.audio.pcm import to_pcm16
from studio.audio.scene_file import SoundChoice, speakers_of, write_scene
from studio.audio.timeline import FailedPart, Part, SilencePart, TakePart, Timeline, lay_out
from studio.dialog.planning import SilenceSegment
from studio.engine.doubtful import doubtful
from studio.engine.job import Job
from studio.engine.record import SegmentRecord, SegmentState
from studio.errors import Conflict

AS_RENDERED = SoundChoice()


def timeline_of(job: Job) -> Timeline:
    """Saved segments and silences in order; failed ones are skipped and named.

    What is not finished yet is left out without a word: the timeline is of now.
    """
    parts = (_part(record) for record in job.records)
    return lay_out(part for part in parts if part is not None)


def export_job(
    job: Job,
    path: Path,
    choice: SoundChoice = AS_RENDERED,
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
    timeline = timeline_of(job)
    if timeline.n_samples == 0:
        raise Conflict("Nothing has been spoken yet, so there is nothing to save.")
    return write_scene(path, timeline, captions_of(job), choice, on_progress=on_progress)


def mastered_blocks(job: Job, mastering: Mastering) -> Iterator[Samples]:
    """The scene as it is now, at a level; float32 [samples] at the studio's rate.

    Raises:
        BadInput: It is too quiet or too short to have a loudness.
        StorageFailed: A take can't be read.
    """
    timeline = timeline_of(job)
    return plan_master(timeline, speakers_of(captions_of(job)), mastering).blocks(timeline)


def captions_of(job: Job) -> dict[int, Caption]:
    """Who says what, and what is doubtful about it, by `segment_idx`."""
    told = {one.segment_idx: one.message for one in doubtful(job)}
    return {idx: _caption(record, told.get(idx)) for idx, record in enumerate(job.records)}


def read_take(path: Path) -> bytes:
    """A saved segment as s16le mono at the studio's rate.

    Raises:
        StorageFailed: The file is gone or broken.
    """
    return b"".join(to_pcm16(block).tobytes() for block in lay_out([TakePart(0, path)]).blocks())


def _part(record: SegmentRecord) -> Part | None:
    segment_idx = record.segment.segment_idx
    if record.state is SegmentState.FAILED:
        return FailedPart(segment_idx, record.message or "")
    if record.state is not SegmentState.SAVED:
        return None
    if isinstance(record.segment, SilenceSegment):
        return SilencePart(segment_idx, record.segment.duration_s)
    assert record.path is not None
    return TakePart(segment_idx, record.path)


def _caption(record: SegmentRecord, told: str | None) -> Caption:
    segment = record.segment
    return Caption(
        segment.line_number,
        getattr(segment, "speaker", None),
        getattr(segment, "text", None),
        (told,) if told else (),
    )
