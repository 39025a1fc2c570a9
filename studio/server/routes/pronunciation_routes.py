"""Routes of a project's pronunciations, and of warnings about its lines before a render."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import Field

from studio.dialog.formats.pronunciation_lists import (
    ListFormat,
    read_pronunciations,
    write_pronunciations,
)
from studio.dialog.pronunciation import MAX_PRONUNCIATION_CHARS, check_pronunciation
from studio.errors import BadInput
from studio.project.ops import LineIds, PronunciationFields
from studio.server.policies import Access, StudioDep, page_policy
from studio.server.routes.bodies import RequestBody, json_response
from studio.server.routes.project_routes import Project
from studio.server.transfers import attachment, unless_gone, wav_answer
from studio.services.line_checks import (
    check_lines,
    find_line_directions,
    find_pronunciation_effects,
)
from studio.services.misread_text import find_misread_lines

MAX_LIST_BYTES = 2_000_000

pronunciation_routes = APIRouter(prefix="/studio/projects/{project_id}/pronunciations")


class ReachBody(RequestBody):
    """An entry that is being written; None asks about the saved list only."""

    entry: PronunciationFields | None = None


class PreviewPronunciationBody(RequestBody):
    """A text to preview, and the speaker."""

    speaker: str = Field(max_length=200)
    text: str = Field(max_length=2 * MAX_PRONUNCIATION_CHARS)


@pronunciation_routes.post("/reach")
@page_policy(Access.GUEST)
def reach(project: Project, body: ReachBody) -> dict[str, Any]:
    """Count the lines that each entry changes, and warn about entries."""
    asked = check_pronunciation(body.entry.entry()) if body.entry else None
    limits = project.backend.capabilities.limits()
    effects = find_pronunciation_effects(project.document, limits, asked)
    return {
        "lines": dict(effects.lines),
        "hints": dict(effects.hints),
        "asked": asked.written if asked else None,
        "example": effects.example,
    }


@pronunciation_routes.post("/hear")
@page_policy(Access.GUEST)
async def preview_pronunciation(
    studio: StudioDep, project: Project, body: PreviewPronunciationBody, request: Request
) -> Response:
    """Speak a text in the voice of a speaker of the project."""
    saying = studio.previews.speak_as(project.cast, body.speaker, body.text, project.backend.name)
    return wav_answer(await unless_gone(request, saying))


@pronunciation_routes.post("/read")
@page_policy(Access.GUEST)
async def read(
    project: Project, request: Request, name: Annotated[str, Query(max_length=1_000)] = ""
) -> dict[str, Any]:
    """Read a pronunciation list from a file; the project doesn't change."""
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
        "notices": list(map(asdict, notices)),
    }


@pronunciation_routes.get("/file")
@page_policy(Access.GUEST)
def file(
    project: Project, suffix: Annotated[ListFormat, Query(alias="format")] = ListFormat.CSV
) -> Response:
    """Export the project's pronunciations as a file."""
    document = project.document
    name = f"{document.name or 'Untitled'} pronunciations.{suffix}"
    return Response(
        write_pronunciations(document.pronunciations.values(), suffix),
        media_type="application/octet-stream",
        headers={"Content-Disposition": attachment(name)},
    )


line_check_routes = APIRouter(prefix="/studio/projects")


class LineChecksBody(RequestBody):
    """The lines to check; all of them if there is no list."""

    line_ids: Annotated[LineIds | None, Field(default=None)]


@line_check_routes.post("/{project_id}/hints")
@page_policy(Access.GUEST)
def line_checks(project: Project, body: LineChecksBody) -> Response:
    """Check lines; the response has the warnings and stage directions of lines with any.

    `misread` is what is read in another language than its own, of all lines; null if nothing is.
    """
    asked = None if body.line_ids is None else frozenset(body.line_ids)
    directions = find_line_directions(project, asked)
    misread = find_misread_lines(project)
    found = {"hints": check_lines(project, asked), "directions": directions, "misread": misread}
    return json_response(found)
