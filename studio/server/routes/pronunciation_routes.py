"""Routes of a project's pronunciations, and of the warnings about lines before a render."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import PurePath
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from studio.dialog.formats.pronunciation_lists import (
    ListFormat,
    read_pronunciations,
    write_pronunciations,
)
from studio.dialog.pronunciation import MAX_PRONUNCIATION_CHARS, check_pronunciation
from studio.errors import BadInput
from studio.project.ops import LineIds, PronunciationFields
from studio.project.pronunciation_effects import find_pronunciation_effects
from studio.server.deps import StudioDep
from studio.server.routes.bodies import notice_body
from studio.server.routes.project_routes import Project
from studio.server.transfers import unless_gone, wav_answer
from studio.services.line_checks import check_lines, project_cast, speaking

MAX_LIST_BYTES = 2_000_000

pronunciation_routes = APIRouter(prefix="/studio/projects/{project_id}/pronunciations")


class ReachBody(BaseModel):
    """An entry that is about to be written; none asks about the list as it stands."""

    model_config = ConfigDict(extra="forbid")

    entry: PronunciationFields | None = None


class PreviewPronunciationBody(BaseModel):
    """What is to be heard, in whose voice."""

    model_config = ConfigDict(extra="forbid")

    speaker: str = Field(max_length=200)
    text: str = Field(max_length=2 * MAX_PRONUNCIATION_CHARS)


@pronunciation_routes.post("/reach")
def reach(studio: StudioDep, project: Project, body: ReachBody) -> dict[str, Any]:
    """In how many lines each entry has its place, and what is to be known of it."""
    asked = check_pronunciation(body.entry.entry()) if body.entry else None
    limits = speaking(studio, project.document).capabilities.limits()
    wording = find_pronunciation_effects(project.document, limits, asked)
    return {
        "lines": dict(wording.lines),
        "hints": dict(wording.hints),
        "asked": asked.written if asked else None,
        "example": wording.example,
    }


@pronunciation_routes.post("/hear")
async def preview_pronunciation(
    studio: StudioDep, project: Project, body: PreviewPronunciationBody, request: Request
) -> Response:
    """A spoken form in the voice of somebody of the cast."""
    document = project.document
    backend_name = speaking(studio, document).name
    saying = studio.booth.recite(
        project_cast(studio, document), body.speaker, body.text, backend_name
    )
    return wav_answer(await unless_gone(request, saying))


@pronunciation_routes.post("/read")
async def read(
    project: Project, request: Request, name: Annotated[str, Query(max_length=1_000)] = ""
) -> dict[str, Any]:
    """What a file holds; nothing of the project changes."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_LIST_BYTES:
            raise BadInput(
                f"The list is larger than {MAX_LIST_BYTES // 1_000_000} MB. Leave entries out."
            )
    entries, notices = await asyncio.to_thread(
        read_pronunciations, bytes(data), PurePath(name).name or "The file"
    )
    return {
        "entries": [asdict(one) for one in entries],
        "notices": [notice_body(notice) for notice in notices],
    }


@pronunciation_routes.get("/file")
def file(
    project: Project, suffix: Annotated[ListFormat, Query(alias="format")] = ListFormat.CSV
) -> Response:
    """The list as a file."""
    document = project.document
    name = quote(f"{document.name or 'Untitled'} pronunciations.{suffix}", safe="")
    return Response(
        write_pronunciations(document.pronunciations.values(), suffix),
        media_type="application/octet-stream",
        headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"},
    )


line_check_routes = APIRouter(prefix="/studio/projects")


class LineChecksBody(BaseModel):
    """Which lines are asked about; all of them without a list."""

    model_config = ConfigDict(extra="forbid")

    line_ids: Annotated[LineIds | None, Field(default=None)]


@line_check_routes.post("/{project_id}/hints")
def line_checks(
    studio: StudioDep, project: Project, body: LineChecksBody
) -> dict[str, dict[str, list[str]]]:
    """Sentences by line; a line without any is left out."""
    asked = None if body.line_ids is None else frozenset(body.line_ids)
    return {"hints": check_lines(studio, project, asked)}
