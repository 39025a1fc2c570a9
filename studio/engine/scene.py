"""What a job has made so far, as one piece of audio."""

from __future__ import annotations

from pathlib import Path

from studio.audio.encode import format_of
from studio.audio.export import Caption, OnProgress, export_audio, export_zip
from studio.audio.pcm import to_pcm16
from studio.audio.timeline import FailedPart, Part, SilencePart, TakePart, Timeline, lay_out
from studio.dialog.planning import SilenceSegment
from studio.engine.doubtful import doubtful
from studio.engine.job import Job, SegmentRecord, SegmentState
from studio.errors import Conflict


def timeline_of(job: Job) -> Timeline:
    """Saved segments and silences in order; failed ones are skipped and named.

    What is not finished yet is left out without a word: the timeline is of now.
    """
    parts = (_part(record) for record in job.records)
    return lay_out(part for part in parts if part is not None)


def check_export_name(path: Path) -> None:
    """See that a file's suffix says how to write it.

    Raises:
        BadInput: It is none of .wav, .flac, .mp3 and .zip.
    """
    if not _is_zip(path):
        format_of(path)


def export_job(job: Job, path: Path, *, on_progress: OnProgress | None = None) -> None:
    """Write the scene as it is now to a file; its suffix says how.

    Raises:
        BadInput: The suffix is none of .wav, .flac, .mp3 and .zip.
        Conflict: No segment is ready.
        StorageFailed: The file can't be written; what was there before is untouched.
    """
    timeline = timeline_of(job)
    if timeline.n_samples == 0:
        raise Conflict("Nothing has been spoken yet, so there is nothing to save.")
    if _is_zip(path):
        told = {one.segment_idx: one.message for one in doubtful(job)}
        captions = {idx: _caption(record, told.get(idx)) for idx, record in enumerate(job.records)}
        export_zip(path, timeline, captions, on_progress=on_progress)
    else:
        export_audio(path, timeline, on_progress=on_progress)


def read_take(path: Path) -> bytes:
    """A saved segment as s16le mono at the studio's rate.

    Raises:
        StorageFailed: The file is gone or broken.
    """
    return b"".join(to_pcm16(block).tobytes() for block in lay_out([TakePart(0, path)]).blocks())


def _is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


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
