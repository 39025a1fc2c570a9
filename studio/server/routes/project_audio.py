"""Routes by which a project is heard: lines live, takes, and their waveforms."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse, StreamingResponse

from studio.audio.clip import STUDIO_RATE_HZ
from studio.errors import NotFound
from studio.project.line_audio import compute_peaks, open_line_audio
from studio.project.session import ProjectSession
from studio.project.takes import Take
from studio.server.routes.project_routes import Project

project_audio_routes = APIRouter(prefix="/studio/projects/{project_id}")

# A take never changes, so whoever has it need not ask again.
_FOR_GOOD = {"Cache-Control": "private, max-age=31536000, immutable"}

Bins = Annotated[int, Query(ge=1, le=4_000)]


@project_audio_routes.get("/lines/{line_id}/audio")
async def line_audio(project: Project, line_id: str) -> StreamingResponse:
    """One line as s16le mono: live while it is made, from its take, or as silence.

    The header `X-Take` names the take it is or becomes. A line that was given up before it was
    whole ends in half a sample.
    """
    sound = await open_line_audio(project, line_id)
    headers = {"X-Sample-Rate": str(STUDIO_RATE_HZ), "Cache-Control": "no-store"}
    if sound.take_id is not None:
        headers["X-Take"] = sound.take_id
    media_type = "application/octet-stream"
    return StreamingResponse(sound.chunks, media_type=media_type, headers=headers)


@project_audio_routes.get("/takes/{line_id}/{take_id}/audio.wav")
def take_audio(project: Project, line_id: str, take_id: str) -> FileResponse:
    """A take as a file."""
    path = project.shelf.audio(_take(project, line_id, take_id))
    return FileResponse(path, media_type="audio/wav", headers=_FOR_GOOD)


@project_audio_routes.get("/takes/{line_id}/{take_id}/peaks")
def take_peaks(
    project: Project, line_id: str, take_id: str, bins: Bins = 200
) -> dict[str, list[int]]:
    """The waveform of a take."""
    return {"peaks": compute_peaks(project.shelf.audio(_take(project, line_id, take_id)), bins)}


@project_audio_routes.get("/peaks")
async def many_peaks(
    project: Project, takes: Annotated[str, Query(max_length=20_000)], bins: Bins = 48
) -> dict[str, Any]:
    """The waveforms of takes, by id; those that aren't there are left out."""
    shelf = project.shelf
    known = [take for one in takes.split(",") if (take := shelf.get(one)) is not None]
    found = [take for take in known if not shelf.is_gone(take)]

    def all_peaks() -> dict[str, list[int]]:
        return {take.take_id: compute_peaks(shelf.audio(take), bins) for take in found}

    return {"peaks": await asyncio.to_thread(all_peaks)}


def _take(project: ProjectSession, line_id: str, take_id: str) -> Take:
    take = project.shelf.find(take_id)
    if take.line_id != line_id:
        raise NotFound("This take isn't there any more.")
    if project.shelf.is_gone(take):
        raise NotFound("The audio of this take was freed. Choose it and render its line again.")
    return take
