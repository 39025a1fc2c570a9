"""Routes of the speaker library; adding goes through the page's upload."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import FileResponse

from studio.api.desk import Desk
from studio.api.schemas import SpeakerBody
from studio.errors import NotFound

speaker_routes = APIRouter(prefix="/studio/speakers")


@speaker_routes.get("/{speaker_id}/sample.wav")
def sample(studio: Desk, speaker_id: str) -> FileResponse:
    """A speaker's sample."""
    speaker = studio.speakers.by_id(speaker_id)
    if speaker.sample is None:
        raise NotFound(f"{speaker.name} has no sample.")
    return FileResponse(speaker.sample, media_type="audio/wav")


@speaker_routes.patch("/{speaker_id}", status_code=204)
def change(studio: Desk, speaker_id: str, body: SpeakerBody) -> None:
    """Change what the body names of a speaker."""
    name = studio.speakers.by_id(speaker_id).name
    changes = body.model_dump(exclude_unset=True, exclude={"name"})
    if changes:
        studio.speakers.update(name, **changes)
    if body.name is not None:
        studio.speakers.rename(name, body.name)


@speaker_routes.delete("/{speaker_id}", status_code=204)
def remove(studio: Desk, speaker_id: str) -> None:
    """Remove a speaker."""
    studio.speakers.remove(studio.speakers.by_id(speaker_id).name)
