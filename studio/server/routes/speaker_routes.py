"""Routes of the speaker library and of recordings on their way into it."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated, Any, cast
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from studio.errors import NotFound
from studio.server.deps import StudioDep
from studio.server.routes.speaker_bodies import (
    MAIN,
    AuditionBody,
    CutBody,
    MendedBody,
    NewSpeakerBody,
    PreviewBody,
    SampleBody,
    SampleChangeBody,
    SpeakerBody,
    examined_body,
    speaker_body,
    voice_offer,
)
from studio.server.transfers import receive, unless_gone, wav_answer
from studio.services.previews import Sentence
from studio.services.voice_library import SampleEditor, TrimSpec
from studio.voices.sample_uploads import MAX_UPLOAD_NAME_CHARS
from studio.voices.speaker import Speaker
from studio.voices.speaker_record import SpeakerDetails
from studio.voices.voice_pack import MAX_PACK_BYTES, VOICE_PACK_SUFFIX

speaker_routes = APIRouter(prefix="/studio/speakers")


@speaker_routes.get("")
def listed(studio: StudioDep) -> dict[str, Any]:
    """All speakers, what is wrong with single ones, and which voices the backend can make."""
    backend = studio.engine.models.manager(studio.backend_name).backend
    return {
        "speakers": [speaker_body(studio.speakers, one) for one in studio.speakers.list()],
        "problems": list(studio.speakers.problems()),
        "removed": [
            {"speaker_id": one.speaker_id, "name": one.name, "removed_s": one.removed_s}
            for one in studio.speakers.removed()
        ],
        "offer": voice_offer(backend.name, backend.title, backend.capabilities),
    }


@speaker_routes.post("", status_code=201)
def add(studio: StudioDep, body: NewSpeakerBody) -> dict[str, Any]:
    """Add a speaker, with a first sample or without one."""
    details = body.model_dump(exclude_unset=True, exclude={"name", "sample"})
    take = body.sample.take() if body.sample else None
    speaker = studio.voices.add(body.name, take, **_details(details))
    return speaker_body(studio.speakers, speaker)


@speaker_routes.post("/import", status_code=201)
async def bring_in(studio: StudioDep, request: Request) -> dict[str, Any]:
    """Add a voice that was saved as one file; the body is that file."""
    async with receive(request, studio, max_bytes=MAX_PACK_BYTES) as path:
        return await asyncio.to_thread(_brought_in, studio, path)


@speaker_routes.post("/removed/{speaker_id}/restore")
def bring_back(studio: StudioDep, speaker_id: str) -> dict[str, Any]:
    """Bring a removed voice back."""
    return speaker_body(studio.speakers, studio.speakers.bring_back(speaker_id))


@speaker_routes.delete("/removed/{speaker_id}", status_code=204)
def delete_removed(studio: StudioDep, speaker_id: str) -> None:
    """Delete a removed voice for good."""
    studio.speakers.delete_removed(speaker_id)


@speaker_routes.get("/{speaker_id}/voice")
def save(studio: StudioDep, speaker_id: str) -> Response:
    """A voice as one file."""
    folder = tempfile.TemporaryDirectory(prefix="tableread-")
    path = Path(folder.name) / "voice.zip"
    try:
        with path.open("wb") as file:
            name = studio.voices.save(speaker_id, file)
    except BaseException:
        folder.cleanup()
        raise
    # `filename=` wouldn't do: it quotes only what isn't Latin-1, and a name may hold any sign.
    headers = {
        "Content-Disposition": f"attachment; filename*=utf-8''{quote(_file_name(name), safe='')}"
    }
    return FileResponse(
        path,
        media_type="application/zip",
        headers=headers,
        background=BackgroundTask(folder.cleanup),
    )


@speaker_routes.patch("/{speaker_id}")
def change(studio: StudioDep, speaker_id: str, body: SpeakerBody) -> dict[str, Any]:
    """Change what the body names of a speaker."""
    speaker = studio.speakers.by_id(speaker_id)
    changes = body.model_dump(exclude_unset=True, exclude={"name"})
    if body.name is not None:
        speaker = studio.speakers.rename(speaker.name, body.name)
    if changes:
        speaker = studio.speakers.update(speaker.name, **_details(changes))
    return speaker_body(studio.speakers, speaker)


@speaker_routes.delete("/{speaker_id}", status_code=204)
def remove(studio: StudioDep, speaker_id: str) -> None:
    """Remove a speaker; it can be brought back for 30 days."""
    studio.speakers.remove(studio.speakers.by_id(speaker_id).name)


@speaker_routes.get("/{speaker_id}/sample.wav")
def main_sample(studio: StudioDep, speaker_id: str) -> FileResponse:
    """A speaker's main sample."""
    return _sample_file(studio.speakers.by_id(speaker_id), MAIN)


