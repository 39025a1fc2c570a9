"""Routes of a project's pronunciations: what they reach, how they sound, and their files."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import PurePath
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from studio.api.desk import Desk
from studio.api.projects import Project
from studio.api.schemas import notice_body
from studio.api.voice_booth import unless_gone, wav_answer
from studio.dialog.formats.pronunciation_files import (
    ListFormat,
    read_pronunciations,
    write_pronunciations,
)
from studio.dialog.pronouncing import (
    MAX_PRONUNCIATION_CHARS,
    checked_pronunciation,
)
from studio.errors import BadInput
from studio.hints import project_cast, speaking
from studio.project.ops import PronunciationFields
from studio.project.wording import wording_of

MAX_LIST_BYTES = 2_000_000

pronunciation_routes = APIRouter(prefix="/studio/projects/{project_id}/pronunciations")


class AskedBody(BaseModel):
    """An entry that is about to be written; none asks about the list as it stands."""

    model_config = ConfigDict(extra="forbid")

    entry: PronunciationFields | None = None


class HearBody(BaseModel):
    """What is to be heard, in whose voice."""

    model_config = ConfigDict(extra="forbid")

    speaker: str = Field(max_length=200)
    text: str = Field(max_length=2 * MAX_PRONUNCIATION_CHARS)


@pronunciation_routes.post("/reach")
def reach(studio: Desk, project: Project, body: AskedBody) -> dict[str, Any]:
    """In how many lines each entry has its place, and what is to be known of it."""
    asked = checked_pronunciation(body.entry.entry()) if body.entry else None
    limits = speaking(studio, project.document).capabilities.limits()
    wording = wording_of(project.document, limits, asked)
    return {
        "lines": dict(wording.lines),
        "hints": dict(wording.hints),
        "asked": asked.written if asked else None,
        "example": wording.example,
    }


@pronunciation_routes.post("/hear")
async def hear(studio: Desk, project: Project, body: HearBody, request: Request) -> Response:
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
