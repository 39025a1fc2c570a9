"""Routes of the speaker library and of recordings that are uploaded for it."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, Response

from studio.errors import NotFound
from studio.server.policies import (
    Access,
    DiskUse,
    RequestClass,
    StudioDep,
    page_policy,
    upload_policy,
)
from studio.server.routes.speaker_bodies import (
    MAIN,
    AuditionBody,
    CutBody,
    ListenBody,
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
from studio.server.transfers import (
    StoredFile,
    attachment,
    make_file,
    receive,
    unless_gone,
    wav_answer,
)
from studio.services.previews import Sentence
from studio.services.sample_listening import SampleWords
from studio.services.voice_library import TrimSpec
from studio.storage.disk import storage_errors
from studio.voices.samples import MAX_UPLOAD_NAME_CHARS
from studio.voices.speaker import Speaker
from studio.voices.speaker_record import SpeakerDetails
from studio.voices.voice_pack import MAX_PACK_BYTES, VOICE_PACK_SUFFIX, read_pack, write_pack

speaker_routes = APIRouter(prefix="/studio/speakers")


@speaker_routes.get("")
@page_policy(Access.GUEST)
def list_speakers(studio: StudioDep) -> dict[str, Any]:
    """List the speakers, problems with their files, and the voices that the backend has."""
    backend = studio.engine.models.get_manager(studio.backend_name).backend
    speakers, problems = studio.speakers.scan()
    return {
        "speakers": [speaker_body(studio.speakers, one) for one in speakers],
        "problems": list(problems),
        "removed": [
            {"speaker_id": one.speaker_id, "name": one.name, "removed_s": one.removed_s}
            for one in studio.speakers.list_removed()
        ],
        "offer": voice_offer(backend.name, backend.title, backend.capabilities)
        | {"denoising": studio.voices.denoises},
    }


@speaker_routes.post("", status_code=201)
@page_policy(Access.GUEST, disk=DiskUse.FILL)
def add(studio: StudioDep, body: NewSpeakerBody) -> dict[str, Any]:
    """Add a speaker, with or without a first sample."""
    details = body.model_dump(exclude_unset=True, exclude={"name", "sample"})
    take = body.sample.to_sample() if body.sample else None
    speaker = studio.voices.add(body.name, take, **_details(details))
    return speaker_body(studio.speakers, speaker)


@speaker_routes.post("/import", status_code=201)
@upload_policy()
async def import_voice(studio: StudioDep, request: Request) -> dict[str, Any]:
    """Import a voice file, which is the body."""
    async with receive(request, studio, max_bytes=MAX_PACK_BYTES) as path:
        return await asyncio.to_thread(_import_pack, studio, path)


@speaker_routes.post("/removed/{speaker_id}/restore")
@page_policy(Access.GUEST, disk=DiskUse.FILL)
def restore_speaker(studio: StudioDep, speaker_id: str) -> dict[str, Any]:
    """Restore a removed speaker."""
    return speaker_body(studio.speakers, studio.speakers.restore_removed(speaker_id))


@speaker_routes.delete("/removed/{speaker_id}", status_code=204)
@page_policy(Access.GUEST, disk=DiskUse.FREE)
def delete_removed(studio: StudioDep, speaker_id: str) -> None:
    """Delete a removed speaker for good."""
    studio.speakers.delete_removed(speaker_id)


@speaker_routes.get("/{speaker_id}/voice")
@page_policy(Access.GUEST)
def export_voice(studio: StudioDep, speaker_id: str) -> Response:
    """Export a speaker as a voice file."""
    speaker = studio.speakers.get_by_id(speaker_id)

    def write(path: Path) -> None:
        with storage_errors(path), path.open("wb") as file:
            write_pack(studio.speakers, speaker, file)

    headers = {"Content-Disposition": attachment(_file_name(speaker.name))}
    return make_file(studio, "voice.zip", write, media_type="application/zip", headers=headers)


@speaker_routes.patch("/{speaker_id}")
@page_policy(Access.GUEST, disk=DiskUse.FILL)
def change(studio: StudioDep, speaker_id: str, body: SpeakerBody) -> dict[str, Any]:
    """Change a speaker."""
    speaker = studio.speakers.get_by_id(speaker_id)
    changes = body.model_dump(exclude_unset=True, exclude={"name"})
    if body.name is not None:
        speaker = studio.speakers.rename(speaker.name, body.name)
    if changes:
        speaker = studio.speakers.update(speaker.name, **_details(changes))
    return speaker_body(studio.speakers, speaker)


@speaker_routes.delete("/{speaker_id}", status_code=204)
@page_policy(Access.GUEST, disk=DiskUse.FREE)
def remove(studio: StudioDep, speaker_id: str) -> None:
    """Move a speaker to the trash, from which it can be restored for 30 days."""
    studio.speakers.remove(studio.speakers.get_by_id(speaker_id).name)


@speaker_routes.get("/{speaker_id}/sample.wav")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
def main_sample(studio: StudioDep, speaker_id: str) -> FileResponse:
    """Fetch a speaker's main sample."""
    return _sample_file(studio.speakers.get_by_id(speaker_id), MAIN)


