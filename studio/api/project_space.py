"""Routes by which people get back the room that deleted takes and removed projects hold."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from studio.api.desk import Desk
from studio.project.freeing import Holdings, free, held_in_vain

space_routes = APIRouter(prefix="/studio/space")


class FreeBody(BaseModel):
    """What to free; None for the deleted takes of all projects."""

    model_config = ConfigDict(extra="forbid")

    takes: bool = True
    trash: bool = True
    project_ids: Annotated[list[str], Field(max_length=10_000)] | None = None


@space_routes.get("")
def held(studio: Desk) -> dict[str, Any]:
    """What deleted takes, takes of deleted lines, torn files and removed projects hold."""
    return _holdings_body(held_in_vain(studio.projects))


@space_routes.post("/free")
def free_space(studio: Desk, body: FreeBody) -> dict[str, Any]:
    """Delete it for good; answers with what was freed, and with what could not be."""
    project_ids = body.project_ids if body.takes else ()
    freed = free(studio.projects, project_ids, trash=body.trash)
    left = [{"project_id": one, "message": message} for one, message in freed.left]
    return _holdings_body(freed) | {"left": left}


def _holdings_body(holdings: Holdings) -> dict[str, Any]:
    takes, trash = holdings.takes, holdings.trash
    return {
        "bytes": takes.size_bytes + trash.size_bytes,
        "takes": {"files": takes.count, "bytes": takes.size_bytes},
        "trash": {"projects": trash.count, "bytes": trash.size_bytes},
        "projects": [
            {
                "project_id": one.project_id,
                "name": one.name,
                "files": one.takes.count,
                "bytes": one.takes.size_bytes,
            }
            for one in holdings.projects
        ],
    }
