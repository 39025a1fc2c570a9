"""Speech for other programs: jobs that no page lists, on the same queue as the renders."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from studio.audio.clip import Clip, Samples
from studio.audio.export import check_silence
from studio.audio.file_tags import Cover
from studio.audio.mastering import Mastering
from studio.backends.base import canonical_name
from studio.backends.registry import describe_engines
from studio.backends.voice_names import VoiceNames
from studio.dialog.gaps import Gaps
from studio.dialog.model import Dialog, Notice, Speech
from studio.dialog.planning import BRACKETS, FailedSegment, plan
from studio.dialog.pronunciation import IN_WORDS, PronunciationRules
from studio.engine.engine import QueueLimit, Render
from studio.engine.job import JobSpec, SegmentAudio, SegmentRecord, SegmentState
from studio.errors import (
    AudioRejected,
    BadInput,
    Cancelled,
    DiskFull,
    ModelUnavailable,
    OutOfMemory,
    SampleRejected,
    SpeechFailed,
    StudioError,
)
from studio.project.characters import Character, gaps_before, inherit_in_dialog
from studio.project.cover import read_project_cover
from studio.project.folder import COVER_FILE
from studio.services.studio import Studio
from studio.storage.disk import storage_errors
from studio.storage.workspace import READINGS
from studio.voices.automatic import name_voices
from studio.voices.cast import Cast
from studio.voices.speaker import Voice

QUEUE_LIMIT = QueueLimit(5_000, "The queue is full; try again in half a minute.", retry_after_s=30)

MAX_BRACKETS = 100_000
"""In the lines of a dialog."""

MAX_SEGMENTS = 50_000
"""Of a dialog; each takes 2 KB of memory until it is deleted."""

_KINDS: dict[str, type[StudioError]] = {
    kind.__name__: kind
    for kind in (
        AudioRejected,
        DiskFull,
        ModelUnavailable,
        OutOfMemory,
        SampleRejected,
        SpeechFailed,
    )
}
"""The error that a segment's failure is raised as, by its recorded name."""


@dataclass(frozen=True, slots=True)
class SpeechOptions:
    """How to speak a dialog.

    Attributes:
        backend_name: None for the studio's own choice.
        seed: For lines without a seed of their own.
        voices: Voices by name; a name that isn't here is looked up in the library.
        rules: By which texts are spoken.
        mastering: The loudness of the whole when it is written to a file.
        notices: About how the dialog was read; its plan begins with them.
        tries: As in `JobSpec`.
        characters: Settings of characters by the name's key, as in a project.
        gap_s: The usual gap between lines.
        title: What the text calls itself, for the tags of files; empty if it doesn't say.
    """

    backend_name: str | None = None
    seed: int | None = None
    voices: Mapping[str, Voice] = field(default_factory=dict)
    rules: PronunciationRules = IN_WORDS
    mastering: Mastering = field(default_factory=Mastering)
    notices: tuple[Notice, ...] = ()
    tries: int = 1
    characters: Mapping[str, Character] = field(default_factory=dict)
    gap_s: float = 0.0
    title: str = ""


