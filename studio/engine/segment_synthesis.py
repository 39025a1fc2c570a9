"""Synthesis of one segment: the request to the backend, its result, and the file it is saved to."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples, resample
from studio.audio.decode import decode
from studio.audio.guarded_decode import decode_guarded
from studio.backends.base import Backend, SpeechRequest
from studio.dialog.planning import AudioSegment, SpeechSegment
from studio.engine.conditioning_cache import ConditioningCache
from studio.engine.job import Job, SegmentRecord, SegmentState
from studio.errors import Cancelled, OutOfMemory, SpeechFailed, StudioError
from studio.quality.checks import QualityReport, check_take
from studio.quality.expected_duration import build_expected_speech


@dataclass(frozen=True, slots=True)
class SynthesisResult:
    """What a backend made of a segment.

    Attributes:
        clip: At the studio's rate.
        cut: Why it isn't whole; None when it is.
    """

    clip: Clip
    cut: SpeechFailed | None = None


def may_retry(record: SegmentRecord) -> bool:
    """Whether a segment that was cut may be spoken with another seed."""
    segment = record.segment
    assert isinstance(segment, SpeechSegment)
    return record.retried is None and not segment.seed_is_own


def synthesize(
    backend: Backend,
    job: Job,
    record: SegmentRecord,
    *,
    conditioning: ConditioningCache,
    urgency: Callable[[], int | None],
) -> SynthesisResult:
    """Do everything of a segment that needs the backend; runs in a thread.

    Raises:
        SpeechFailed: There is nothing to hear; what was cut is returned.
        OutOfMemory: The device has no room for it.
        Cancelled: The job was.
    """
    if job.cancelled:
        raise Cancelled
    request = _build_request(backend, job, record, conditioning=conditioning, urgency=urgency)
    chunks: list[Samples] = []
    cut = None
    to_skip = record.heard_samples  # a second try's listeners have heard the first one's
    try:
        with closing(_generate_chunks(backend, request)) as spoken:
            for chunk in spoken:
                if job.cancelled:
                    raise Cancelled
                if len(chunk) > to_skip:
                    job.heard(record, chunk[to_skip:])
                to_skip = max(0, to_skip - len(chunk))
                chunks.append(chunk)
    except OutOfMemory:
        raise
    except SpeechFailed as error:
        if not chunks:
            raise
        cut = error
    if not chunks:
        raise SpeechFailed(f"{backend.title} made no sound for this line.")
    return SynthesisResult(Clip(np.concatenate(chunks)), cut)


def derive_cut_retry_seed(seed: int | None) -> int | None:
    """The seed of a second try: another, and for the same first one always the same."""
    return _derive_seed(seed, "second try")


def derive_quality_retry_seed(seed: int | None) -> int | None:
    """The seed of the try after a doubtful one; not that of a second try of what was cut."""
    return _derive_seed(seed, "further try")


def _derive_seed(seed: int | None, why: str) -> int | None:
    if seed is None:
        return None
    digest = hashlib.sha256(f"{why} {seed}".encode()).digest()
    return int.from_bytes(digest[:4]) >> 1  # 31 bits, which every backend takes


def _build_request(
    backend: Backend,
    job: Job,
    record: SegmentRecord,
    *,
    conditioning: ConditioningCache,
    urgency: Callable[[], int | None],
) -> SpeechRequest:
    segment = record.segment
    assert isinstance(segment, SpeechSegment)
    voice = job.order.cast.voice_of(segment.speaker, segment.mood).told(segment.instruct)
    return SpeechRequest(
        text=segment.text,
        conditioning=conditioning.get(backend, voice),
        language=segment.language,
        seed=segment.seed if record.retried is None else record.seed,
        params=segment.params,
        cancelled=lambda: job.cancelled,
        urgency=urgency,
    )


def _generate_chunks(backend: Backend, request: SpeechRequest) -> Generator[Samples]:
    """A backend's chunks at the studio's rate; closing it closes the backend's iterator."""
    rate_hz = backend.capabilities.sample_rate_hz
    spoken: Iterator[Samples] = backend.speak(request)
    if rate_hz != STUDIO_RATE_HZ:
        spoken = resample(spoken, rate_hz, STUDIO_RATE_HZ)
    yield from spoken


log = logging.getLogger(__name__)

SaveClip = Callable[[Path, Clip], None]
"""Writes a clip; called in threads."""


async def save_segment(
    job: Job, record: SegmentRecord, spoken: SynthesisResult, save: SaveClip
) -> None:
    """Write what was generated to disk, in a thread; what was cut is kept and has failed."""
    record.samples = len(spoken.clip)
    if spoken.cut is None:
        job.advance(record, SegmentState.GENERATED)
    record.live.close()
    path = job.segment_path(record)
    try:
        record.checked = await asyncio.to_thread(_write_and_check, path, record, spoken, save)
    except StudioError as error:
        job.fail(record, str(error), type(error).__name__)
    # Whatever it is, nobody else would tell the job that this segment is over.
    except Exception as error:
        log.exception("job %s segment %d", job.job_id, record.segment.segment_idx)
        job.fail(record, describe_fault("Saving", error), type(error).__name__)
    else:
        record.path = path
        if spoken.cut is None:
            job.advance(record, SegmentState.SAVED)
        else:
            record.cut = True
            job.fail(record, str(spoken.cut), type(spoken.cut).__name__)


def _write_and_check(
    path: Path, record: SegmentRecord, spoken: SynthesisResult, save: SaveClip
) -> QualityReport | None:
    """Write a clip, and look over what was spoken; runs in a thread."""
    save(path, spoken.clip)
    is_whole = spoken.cut is None and isinstance(record.segment, SpeechSegment)
    return check_take(spoken.clip, build_expected_speech(record.segment)) if is_whole else None


async def save_audio_segment(
    job: Job, record: SegmentRecord, segment: AudioSegment, save: SaveClip
) -> None:
    """Bring existing audio to the studio's rate, beside the other segments."""
    try:
        clip = await asyncio.to_thread(_decode_audio, job, segment)
    except StudioError as error:
        job.fail(record, str(error), type(error).__name__)
        return
    except Exception as error:
        log.exception("job %s segment %d", job.job_id, record.segment.segment_idx)
        job.fail(record, describe_fault("Decoding", error), type(error).__name__)
        return
    job.heard(record, clip.samples)
    await save_segment(job, record, SynthesisResult(clip), save)


def _decode_audio(job: Job, segment: AudioSegment) -> Clip:
    path = job.order.resolve_audio(segment.path)
    # A project may come from a stranger, with recordings that nobody has looked at.
    return decode_guarded(path)[1] if job.order.is_part else decode(path)


def describe_fault(who: str, error: Exception) -> str:
    """A fault of a part as a line's message."""
    return f"{who} failed on this line ({type(error).__name__}: {error})."
