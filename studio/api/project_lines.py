"""Routes for moving lines about: text read as lines of any project, and where one was last."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from studio.api.projects import Project
from studio.api.schemas import notice_body
from studio.dialog.formats.chat import is_chat
from studio.dialog.formats.importing import import_dialog
from studio.dialog.model import Dialog, Notice
from studio.dialog.read import read_dialog
from studio.errors import ScriptError
from studio.project.document import Line
from studio.project.laying import lines_of
from studio.project.whereabouts import Whereabouts, keep_place

_CLIPBOARD = "The clipboard"

project_line_routes = APIRouter(prefix="/studio/projects")


@project_line_routes.post("/lines")
async def read_lines(
    request: Request, name: Annotated[str, Query(max_length=1_000)] = ""
) -> dict[str, Any]:
    """Read a file, or without a name what was copied, as new lines; nothing is changed by it.

    The body is the file itself, whatever it says of its type. The answer says whether what was
    copied is a chat, which the script's own reader would take for something else.
    """
    return await asyncio.to_thread(_read, await request.body(), name)


@project_line_routes.put("/{project_id}/place")
def leave_place(project: Project, place: Whereabouts) -> dict[str, int]:
    """Keep where one is in a project; answers with the number of this place."""
    return {"number": keep_place(project.folder.root, place, project.folder.disk).number}


def _read(data: bytes, name: str) -> dict[str, Any]:
    chat = not name and is_chat(data.decode(errors="replace"))
    dialog, notices = _of_file(data, name or _CLIPBOARD) if name or chat else _of_clipboard(data)
    lines = [_line_body(line) for line in lines_of(dialog)]
    return {"lines": lines, "notices": [notice_body(notice) for notice in notices], "chat": chat}


def _of_file(data: bytes, name: str) -> tuple[Dialog, tuple[Notice, ...]]:
    imported = import_dialog(data, name)
    return imported.dialog, imported.notices


def _of_clipboard(data: bytes) -> tuple[Dialog, tuple[Notice, ...]]:
    """The studio's own script first: no word of it is mistaken for another format's mark.

    Raises:
        ScriptError: It is no dialog; as the script's reader says it.
    """
    try:
        parsed = read_dialog(data, name=_CLIPBOARD)
    except ScriptError as reason:
        try:
            return _of_file(data, _CLIPBOARD)
        except ScriptError:
            raise reason from None
    return parsed.dialog, parsed.notices


def _line_body(line: Line) -> dict[str, Any]:
    """A line as an edit brings it in; what it doesn't say is left out."""
    values = {
        "speaker": line.speaker,
        "text": line.text,
        "language": line.language,
        "seed": line.seed,
        "params": dict(line.params),
        "duration_s": line.duration_s,
        "path": line.path,
    }
    said = {name: value for name, value in values.items() if value not in (None, "", {})}
    return {"line_id": line.line_id, "kind": line.kind} | said
