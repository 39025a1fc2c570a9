"""One segment in one try: what the backend is asked, and what came of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.audio.resample import resampled
from studio.backends.base import Backend, SpeechRequest
from studio.dialog.planning import SpeechSegment
from studio.engine.conditioning import ConditioningCache
from studio.engine.job import Job
from studio.engine.record import SegmentRecord
from studio.errors import Cancelled, OutOfMemory, SpeechFailed


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a backend made of a segment.

    Attributes:
        clip: At the studio's rate.
        cut: Why it isn't whole; None when it is.
    """

    clip: Clip
    cut: SpeechFailed | None = None


def may_try_again(record: SegmentRecord) -> bool:
    """Whether a segment that was cut may be spoken with another seed."""
    segment = record.segment
    assert isinstance(segment, SpeechSegment)
    return record.retried is None and not segment.seed_is_own


def speak(
    backend: Backend,
    job: Job,
    record: SegmentRecord,
    *,
    conditioning: ConditioningCache,
    urgency: Callable[[], int | None],
) -> Spoken:
    """Do everything of a segment that needs the backend; runs in a thread.

    Raises:
        SpeechFailed: There is nothing to hear; what was cut is returned.
        OutOfMemory: The device has no room for it.
        Cancelled: The job was.
    """
    if job.cancelled:
        raise Cancelled
    request = _request(backend, job, record, conditioning=conditioning, urgency=urgency)
    chunks: list[Samples] = []
    cut = None
    to_skip = record.heard_samples  # a second try's listeners have heard the first one's
    try:
        with closing(_chunks(backend, request)) as spoken:
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
    return Spoken(Clip(np.concatenate(chunks)), cut)


def second_seed(seed: int | None) -> int | None:
    """The seed of a second try: another, and for the same first one always the same."""
    return _derived(seed, "second try")


def further_seed(seed: int | None) -> int | None:
    """The seed of the try after a doubtful one; not that of a second try of what was cut."""
    return _derived(seed, "further try")


def _derived(seed: int | None, why: str) -> int | None:
    if seed is None:
        return None
    digest = hashlib.sha256(f"{why} {seed}".encode()).digest()
    return int.from_bytes(digest[:4]) >> 1  # 31 bits, which every backend takes


def _request(
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


def _chunks(backend: Backend, request: SpeechRequest) -> Generator[Samples]:
    """A backend's chunks at the studio's rate; closing it closes the backend's iterator."""
    rate_hz = backend.capabilities.sample_rate_hz
    spoken: Iterator[Samples] = backend.speak(request)
    if rate_hz != STUDIO_RATE_HZ:
        spoken = resampled(spoken, rate_hz, STUDIO_RATE_HZ)
    yield from spoken
