"""Routes of recordings on their way into the library: send, check, repair, hear, drop."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from studio.api.desk import Desk
from studio.api.speaker_schemas import AuditionBody, CutBody, examined_body
from studio.api.voice_booth import receive, unless_gone, wav_answer
from studio.booth import Sentence
from studio.speakers.uploads import MAX_NAME_CHARS
from studio.voices import Cut

upload_routes = APIRouter(prefix="/studio/uploads")

_FileName = Annotated[str, Query(max_length=MAX_NAME_CHARS)]


@upload_routes.post("", status_code=201)
async def send(studio: Desk, request: Request, name: _FileName = "recording") -> dict[str, Any]:
    """Take a recording in and check it; the body is the file itself."""
    async with receive(request, studio) as path:
        upload = await asyncio.to_thread(studio.voices.take_in, path, name)
    return examined_body(await asyncio.to_thread(studio.voices.examine, Cut(upload.upload_id)))


@upload_routes.post("/{upload_id}/check")
def check(studio: Desk, upload_id: str, body: CutBody) -> dict[str, Any]:
    """Check a part of it, as it is or repaired."""
    return examined_body(studio.voices.examine(body.cut(upload_id)))


@upload_routes.get("/{upload_id}/audio.wav")
def audio(studio: Desk, upload_id: str, cut: Annotated[CutBody, Query()]) -> Response:
    """The sound of a part of it, as it is or repaired."""
    return wav_answer(studio.voices.sound(cut.cut(upload_id)))


@upload_routes.post("/{upload_id}/preview")
async def preview(studio: Desk, upload_id: str, body: AuditionBody, request: Request) -> Response:
    """A sentence in its voice."""
    clip = await asyncio.to_thread(studio.voices.sound, body.cut(upload_id))
    backend_name = body.backend or studio.backend_name
    work = studio.booth.audition(clip, Sentence(body.text), backend_name)
    return wav_answer(await unless_gone(request, work))


@upload_routes.delete("/{upload_id}", status_code=204)
def drop(studio: Desk, upload_id: str) -> None:
    """Delete it; one that isn't there is no matter."""
    studio.voices.uploads.drop(upload_id)
