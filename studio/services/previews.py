"""Trying voices out on the engine: a sentence of one's own, and a line acted for a speaker."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from studio.audio.clip import Clip
from studio.audio.decode import decode
from studio.audio.encode import write_wav
from studio.audio.guarded_decode import decode_guarded
from studio.dialog.model import Dialog, Speech
from studio.dialog.names import clean_name
from studio.dialog.planning import MOOD, plan
from studio.engine.engine import Engine
from studio.engine.job import Job, JobSpec, JobState
from studio.engine.job_results import export_job
from studio.engine.voice_conversion import check_can_convert
from studio.errors import AudioRejected, BadInput, Cancelled, SpeechFailed
from studio.voices.cast import Cast
from studio.voices.library import SpeakerLibrary

MAX_PREVIEW_CHARS = 500

_PREVIEWED = "This voice"


@dataclass(frozen=True, slots=True)
class Sentence:
    """What a preview says, and with which of a speaker's moods."""

    text: str
    mood: str | None = None
    language: str | None = None


class VoicePreviews:
    """Previews and acted lines, on any event loop; cancelling the call stops the work.

    A preview is a small job that takes its turn among all others. It is no render: no page lists
    it, and its files are gone when it has been heard.
    """

    def __init__(self, library: SpeakerLibrary, engine: Engine) -> None:
        """Try out a library's voices."""
        self._library = library
        self._engine = engine

    async def preview(self, speaker_id: str, sentence: Sentence, backend_name: str) -> Clip:
        """Let a speaker of the library say a sentence.

        Args:
            speaker_id: Whose voice.
            sentence: Its text has at most `MAX_PREVIEW_CHARS` characters.
            backend_name: Who speaks.

        Raises:
            NotFound: The speaker isn't there any more.
            BadInput: The text is empty or too long.
            SpeechFailed: It could not be spoken; says why.
        """
        speaker = await asyncio.to_thread(self._library.by_id, speaker_id)
        cast = Cast(self._library, {}, {speaker.name: speaker_id})
        return await self._say(speaker.name, cast, sentence, backend_name)

    async def recite(self, cast: Cast, name: str, text: str, backend_name: str) -> Clip:
        """Let a name of a cast say a text, whether it has a voice of the library or not.

        Args:
            cast: Who speaks with which voice.
            name: Whose voice.
            text: At most `MAX_PREVIEW_CHARS` characters.
            backend_name: Who speaks.

        Raises:
            BadInput: The text is empty or too long, or no speaker can have that name.
            SpeechFailed: It could not be spoken; says why.
        """
        return await self._say(clean_name(name), cast, Sentence(text), backend_name)

    async def audition(self, clip: Clip, sentence: Sentence, backend_name: str) -> Clip:
        """Let a voice that isn't in the library yet say a sentence; as `preview` otherwise."""
        with tempfile.TemporaryDirectory(prefix="tableread-") as folder:
            path = Path(folder) / "sample.wav"
            await asyncio.to_thread(write_wav, path, clip)
            cast = Cast(self._library, {_PREVIEWED: path})
            return await self._say(_PREVIEWED, cast, sentence, backend_name)

    async def act(
        self, speaker_id: str, recording: Path, backend_name: str, mood: str | None = None
    ) -> Clip:
        """Say a recording again in a speaker's voice, with its own words and timing.

        Args:
            speaker_id: Whose voice.
            recording: In any format `decode` takes.
            backend_name: One that converts voices.
            mood: As in a line.

        Raises:
            NotFound: The speaker isn't there any more.
            BadInput: The backend converts no voices.
            AudioRejected: The recording can't be read, or is too short or too long.
            ModelUnavailable: The backend can't be loaded.
        """
        stopped = threading.Event()
        try:
            return await asyncio.to_thread(
                self._act, (speaker_id, mood), recording, backend_name, stopped
            )
        finally:
            stopped.set()

    def _act(
        self,
        who: tuple[str, str | None],
        recording: Path,
        backend_name: str,
        stopped: threading.Event,
    ) -> Clip:
        speaker = self._library.by_id(who[0])
        check_can_convert(self._engine.models.manager(backend_name).backend)
        voice = Cast(self._library, {}, {speaker.name: who[0]}).voice_of(speaker.name, who[1])
        _, said = decode_guarded(recording, display_name="The recording")
        return self._engine.convert(backend_name, said, voice, stopped.is_set)

    async def _say(self, name: str, cast: Cast, sentence: Sentence, backend_name: str) -> Clip:
        capabilities = self._engine.models.manager(backend_name).backend.capabilities
        line = _line(name, sentence)
        with tempfile.TemporaryDirectory(prefix="tableread-") as folder:
            order = JobSpec(
                plan=plan(
                    Dialog((line,)), capabilities.limits(), seed=0, languages_of=cast.languages_of
                ),
                backend_name=backend_name,
                cast=cast,
                folder=Path(folder),
                resolve_audio=_no_audio,
            )
            return await self._heard(Job(secrets.token_hex(8), order))

    async def _heard(self, job: Job) -> Clip:
        submitting = asyncio.ensure_future(asyncio.to_thread(self._engine.submit, job, listen=True))
        try:
            await asyncio.shield(submitting)
            async for _ in job.events.afollow():
                pass
        except BaseException:
            await submitting  # what hasn't begun can't be stopped, and would begin afterwards
            await asyncio.to_thread(self._stop, job)
            raise
        if job.state is JobState.CANCELLED:
            raise Cancelled("The preview was stopped.")
        failures = job.failures()
        if failures:
            raise SpeechFailed(failures[0].message)
        return await asyncio.to_thread(_whole, job)

    def _stop(self, job: Job) -> None:
        """Cancel a job and wait until nothing of it runs: its folder is about to go."""
        self._engine.cancel(job)
        for _ in job.events.follow():
            pass


def _whole(job: Job) -> Clip:
    path = job.order.folder / "preview.wav"
    export_job(job, path)
    return decode(path)


def _line(name: str, sentence: Sentence) -> Speech:
    text = " ".join(sentence.text.split())
    if not text:
        raise BadInput("Write a sentence to hear.")
    if len(text) > MAX_PREVIEW_CHARS:
        raise BadInput(
            f"The sentence has {len(text)} characters; {MAX_PREVIEW_CHARS} are the most here."
        )
    params = {} if sentence.mood is None else {MOOD: sentence.mood}
    return Speech(name, text, sentence.language, params=params, line_number=1)


def _no_audio(written: str) -> NoReturn:
    raise AudioRejected(f"The audio file “{written}” can't be used here.")
