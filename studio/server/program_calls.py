"""What programs call by Gradio's client and by MCP: speech, scenes and voices as files.

And the routes of the files themselves: recordings that are uploaded, and audio that is fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, File, UploadFile
from fastapi.responses import FileResponse

from studio.audio.encode import parse_format
from studio.audio.formats import AudioFormat
from studio.audio.loudness import Loudness, measure_loudness
from studio.audio.mastering import NO_TARGET
from studio.audio.scene_file import ExportOptions, Scene
from studio.audio.timeline import TakePart, lay_out_part
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.dialog.model import Dialog, Notice, Speech, clean_name, paragraph
from studio.engine.job import Job, JobState, build_scene
from studio.errors import BadInput, Cancelled
from studio.server.middleware.gradio_calls import RECORDING
from studio.server.policies import StudioDep
from studio.server.transfers import StoredFile, mastering_of, store_upload
from studio.server.v1.catalog_api import voice_cards
from studio.server.v1.speech_bodies import backend_for, named_voice
from studio.services.line_checks import check_settings
from studio.services.speech_requests import SpeechOptions, SpeechStream
from studio.services.spoken_files import SpokenFile, SpokenScene
from studio.services.studio import Studio
from studio.services.voice_library import NewSample, TrimSpec

MAX_CHARS = 5_000
"""The most characters of one line that is spoken by itself."""


@dataclass(frozen=True, slots=True)
class _Wishes:
    voices: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    loudness: str = NO_TARGET
    audio_format: str = AudioFormat.WAV
    title: str = ""


OnSegments = Callable[[int, int], Awaitable[None]]
"""Called with how many segments of a scene are done, and how many there are."""


async def _ignore(_done: int, _total: int) -> None:
    pass


class ProgramCalls:
    """The calls of one caller, whose studio decides what they see and may do."""

    def __init__(self, studio: Studio, *, on_progress: OnSegments = _ignore) -> None:
        self._studio = studio
        self._on_progress = on_progress

    async def speak(
        self, text: str, voice: str, seed: int | None, *, audio_format: str = AudioFormat.WAV
    ) -> SpokenFile:
        """Speak a text.

        Raises:
            BadInput: The text is empty or too long, or there is no such voice.
        """
        if len(text) > MAX_CHARS:
            raise BadInput(f"The text has {len(text):,} characters; {MAX_CHARS:,} are the most.")
        name = clean_name(voice)
        dialog = Dialog((Speech(name, paragraph(text), line_number=1),))
        wishes = _Wishes({name: voice}, seed, audio_format=audio_format)
        return (await self._render(dialog, wishes, "speech")).file

    async def render(self, script: str, **wishes: Any) -> SpokenScene:
        """Read a script and render it as one file.

        Args:
            script: Any text that the studio imports.
            wishes: `voices`, by the name in the script; others are looked up in the library.
                `seed`, for lines without one. `loudness`, by its name or as a number of LUFS.
                `audio_format`, of the file.
        """
        read = await asyncio.to_thread(read_dialog_text, script)
        wanted = _Wishes(**wishes, title=read.title or "")
        return await self._render(read.dialog, wanted, "dialog", read.notices)

    async def _render(
        self, dialog: Dialog, wishes: _Wishes, name: str, notices: tuple[Notice, ...] = ()
    ) -> SpokenScene:
        mastering = mastering_of(wishes.loudness, even_voices=False)
        suffix = parse_format(Path(f"scene.{wishes.audio_format}"))
        stream = await asyncio.to_thread(self._begin, dialog, wishes, notices)
        try:
            job = stream.job
            await self._follow(job)
            if job.state is JobState.CANCELLED:
                raise Cancelled(job.fatal_message or "The render was stopped.")
            scene = self._studio.describe_scene(build_scene(job), wishes.title)
            made = await asyncio.to_thread(
                self._studio.spoken_files.make,
                f"{name}.{suffix}",
                lambda path: scene.write(path, ExportOptions(mastering)),
            )
            return SpokenScene(
                made,
                lines=len(job.spec.plan.number_lines()),
                audio_s=scene.timeline.duration_s,
                failed=tuple(
                    f"Line {one.line_number}: {one.message}" for one in job.list_failures()
                ),
                notices=tuple(map(_say_notice, job.spec.plan.notices)),
            )
        finally:
            await asyncio.shield(asyncio.to_thread(stream.render.close))

    async def _follow(self, job: Job) -> None:
        """Wait for a job's end, and report its progress."""
        done = 0
        async for _ in job.events.subscribe():
            finished = sum(record.is_final for record in job.records)
            if finished > done:
                done = finished
                await self._on_progress(done, len(job.records))

    def _begin(self, dialog: Dialog, wishes: _Wishes, notices: tuple[Notice, ...]) -> SpeechStream:
        studio = self._studio
        backend = backend_for(studio, None)
        check_settings(dialog, backend, studio.backends().values())
        voices = {
            name: named_voice(studio, backend, one, any_name=True)
            for name, one in wishes.voices.items()
        }
        options = SpeechOptions(backend.name, wishes.seed, voices, notices=notices)
        return SpeechStream(studio, dialog, options)

    def list_voices(self) -> list[dict[str, Any]]:
        """The library's speakers, and the voices that come with the studio's engine."""
        backend = backend_for(self._studio, None)
        return [card.model_dump() for card in voice_cards(self._studio, backend)]

    def add_voice(
        self, recording_id: str, name: str, *, consent: bool, transcript: str | None
    ) -> str:
        """Add a voice from an uploaded recording; returns its name."""
        self._studio.speakers.require_open()
        take = NewSample(TrimSpec(recording_id), consent=consent, transcript=transcript or None)
        return self._studio.voices.add(name, take).name

    def change_loudness(
        self, recording_id: str, target: str, audio_format: str
    ) -> tuple[SpokenFile, Loudness, Loudness]:
        """Bring an uploaded recording to a loudness.

        Returns:
            The file, mono at 24,000 Hz; the recording's loudness, and the file's.
        """
        mastering = mastering_of(target, even_voices=False)
        uploads = self._studio.voices.uploads
        timeline = lay_out_part(TakePart(0, uploads.find_path(recording_id)))
        options = ExportOptions(mastering, is_measured=True)
        measured: list[Loudness | None] = []
        made = self._studio.spoken_files.make(
            f"levelled.{parse_format(Path(f'scene.{audio_format}'))}",
            lambda path: measured.append(Scene(timeline, {}).write(path, options)),
        )
        after = measured[0]
        assert after is not None, "it was wished"
        return made, measure_loudness(timeline.blocks()), after


def _say_notice(notice: Notice) -> str:
    return f"Line {notice.line_number}: {notice.message}" if notice.line_number else notice.message


_MAX_FILES = 5

# They stand at the addresses of Gradio's own routes, which would put the files of all callers into
# one folder, and show whatever lies there to everybody.
gradio_file_routes = APIRouter(prefix="/gradio_api")


@gradio_file_routes.post("/upload")
def upload(
    studio: StudioDep, files: Annotated[list[UploadFile], File(max_length=_MAX_FILES)]
) -> list[str]:
    """Store recordings; each is named by what stands for it in a call."""
    return [f"{RECORDING}{store_upload(studio, one, one.filename or 'recording')}" for one in files]


@gradio_file_routes.get("/file=spoken/{key}/{name}", response_class=FileResponse)
def spoken_file(studio: StudioDep, key: str, name: str) -> FileResponse:
    """Fetch audio that a function made; `name` is for people."""
    made = studio.spoken_files.find(key)
    headers = {"Cache-Control": "private, no-store"}
    return StoredFile(made.path, media_type=made.media_type, headers=headers)