@speaker_routes.get("/{speaker_id}/samples/{sample_id}.wav")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
def sample(studio: StudioDep, speaker_id: str, sample_id: str) -> FileResponse:
    """Fetch one of a speaker's samples."""
    return _sample_file(studio.speakers.get_by_id(speaker_id), sample_id)


@speaker_routes.post("/{speaker_id}/samples", status_code=201)
@page_policy(Access.GUEST, request_class=RequestClass.LONG, disk=DiskUse.FILL)
def add_sample(studio: StudioDep, speaker_id: str, body: SampleBody) -> dict[str, Any]:
    """Add a part of an upload as the main sample, or as the sample of a mood."""
    speaker = studio.voices.add_sample(speaker_id, body.to_sample())
    return speaker_body(studio.speakers, speaker)


@speaker_routes.patch("/{speaker_id}/samples/{sample_id}")
@page_policy(Access.GUEST, request_class=RequestClass.LONG, disk=DiskUse.FILL)
def change_sample(
    studio: StudioDep, speaker_id: str, sample_id: str, body: SampleChangeBody
) -> dict[str, Any]:
    """Change the mood, transcript or consent of a sample."""
    name = studio.speakers.get_by_id(speaker_id).name
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
@page_policy(Access.GUEST, request_class=RequestClass.LONG, disk=DiskUse.FILL)
def open_sample(studio: StudioDep, speaker_id: str, sample_id: str) -> dict[str, Any]:
    """Open a sample as an upload, so that it can be trimmed and repaired like a new one."""
    return examined_body(studio.voices.open_sample(speaker_id, _library_sample_id(sample_id)))


@speaker_routes.put("/{speaker_id}/samples/{sample_id}/recording")
@page_policy(Access.GUEST, request_class=RequestClass.LONG, disk=DiskUse.FILL)
def replace_sample(
    studio: StudioDep, speaker_id: str, sample_id: str, body: MendedBody
) -> dict[str, Any]:
    """Replace a sample by a part of that upload; its mood and consent stay."""
    cut = body.to_trim(body.upload_id)
    speaker = studio.voices.replace_sample(
        speaker_id, _library_sample_id(sample_id), cut, body.transcript
    )
    return speaker_body(studio.speakers, speaker)


@speaker_routes.delete("/{speaker_id}/samples/{sample_id}")
@page_policy(Access.GUEST, request_class=RequestClass.LONG, disk=DiskUse.FREE)
def remove_sample(studio: StudioDep, speaker_id: str, sample_id: str) -> dict[str, Any]:
    """Remove one of a speaker's samples."""
    name = studio.speakers.get_by_id(speaker_id).name
    if sample_id == MAIN:
        speaker = studio.speakers.set_sample(name, None)
    else:
        speaker = studio.speakers.remove_mood(name, sample_id)
    return speaker_body(studio.speakers, speaker)


@speaker_routes.get("/{speaker_id}/formers/{version_id}.wav")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
def sample_version(studio: StudioDep, speaker_id: str, version_id: str) -> FileResponse:
    """Fetch an earlier version of a sample, or the original of a denoised one."""
    path = studio.speakers.find_version_path(speaker_id, version_id)
    return StoredFile(path, media_type="audio/wav", headers={"Cache-Control": "no-cache"})


@speaker_routes.post("/{speaker_id}/formers/{version_id}/restore")
@page_policy(Access.GUEST, disk=DiskUse.FILL)
def restore_sample_version(studio: StudioDep, speaker_id: str, version_id: str) -> dict[str, Any]:
    """Restore an earlier version of a sample."""
    name = studio.speakers.get_by_id(speaker_id).name
    return speaker_body(studio.speakers, studio.speakers.restore_version(name, version_id))


@speaker_routes.delete("/{speaker_id}/formers/{version_id}")
@page_policy(Access.GUEST, disk=DiskUse.FREE)
def delete_sample_version(studio: StudioDep, speaker_id: str, version_id: str) -> dict[str, Any]:
    """Delete an earlier version of a sample for good."""
    name = studio.speakers.get_by_id(speaker_id).name
    return speaker_body(studio.speakers, studio.speakers.delete_version(name, version_id))


