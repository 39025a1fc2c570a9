"""The route that tells what is to be known about lines before they are spoken."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from studio.api.desk import Desk
from studio.api.projects import Project
from studio.hints import line_hints
from studio.project.ops import LineIds

hint_routes = APIRouter(prefix="/studio/projects")


class AskedBody(BaseModel):
    """Which lines are asked about; all of them without a list."""

    model_config = ConfigDict(extra="forbid")

    line_ids: Annotated[LineIds | None, Field(default=None)]


@hint_routes.post("/{project_id}/hints")
def hints(studio: Desk, project: Project, body: AskedBody) -> dict[str, dict[str, list[str]]]:
    """Sentences by line; a line without any is left out."""
    asked = None if body.line_ids is None else frozenset(body.line_ids)
    return {"hints": line_hints(studio, project, asked)}