@speaker_routes.get("/{speaker_id}/samples/{sample_id}.wav")
def sample(studio: StudioDep, speaker_id: str, sample_id: str) -> FileResponse:
    """Any of a speaker's samples."""
    return _sample_file(studio.speakers.by_id(speaker_id), sample_id)


@speaker_routes.post("/{speaker_id}/samples", status_code=201)
def add_sample(studio: StudioDep, speaker_id: str, body: SampleBody) -> dict[str, Any]:
    """Add a sample from an upload: the main one, or the one of a mood."""
    speaker = studio.voices.add_sample(speaker_id, body.take())
    return speaker_body(studio.speakers, speaker)


@speaker_routes.patch("/{speaker_id}/samples/{sample_id}")
def change_sample(
    studio: StudioDep, speaker_id: str, sample_id: str, body: SampleChangeBody
) -> dict[str, Any]:
    """Change the mood or the transcript of a sample, or say that its voice may be cloned."""
    name = studio.speakers.by_id(speaker_id).name
    changes = body.model_dump(exclude_unset=True, exclude={"consent"})
    if body.consent is not None:
        changes["consent_at"] = studio.voices.consent_stamp(given=body.consent)
    if sample_id == MAIN:
        changes.pop("mood", None)
        speaker = studio.speakers.update(name, **_details(changes))
    else:
        speaker = studio.speakers.update_mood(name, sample_id, **changes)
    return speaker_body(studio.speakers, speaker)


@speaker_routes.post("/{speaker_id}/samples/{sample_id}/open", status_code=201)
def open_sample(studio: StudioDep, speaker_id: str, sample_id: str) -> dict[str, Any]:
    """Make an upload of a kept sample, to be trimmed and repaired as a new one is."""
    return examined_body(SampleEditor(studio.voices).open(speaker_id, _kept(sample_id)))


@speaker_routes.put("/{speaker_id}/samples/{sample_id}/recording")
def put_back(
    studio: StudioDep, speaker_id: str, sample_id: str, body: MendedBody
) -> dict[str, Any]:
    """Let a part of that upload take the sample's place; mood and consent stay."""
    mending = SampleEditor(studio.voices)
    speaker = mending.put_back(speaker_id, _kept(sample_id), body.mended())
    return speaker_body(studio.speakers, speaker)


@speaker_routes.delete("/{speaker_id}/samples/{sample_id}")
def remove_sample(studio: StudioDep, speaker_id: str, sample_id: str) -> dict[str, Any]:
    """Remove one of a speaker's samples."""
    name = studio.speakers.by_id(speaker_id).name
    if sample_id == MAIN:
        speaker = studio.speakers.set_sample(name, None)
    else:
        speaker = studio.speakers.remove_mood(name, sample_id)
    return speaker_body(studio.speakers, speaker)


@speaker_routes.post("/{speaker_id}/formers/{former_id}/restore")
def restore_sample(studio: StudioDep, speaker_id: str, former_id: str) -> dict[str, Any]:
    """Bring back a recording that was changed or removed."""
    name = studio.speakers.by_id(speaker_id).name
    return speaker_body(studio.speakers, studio.speakers.put_back(name, former_id))