class SpeechStream:
    """A render whose audio is read while it runs; its owner has to close it.

    Attributes:
        dialog: What is rendered.
        mastering: As in its options.
        rules: As in its options.
        title: As in its options.
        render: The job and its folder.
        job: The job.
    """

    def __init__(
        self, studio: Studio, dialog: Dialog, options: SpeechOptions, *, needs_files: bool = True
    ) -> None:
        """Submit the job; returns at once.

        Args:
            studio: Speaks.
            dialog: The lines.
            options: How to speak them.
            needs_files: Whether more is done than to read the audio once; if not, nothing fails
                because the disk is full.

        Raises:
            BadInput: No line can be spoken.
            StorageFailed: There is no room for its files.
        """
        self.dialog, self.mastering, self.title = dialog, options.mastering, options.title
        self.rules = options.rules
        backend_name = canonical_name(options.backend_name or studio.backend_name)
        backend = studio.engine.models.get_manager(backend_name).backend
        capabilities = backend.capabilities
        QUEUE_LIMIT.check(studio.engine)
        engines = describe_engines(backend)
        assigned, named_notices = VoiceNames(studio.speakers, backend).cast(dialog)
        known = {*assigned, *options.voices}
        first_names = name_voices(dialog, engines, studio.speakers, known)
        cast = Cast(studio.speakers, {}, assigned, first_names, given=options.voices)
        _check_brackets(dialog)
        planned = plan(
            inherit_in_dialog(dialog, options.characters, cast),
            capabilities.limits(),
            seed=options.seed,
            languages_of=cast.list_languages,
            moods_of=cast.list_moods,
            pronounce=options.rules.spoken,
        ).with_gaps(Gaps(options.gap_s, gaps_before(options.characters)), dialog)
        left_out = studio.speakers.list_unreadable() if needs_files else ()
        notices = (*options.notices, *named_notices, *planned.notices, *map(Notice, left_out))
        planned = replace(planned, notices=notices)
        _check_count(planned.segments)
        _check_speakable(planned.segments)
        check_silence(planned.measure_silence_s())
        folder = _make_folder(studio.options.workspace / READINGS, is_needed=needs_files)
        spec = JobSpec(
            planned,
            backend_name,
            cast,
            folder,
            tries=options.tries,
            levels_db={key: one.level_db for key, one in options.characters.items()},
            pans={key: one.pan for key, one in options.characters.items()},
            name_automatic=partial(capabilities.name_automatic, language=None),
            survives_full_disk=not needs_files,
        )
        self.render = Render(studio.engine, spec)
        self.job = self.render.job
        self.render.start()

    async def chunks(self) -> AsyncIterator[Samples]:
        """The audio in order, as soon as it is generated; float32 [samples] at the studio's rate.

        Raises:
            SpeechFailed: The backend can't speak a segment.
            StudioError: A segment failed for another reason.
            Cancelled: The job was stopped.
        """
        for record in self.job.records:
            audio = SegmentAudio(record)
            async for chunk in audio.stream():
                yield chunk
            if audio.is_withdrawn:
                # The retry would follow audio that has been sent already and can't be taken back.
                raise SpeechFailed(record.retry_reason or "This line was cut.")
            _raise_failure(record)
            if not audio.is_whole:  # it was cut, and will be recorded as failed
                raise SpeechFailed("This line was cut.")

    @property
    def cover(self) -> Cover | None:
        """The image that files of the audio carry; None for none."""
        folder = self.job.spec.folder
        return None if folder is None else read_project_cover(folder)

    def save_cover(self, cover: Cover) -> None:
        """Keep an image with the files of a job that has a folder."""
        assert self.job.spec.folder is not None
        _ = cover.image
        with storage_errors(self.job.spec.folder):
            (self.job.spec.folder / COVER_FILE).write_bytes(cover.data)

    def clip(self) -> Clip:
        """Wait for all of the audio; to be called in a thread."""

        async def joined() -> list[Samples]:
            return [chunk async for chunk in self.chunks()]

        return Clip(np.concatenate(asyncio.run(joined())))


def _make_folder(readings: Path, *, is_needed: bool) -> Path | None:
    """A folder for a job's files; None if the disk has no room for it and it isn't needed."""
    try:
        with storage_errors(readings):
            readings.mkdir(parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(prefix="reading-", dir=readings))
    except DiskFull:
        if is_needed:
            raise
        return None


def _check_brackets(dialog: Dialog) -> None:
    """Check that planning takes no longer than the others can wait.

    Raises:
        BadInput: There are too many brackets, each of which takes as long as a hundred letters.
    """
    texts = (line.text for line in dialog if isinstance(line, Speech))
    if sum(text.count(one) for text in texts for one in BRACKETS) > MAX_BRACKETS:
        raise BadInput(
            f"A dialog has at most {MAX_BRACKETS:,} pauses, tags and other brackets. Divide it "
            "into parts."
        )


def _check_count(segments: tuple[object, ...]) -> None:
    if len(segments) > MAX_SEGMENTS:
        raise BadInput(
            f"Pauses cut this dialog into {len(segments):,} pieces; {MAX_SEGMENTS:,} are the most. "
            "Divide it into parts."
        )


def _check_speakable(segments: tuple[object, ...]) -> None:
    failed = [one for one in segments if isinstance(one, FailedSegment)]
    if failed and len(failed) == len(segments):
        raise BadInput(failed[0].message)


def _raise_failure(record: SegmentRecord) -> None:
    if record.state is SegmentState.FAILED:
        kind = _KINDS.get(record.fault or "", StudioError)
        raise kind(record.message or "This line could not be spoken.")
    if record.state is SegmentState.CANCELLED:
        raise Cancelled("This line was cancelled before it was spoken.")
