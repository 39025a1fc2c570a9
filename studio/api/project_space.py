"""Routes by which people get back the room that deleted takes and removed projects hold."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from studio.api.desk import Desk
from studio.api.project_schemas import card_body, project_body
from studio.project.freeing import Holdings, free, held_in_vain

space_routes = APIRouter(prefix="/studio/space")


class FreeBody(BaseModel):
    """What to free; None for what all projects hold in vain."""

    model_config = ConfigDict(extra="forbid")

    takes: bool = True
    trash: bool = True
    project_ids: Annotated[list[str], Field(max_length=10_000)] | None = None


@space_routes.get("")
def held(studio: Desk) -> dict[str, Any]:
    """What deleted takes and lines, unused recordings, torn files and removed projects hold."""
    return _holdings_body(held_in_vain(studio.projects))


@space_routes.post("/free")
def free_space(studio: Desk, body: FreeBody) -> dict[str, Any]:
    """Delete it for good; answers with what was freed, and with what could not be."""
    project_ids = body.project_ids if body.takes else ()
    freed = free(studio.projects, project_ids, trash=body.trash)
    left = [{"project_id": one, "message": message} for one, message in freed.left]
    return _holdings_body(freed) | {"left": left}


@space_routes.get("/trash")
def removed(studio: Desk) -> list[dict[str, Any]]:
    """Deleted projects that can be brought back, the one deleted last first."""
    return [card_body(card) for card in studio.projects.removed()]


@space_routes.post("/trash/{project_id}/restore")
def restore(studio: Desk, project_id: str) -> dict[str, Any]:
    """Bring a deleted project back."""
    return project_body(studio.projects.restore(project_id))


def _holdings_body(holdings: Holdings) -> dict[str, Any]:
    takes, recordings, trash = holdings.takes, holdings.recordings, holdings.trash
    return {
        "bytes": takes.size_bytes + recordings.size_bytes + trash.size_bytes,
        "takes": {"files": takes.count, "bytes": takes.size_bytes},
        "recordings": {"files": recordings.count, "bytes": recordings.size_bytes},
        "trash": {"projects": trash.count, "bytes": trash.size_bytes},
        "projects": [
            {
                "project_id": one.project_id,
                "name": one.name,
                "files": one.all.count,
                "bytes": one.all.size_bytes,
            }
            for one in holdings.projects
        ],
    }