@speaker_routes.delete("/{speaker_id}/formers/{former_id}")
def forget_former(studio: StudioDep, speaker_id: str, former_id: str) -> dict[str, Any]:
    """Delete for good a recording that was changed or removed."""
    name = studio.speakers.by_id(speaker_id).name
    return speaker_body(studio.speakers, studio.speakers.forget_former(name, former_id))


@speaker_routes.post("/{speaker_id}/preview")
async def preview(
    studio: StudioDep, speaker_id: str, body: PreviewBody, request: Request
) -> Response:
    """A sentence in a speaker's voice."""
    backend_name = body.backend or studio.backend_name
    work = studio.booth.preview(speaker_id, body.sentence(), backend_name)
    return wav_answer(await unless_gone(request, work))


@speaker_routes.post("/{speaker_id}/act")
async def act(
    studio: StudioDep, speaker_id: str, request: Request, mood: str | None = None
) -> Response:
    """A recording, which is the body, in a speaker's voice."""
    async with receive(request, studio) as path:
        work = studio.booth.act(speaker_id, path, studio.backend_name, mood)
        return wav_answer(await unless_gone(request, work))


def _brought_in(studio: StudioDep, path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return speaker_body(studio.speakers, studio.voices.bring_in(file))


def _kept(sample_id: str) -> str | None:
    """A sample's id as the library has it, where the main one has none."""
    return None if sample_id == MAIN else sample_id


def _sample_file(speaker: Speaker, sample_id: str) -> FileResponse:
    paths = {one.sample_id: one.path for one in speaker.moods} | {MAIN: speaker.sample}
    path = paths.get(sample_id)
    if path is None or not path.is_file():
        raise NotFound(f"This sample of {speaker.name} isn't there. Choose a recording again.")
    return FileResponse(path, media_type="audio/wav", headers={"Cache-Control": "no-cache"})


def _details(values: dict[str, Any]) -> SpeakerDetails:
    """Fields that a body's schema has checked, as the library takes them."""
    return cast(SpeakerDetails, values)


def _file_name(name: str) -> str:
    """A speaker's name as a file's: without what file systems give a meaning."""
    kept = "".join(char if char.isalnum() or char in " -_" else "_" for char in name).strip()
    return (kept or "voice") + VOICE_PACK_SUFFIX


upload_routes = APIRouter(prefix="/studio/uploads")

_FileName = Annotated[str, Query(max_length=MAX_UPLOAD_NAME_CHARS)]


@upload_routes.post("", status_code=201)
async def send(
    studio: StudioDep, request: Request, name: _FileName = "recording"
) -> dict[str, Any]:
    """Take a recording in and check it; the body is the file itself."""
    async with receive(request, studio) as path:
        upload = await asyncio.to_thread(studio.voices.take_in, path, name)
    return examined_body(await asyncio.to_thread(studio.voices.examine, TrimSpec(upload.upload_id)))


@upload_routes.post("/{upload_id}/check")
def check(studio: StudioDep, upload_id: str, body: CutBody) -> dict[str, Any]:
    """Check a part of it, as it is or repaired."""
    return examined_body(studio.voices.examine(body.cut(upload_id)))


@upload_routes.get("/{upload_id}/audio.wav")
def audio(studio: StudioDep, upload_id: str, cut: Annotated[CutBody, Query()]) -> Response:
    """The sound of a part of it, as it is or repaired."""
    return wav_answer(studio.voices.sound(cut.cut(upload_id)))


@upload_routes.post("/{upload_id}/preview")
async def preview_upload(
    studio: StudioDep, upload_id: str, body: AuditionBody, request: Request
) -> Response:
    """A sentence in its voice."""
    clip = await asyncio.to_thread(studio.voices.sound, body.cut(upload_id))
    backend_name = body.backend or studio.backend_name
    work = studio.booth.audition(clip, Sentence(body.text), backend_name)
    return wav_answer(await unless_gone(request, work))


@upload_routes.delete("/{upload_id}", status_code=204)
def drop(studio: StudioDep, upload_id: str) -> None:
    """Delete it; one that isn't there is no matter."""
    studio.voices.uploads.drop(upload_id)
