"""Routes of the speaker library; adding goes through the page's upload."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import FileResponse

from studio.api.schemas import SpeakerBody
from studio.errors import NotFound
from studio.service import Studio


def speaker_routes(studio: Studio) -> APIRouter:
    """The routes, bound to a studio."""
    routes = APIRouter(prefix="/studio/speakers")

    @routes.get("/{speaker_id}/sample.wav")
    def sample(speaker_id: str) -> FileResponse:
        speaker = studio.speakers.by_id(speaker_id)
        if speaker.sample is None:
            raise NotFound(f"{speaker.name} has no sample.")
        return FileResponse(speaker.sample, media_type="audio/wav")

    @routes.patch("/{speaker_id}", status_code=204)
    def change(speaker_id: str, body: SpeakerBody) -> None:
        name = studio.speakers.by_id(speaker_id).name
        changes = body.model_dump(exclude_unset=True, exclude={"name"})
        if changes:
            studio.speakers.update(name, **changes)
        if body.name is not None:
            studio.speakers.rename(name, body.name)

    @routes.delete("/{speaker_id}", status_code=204)
    def remove(speaker_id: str) -> None:
        studio.speakers.remove(studio.speakers.by_id(speaker_id).name)

    return routes
