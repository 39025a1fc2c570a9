"""Speech for other programs: readings apart from the page's renders, on the same queue."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples, from_pcm16
from studio.audio.export import MAX_SILENCE_S
from studio.audio.mastering import Mastering
from studio.backends.aliases import canonical_name
from studio.dialog.line_text import Pronounce
from studio.dialog.model import Dialog
from studio.dialog.names import name_key
from studio.dialog.planning import FailedSegment, SilenceSegment, plan
from studio.engine.job import Job, JobSpec, SegmentRecord, SegmentState
from studio.engine.job_results import read_segment_pcm
from studio.errors import (
    AudioRejected,
    BadInput,
    Cancelled,
    EngineBusy,
    ModelUnavailable,
    OutOfMemory,
    SampleRejected,
    SpeechFailed,
    StudioError,
)
from studio.services.studio import Studio
from studio.storage.workspace import READINGS
from studio.voices.cast import Cast
from studio.voices.library import SpeakerLibrary
from studio.voices.speaker import Voice

MAX_QUEUED_SEGMENTS = 5_000
"""Segments of all jobs that may wait before a program is told to come back."""

_BLOCK_SAMPLES = STUDIO_RATE_HZ
_KINDS: dict[str, type[StudioError]] = {
    kind.__name__: kind
    for kind in (AudioRejected, ModelUnavailable, OutOfMemory, SampleRejected, SpeechFailed)
}
"""What a segment's failure is raised as; a fault of another kind is nobody's but the studio's."""


@dataclass(frozen=True, slots=True)
class SpeechOptions:
    """How something is read.

    Attributes:
        backend_name: None for the studio's own choice.
        seed: For lines without one of their own.
        voices: Whose voice a name has; a name that isn't here is looked up in the library.
        pronounce: What a voice hears of a text; None for the text itself.
        mastering: What becomes of the level where the whole is written to a file.
    """

    backend_name: str | None = None
    seed: int | None = None
    voices: Mapping[str, Voice] = field(default_factory=dict)
    pronounce: Pronounce | None = None
    mastering: Mastering = field(default_factory=Mastering)


class SpeechStream:
    """A job in a folder of its own, which `close` removes."""

    def __init__(self, studio: Studio, dialog: Dialog, options: SpeechOptions) -> None:
        """Begin to read; returns at once.

        Raises:
            BadInput: Nothing of it can be spoken.
            EngineBusy: Too much is waiting already.
            SettingError: There is no such backend.
        """
        self._engine = studio.engine
        self.mastering = options.mastering
        backend_name = canonical_name(options.backend_name or studio.backend_name)
        backend = self._engine.models.manager(backend_name).backend
        if self._engine.renderer.queued >= MAX_QUEUED_SEGMENTS:
            raise EngineBusy("The queue is full; try again in half a minute.", retry_after_s=30)
        cast = _GivenCast(studio.speakers, options.voices)
        planned = plan(
            dialog,
            backend.capabilities.limits(),
            seed=options.seed,
            languages_of=cast.languages_of,
            pronounce=options.pronounce,
        )
        _check_speakable(planned.segments)
        self._folder = Path(tempfile.mkdtemp(prefix="reading-", dir=_items(studio)))
        self.job = Job(
            secrets.token_hex(8),
            JobSpec(
                plan=planned,
                backend_name=backend_name,
                cast=cast,
                folder=self._folder,
                resolve_audio=_refuse_audio,
            ),
        )
        try:
            self._engine.submit(self.job, listen=False)
        except BaseException:
            shutil.rmtree(self._folder)
            raise

    async def chunks(self) -> AsyncIterator[Samples]:
        """What is read, in order, as soon as it is made; float32 [samples] at the studio's rate.

        Raises:
            SpeechFailed: The backend can't speak a segment.
            StudioError: A segment failed for another reason.
            Cancelled: It was stopped.
        """
        for record in self.job.records:
            async for chunk in _chunks(record):
                yield chunk

    def clip(self) -> Clip:
        """All of it, once it is made; from threads.

        Raises:
            SpeechFailed: A segment could not be spoken.
        """

        async def joined() -> list[Samples]:
            return [chunk async for chunk in self.chunks()]

        return Clip(np.concatenate(asyncio.run(joined())))

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.job.events.closed

    async def aclose(self) -> None:
        """Stop it as `close` does, and hold no thread while what is in flight comes to its end."""
        await asyncio.to_thread(self._engine.cancel, self.job)
        async for _ in self.job.events.afollow():
            pass
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Stop what still runs and remove the folder."""
        if not self.is_over:
            self._engine.cancel(self.job)
            # What is in flight ends at its next step and may still write its file.
            for _ in self.job.events.follow():
                pass
        shutil.rmtree(self._folder, ignore_errors=True)


class _GivenCast(Cast):
    """A cast in which some names have a voice that came with the request."""

    def __init__(self, library: SpeakerLibrary, voices: Mapping[str, Voice]) -> None:
        super().__init__(library, {})
        self._given = {name_key(name): voice for name, voice in voices.items()}

    def voice_of(self, name: str, mood: str | None = None) -> Voice:
        given = self._given.get(name_key(name))
        return given if given is not None else super().voice_of(name, mood)


def _check_speakable(segments: tuple[object, ...]) -> None:
    failed = [one for one in segments if isinstance(one, FailedSegment)]
    if failed and len(failed) == len(segments):
        raise BadInput(failed[0].message)
    silence_s = sum(one.duration_s for one in segments if isinstance(one, SilenceSegment))
    if silence_s > MAX_SILENCE_S:
        raise BadInput(
            f"The pauses last {silence_s / 3600:,.0f} hours; {MAX_SILENCE_S / 3600:.0f} are the "
            "most. Shorten them."
        )


def _items(studio: Studio) -> Path:
    folder = studio.options.workspace / READINGS
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _refuse_audio(written: str) -> Path:
    raise AudioRejected(f"The audio file “{written}” can't be used here.")


async def _chunks(record: SegmentRecord) -> AsyncIterator[Samples]:
    # The feed before the path: once the feed is replaced, the path is there.
    live, path = record.live, record.path
    if path is not None:
        pcm = await asyncio.to_thread(read_segment_pcm, path)
        yield from_pcm16(np.frombuffer(pcm, dtype=np.int16))
    elif isinstance(record.segment, SilenceSegment):
        for start in range(0, record.samples or 0, _BLOCK_SAMPLES):
            length = min(_BLOCK_SAMPLES, (record.samples or 0) - start)
            yield np.zeros(length, dtype=np.float32)
    else:
        async for chunk in live.afollow():
            yield chunk
        if live.withdrawn:
            # What was sent can't be taken back, and the second try would be heard behind it.
            raise SpeechFailed(record.retried or "This line was cut.")
    _raise_failure(record)


def _raise_failure(record: SegmentRecord) -> None:
    if record.state is SegmentState.FAILED:
        kind = _KINDS.get(record.fault or "", StudioError)
        raise kind(record.message or "This line could not be spoken.")
    if record.state is SegmentState.CANCELLED:
        raise Cancelled("This line was cancelled before it was spoken.")
