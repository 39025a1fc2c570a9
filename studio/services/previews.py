"""Voice previews and voice conversion on the engine."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from studio.audio.clip import Clip, write_wav
from studio.audio.decode import decode
from studio.audio.guarded_decode import decode_guarded
from studio.dialog.model import Dialog, ParamValue, Pronounce, Speech, clean_name
from studio.dialog.planning import MOOD, Plan, plan
from studio.dialog.pronunciation import IN_WORDS
from studio.engine.engine import Render, SpeechEngine
from studio.engine.job import Job, JobSpec, JobState, build_scene
from studio.engine.voice_conversion import check_can_convert
from studio.errors import BadInput, Cancelled, DiskFull, SpeechFailed
from studio.voices.cast import Cast
from studio.voices.library import SpeakerLibrary

MAX_PREVIEW_CHARS = 500

_PREVIEWED = "This voice"


@dataclass(frozen=True, slots=True)
class Sentence:
    """The text of a preview, and the mood, language and parameters to speak it with."""

    text: str
    mood: str | None = None
    language: str | None = None
    params: Mapping[str, ParamValue] = field(default_factory=dict)


class VoicePreviews:
    """Previews and voice conversion, from any event loop; cancelling the call stops the work.

    A preview is a small job, queued like any other. No page lists it, and its files are deleted
    when it has been sent.
    """

    def __init__(self, library: SpeakerLibrary, engine: SpeechEngine) -> None:
        self._library = library
        self._engine = engine

    async def preview(self, speaker_id: str, sentence: Sentence, backend_name: str) -> Clip:
        """Speak a sentence in the voice of a speaker of the library.

        Args:
            speaker_id: The speaker.
            sentence: Its text has at most `MAX_PREVIEW_CHARS` characters.
            backend_name: The backend.
        """
        speaker = await asyncio.to_thread(self._library.get_by_id, speaker_id)
        cast = Cast(self._library, {}, {speaker.name: speaker_id})
        return await self._say(speaker.name, cast, sentence, backend_name)

    async def speak_as(self, cast: Cast, name: str, text: str, backend_name: str) -> Clip:
        """Speak a text in the voice of a cast's speaker, who needn't be in the library.

        Args:
            cast: The cast.
            name: The speaker's name.
            text: At most `MAX_PREVIEW_CHARS` characters.
            backend_name: The backend.
        """
        return await self.speak_sentence(cast, name, Sentence(text), backend_name)

    async def speak_sentence(
        self,
        cast: Cast,
        name: str,
        sentence: Sentence,
        backend_name: str,
        pronounce: Pronounce = IN_WORDS.spoken,
    ) -> Clip:
        """The same with a mood, language and parameters; what the backend lacks is left out.

        `pronounce` gives the text as it is spoken.
        """
        return await self._say(clean_name(name), cast, sentence, backend_name, pronounce)

    async def preview_clip(self, clip: Clip, sentence: Sentence, backend_name: str) -> Clip:
        """Speak a sentence in the voice of a clip that isn't in the library, as `preview` does."""
        with tempfile.TemporaryDirectory(prefix="tableread-") as folder:
            path = Path(folder) / "sample.wav"
            await asyncio.to_thread(write_wav, path, clip)
            cast = Cast(self._library, {_PREVIEWED: path})
            return await self._say(_PREVIEWED, cast, sentence, backend_name)

    async def convert(
        self, speaker_id: str, recording: Path, backend_name: str, mood: str | None = None
    ) -> Clip:
        """Convert a recording to a speaker's voice; words and timing stay.

        Args:
            speaker_id: The speaker.
            recording: In any format that `decode` reads.
            backend_name: A backend that converts voices.
            mood: Chooses the sample, as in a line.
        """
        stopped = threading.Event()
        try:
            return await asyncio.to_thread(
                self._convert, (speaker_id, mood), recording, backend_name, stopped
            )
        finally:
            stopped.set()

    def _convert(
        self,
        who: tuple[str, str | None],
        recording: Path,
        backend_name: str,
        stopped: threading.Event,
    ) -> Clip:
        speaker = self._library.get_by_id(who[0])
        check_can_convert(self._engine.models.get_manager(backend_name).backend)
        voice = Cast(self._library, {}, {speaker.name: who[0]}).load_voice(speaker.name, who[1])
        _, said = decode_guarded(recording, display_name="The recording")
        return self._engine.convert(backend_name, said, voice, stopped.is_set)

    async def _say(
        self,
        name: str,
        cast: Cast,
        sentence: Sentence,
        backend_name: str,
        pronounce: Pronounce = IN_WORDS.spoken,
    ) -> Clip:
        capabilities = self._engine.models.get_manager(backend_name).backend.capabilities
        dialog, limits = Dialog((_line(name, sentence),)), capabilities.limits()
        planned = plan(
            dialog,
            limits,
            seed=0,
            languages_of=cast.list_languages,
            moods_of=cast.list_moods,
            pronounce=pronounce,
        )
        return await self.speak_plan(planned, cast, backend_name)

    async def speak_plan(self, planned: Plan, cast: Cast, backend_name: str) -> Clip:
        """Speak a few segments as one clip at the studio's rate.

        Raises:
            DiskFull: There is no room for their files.
            SpeechFailed: The backend can't speak one of them; says why.
            Cancelled: The engine stopped it.
        """
        folder = Path(tempfile.mkdtemp(prefix="tableread-"))
        async with Render(self._engine, JobSpec(planned, backend_name, cast, folder)) as render:
            await asyncio.to_thread(render.start, listen=True)
            await render.wait()
            if render.job.fatal_message is not None and render.job.cancelled:
                raise DiskFull(render.job.fatal_message)
            if render.job.state is JobState.CANCELLED:
                raise Cancelled("It was stopped.")
            failures = render.job.list_failures()
            if failures:
                raise SpeechFailed(failures[0].message)
            return await asyncio.to_thread(_whole, render.job)


def _whole(job: Job) -> Clip:
    assert job.spec.folder is not None
    path = job.spec.folder / "preview.wav"
    build_scene(job).write(path)
    return decode(path)


def _line(name: str, sentence: Sentence) -> Speech:
    text = " ".join(sentence.text.split())
    if not text:
        raise BadInput("Write a sentence to hear.")
    if len(text) > MAX_PREVIEW_CHARS:
        raise BadInput(
            f"The sentence has {len(text)} characters; {MAX_PREVIEW_CHARS} are the most here."
        )
    params = dict(sentence.params)
    if sentence.mood is not None:
        params[MOOD] = sentence.mood
    return Speech(name, text, sentence.language, params=params, line_number=1)