@speaker_routes.post("/{speaker_id}/preview")
@page_policy(Access.GUEST, disk=DiskUse.FILL)
async def preview(
    studio: StudioDep, speaker_id: str, body: PreviewBody, request: Request
) -> Response:
    """Speak a sentence in a speaker's voice."""
    backend_name = body.backend or studio.backend_name
    work = studio.previews.preview(speaker_id, body.sentence(), backend_name)
    return wav_answer(await unless_gone(request, work))


@speaker_routes.post("/{speaker_id}/act")
@upload_policy()
async def convert(
    studio: StudioDep, speaker_id: str, request: Request, mood: str | None = None
) -> Response:
    """Convert a recording, which is the body, to a speaker's voice."""
    async with receive(request, studio) as path:
        work = studio.previews.convert(speaker_id, path, studio.backend_name, mood)
        return wav_answer(await unless_gone(request, work))


def _import_pack(studio: StudioDep, path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return speaker_body(studio.speakers, read_pack(studio.speakers, file))


def _library_sample_id(sample_id: str) -> str | None:
    """A sample's id in the library, where the main sample has none."""
    return None if sample_id == MAIN else sample_id


def _sample_file(speaker: Speaker, sample_id: str) -> FileResponse:
    paths = {one.sample_id: one.path for one in speaker.moods} | {MAIN: speaker.sample}
    path = paths.get(sample_id)
    if path is None or not path.is_file():
        raise NotFound(f"This sample of {speaker.name} isn't there. Choose a recording again.")
    return StoredFile(path, media_type="audio/wav", headers={"Cache-Control": "no-cache"})


def _details(values: dict[str, Any]) -> SpeakerDetails:
    """The fields of a body as the library takes them; the body's schema has checked them."""
    return cast(SpeakerDetails, values)


def _file_name(name: str) -> str:
    """A file name from a speaker's name: every character that file systems reserve becomes “_”."""
    kept = "".join(char if char.isalnum() or char in " -_" else "_" for char in name).strip()
    return (kept or "voice") + VOICE_PACK_SUFFIX


upload_routes = APIRouter(prefix="/studio/uploads")

_FileName = Annotated[str, Query(max_length=MAX_UPLOAD_NAME_CHARS)]


@upload_routes.post("", status_code=201)
@upload_policy()
async def upload(
    studio: StudioDep, request: Request, name: _FileName = "recording"
) -> dict[str, Any]:
    """Upload a recording, which is the body, and check it as a sample."""
    async with receive(request, studio) as path:
        upload = await asyncio.to_thread(studio.voices.uploads.add, path, name)
    return examined_body(await asyncio.to_thread(studio.voices.examine, TrimSpec(upload.upload_id)))


@upload_routes.post("/{upload_id}/check")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
def check_upload(studio: StudioDep, upload_id: str, body: CutBody) -> dict[str, Any]:
    """Check a part of an upload as a sample, repaired or not."""
    return examined_body(studio.voices.examine(body.to_trim(upload_id)))


@upload_routes.get("/{upload_id}/audio.wav")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
def upload_audio(studio: StudioDep, upload_id: str, cut: Annotated[CutBody, Query()]) -> Response:
    """Fetch the audio of a part of an upload, repaired or not."""
    return wav_answer(studio.voices.cut_clip(cut.to_trim(upload_id)))


@upload_routes.post("/{upload_id}/words")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
async def listen_to_upload(
    studio: StudioDep, upload_id: str, body: ListenBody, request: Request
) -> dict[str, Any]:
    """Transcribe a part of an upload and name its language, as far as a recogniser is here."""
    gone = threading.Event()

    def listen() -> SampleWords:
        clip = studio.voices.cut_clip(body.to_trim(upload_id))
        return studio.listener.listen(clip, body.language, cancelled=gone.is_set)

    try:
        return asdict(await unless_gone(request, asyncio.to_thread(listen)))
    finally:
        gone.set()


@upload_routes.post("/{upload_id}/preview")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
async def preview_upload(
    studio: StudioDep, upload_id: str, body: AuditionBody, request: Request
) -> Response:
    """Speak a sentence in the voice of an upload."""
    clip = await asyncio.to_thread(studio.voices.cut_clip, body.to_trim(upload_id))
    backend_name = body.backend or studio.backend_name
    work = studio.previews.preview_clip(clip, Sentence(body.text), backend_name)
    return wav_answer(await unless_gone(request, work))


@upload_routes.delete("/{upload_id}", status_code=204)
@page_policy(Access.GUEST, request_class=RequestClass.LONG, disk=DiskUse.FREE)
def drop_upload(studio: StudioDep, upload_id: str) -> None:
    """Delete an upload; no error if it doesn't exist."""
    studio.voices.uploads.drop(upload_id)
