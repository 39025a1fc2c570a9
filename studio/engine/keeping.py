"""What was made of a segment, or is there already, to its file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from studio.audio.clip import Clip
from studio.audio.decode import decode
from studio.audio.doubts import Checked, check
from studio.audio.guarded import decode_guarded
from studio.dialog.planning import AudioSegment, SpeechSegment
from studio.engine.doubtful import said_of
from studio.engine.job import Job
from studio.engine.record import SegmentRecord, SegmentState
from studio.engine.speaking import Spoken
from studio.errors import StudioError

log = logging.getLogger(__name__)

Save = Callable[[Path, Clip], None]
"""Writes a clip; called in threads."""


async def keep(job: Job, record: SegmentRecord, spoken: Spoken, save: Save) -> None:
    """Write what was generated to disk, in a thread; what was cut is kept and has failed."""
    record.samples = len(spoken.clip)
    if spoken.cut is None:
        job.advance(record, SegmentState.GENERATED)
    record.live.close()
    path = job.segment_path(record)
    try:
        record.checked = await asyncio.to_thread(_saved, path, record, spoken, save)
    except StudioError as error:
        job.fail(record, str(error), type(error).__name__)
    # Whatever it is, nobody else would tell the job that this segment is over.
    except Exception as error:
        log.exception("job %s segment %d", job.job_id, record.segment.segment_idx)
        job.fail(record, fault_of("Saving", error), type(error).__name__)
    else:
        record.path = path
        if spoken.cut is None:
            job.advance(record, SegmentState.SAVED)
        else:
            record.cut = True
            job.fail(record, str(spoken.cut), type(spoken.cut).__name__)


def _saved(path: Path, record: SegmentRecord, spoken: Spoken, save: Save) -> Checked | None:
    """Write a clip, and look over what was spoken; runs in a thread."""
    save(path, spoken.clip)
    is_whole = spoken.cut is None and isinstance(record.segment, SpeechSegment)
    return check(spoken.clip, said_of(record.segment)) if is_whole else None


async def lay_in(job: Job, record: SegmentRecord, segment: AudioSegment, save: Save) -> None:
    """Bring existing audio to the studio's rate, beside the other segments."""
    try:
        clip = await asyncio.to_thread(_decoded, job, segment)
    except StudioError as error:
        job.fail(record, str(error), type(error).__name__)
        return
    except Exception as error:
        log.exception("job %s segment %d", job.job_id, record.segment.segment_idx)
        job.fail(record, fault_of("Decoding", error), type(error).__name__)
        return
    job.heard(record, clip.samples)
    await keep(job, record, Spoken(clip), save)


def _decoded(job: Job, segment: AudioSegment) -> Clip:
    path = job.order.resolve_audio(segment.path)
    # A project may come from a stranger, with recordings that nobody has looked at.
    return decode_guarded(path)[1] if job.order.is_part else decode(path)


def fault_of(who: str, error: Exception) -> str:
    """A fault of a part as a line's message."""
    return f"{who} failed on this line ({type(error).__name__}: {error})."
