"""Routes of projects: make, list, edit, undo, render, move lines, reclaim disk space."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, ConfigDict, Field

from studio.dialog.formats.chat import is_chat
from studio.dialog.formats.importing import import_dialog, read_dialog, read_dialog_text
from studio.dialog.model import Dialog, Notice
from studio.errors import EditConflict, ScriptError
from studio.project.document import ProjectLine
from studio.project.event_log import ProjectEvent
from studio.project.folder import LastPosition, save_last_position
from studio.project.reclaim import ReclaimableSpace, find_reclaimable, reclaim_space
from studio.project.script_merge import create_lines
from studio.project.session import ProjectSession
from studio.server.deps import StudioDep
from studio.server.error_responses import error_body, status_of
from studio.server.routes.bodies import (
    AuthorBody,
    EditsBody,
    FocusBody,
    NewProjectBody,
    RenameBody,
    RenderBody,
    ScriptBody,
    UndoBody,
    card_body,
    edit_body,
    job_body,
    news_body,
    notice_body,
    project_body,
    take_body,
)

_UNNAMED = "Untitled"

project_routes = APIRouter(prefix="/studio/projects")


async def _session_of(studio: StudioDep, project_id: str) -> ProjectSession:
    # One that is open already is had without a thread, and without waiting for others.
    session = studio.projects.opened(project_id)
    if session is None:
        session = await asyncio.to_thread(studio.projects.open, project_id)
    return session


Project = Annotated[ProjectSession, Depends(_session_of)]
"""The project that a request names, opened."""


@project_routes.get("")
def listed(studio: StudioDep) -> list[dict[str, Any]]:
    """All projects, the one edited last first."""
    return [card_body(card) for card in studio.projects.cards()]


@project_routes.post("", status_code=201)
def create(studio: StudioDep, body: NewProjectBody) -> dict[str, Any]:
    """Make a project: a copy, of a script, or empty."""
    if body.like is not None:
        studio.room.take(studio.projects.size_bytes(body.like))
        return project_body(studio.projects.duplicate(body.like))
    # An empty box is an empty project, not a script that can't be read.
    parsed = read_dialog_text(body.text) if body.text and body.text.strip() else None
    session = studio.projects.create(body.name or _UNNAMED, parsed.dialog if parsed else None)
    return project_body(session, parsed.notices if parsed else ())


@project_routes.get("/{project_id}")
def snapshot(project: Project) -> dict[str, Any]:
    """A project as it stands."""
    return project_body(project)


@project_routes.patch("/{project_id}", status_code=204)
def rename(project: Project, body: RenameBody) -> None:
    """Give a project another name."""
    project.rename(body.name)


@project_routes.delete("/{project_id}", status_code=204)
def remove(studio: StudioDep, project_id: str) -> None:
    """Put a project away; it lies in the workspace's trash folder."""
    studio.projects.remove(project_id)


@project_routes.post("/{project_id}/edits")
def edit(project: Project, body: EditsBody) -> Response:
    """Apply edits, all or none."""
    try:
        news = project.edit(body.ops, body.author(body.group), body.base_rev)
    except EditConflict as error:
        return _dispute(error)
    return JSONResponse(edit_body(project, news))


@project_routes.post("/{project_id}/undo")
def undo(project: Project, body: UndoBody) -> Response:
    """Take the latest step back, or the latest of one's own."""
    try:
        news = project.undo(body.author(), body.base_rev, own=body.own)
    except EditConflict as error:
        return _dispute(error)
    return JSONResponse(edit_body(project, news))


@project_routes.post("/{project_id}/redo")
def redo(project: Project, body: AuthorBody) -> dict[str, Any]:
    """Take the latest undo back."""
    return edit_body(project, project.redo(body.author()))


@project_routes.get("/{project_id}/script")
def script(project: Project) -> dict[str, Any]:
    """The lines as a script."""
    rev, text, notices = project.script()
    return {"rev": rev, "text": text, "notices": [notice_body(notice) for notice in notices]}


@project_routes.put("/{project_id}/script")
def lay_script(project: Project, body: ScriptBody) -> Response:
    """Let the lines be those of a script."""
    try:
        news, notices = project.lay_script(body.text, body.author(), body.base_rev)
    except EditConflict as error:
        return _dispute(error)
    noticed = [notice_body(notice) for notice in notices]
    return JSONResponse(edit_body(project, news) | {"notices": noticed})


@project_routes.get("/{project_id}/events", response_class=EventSourceResponse)
async def events(project: Project, since: int = 0) -> AsyncIterator[ServerSentEvent]:
    """What happens after `since`; ends where that is too long ago, and the page looks anew."""

    def written(bundle: list[tuple[int, ProjectEvent]]) -> list[tuple[str, str]]:
        bodies = [(seq, news_body(project, seq, news)) for seq, news in bundle]
        return [(json.dumps(body), str(seq)) for seq, body in bodies if body is not None]

    async with aclosing(project.news.bundles(since)) as bundles:
        async for bundle in bundles:
            for data, seq in await asyncio.to_thread(written, bundle):
                yield ServerSentEvent(raw_data=data, id=seq)


@project_routes.post("/{project_id}/render")
def render(project: Project, body: RenderBody) -> dict[str, Any] | None:
    """Make what is missing or stale, or further takes of some lines."""
    project.render(body.line_ids, again=body.again, listen_from=body.listen_from)
    return job_body(project)


@project_routes.post("/{project_id}/cancel")
def cancel(project: Project) -> dict[str, Any] | None:
    """Stop the render."""
    project.cancel()
    return job_body(project)


@project_routes.post("/{project_id}/focus", status_code=204)
def focus(project: Project, body: FocusBody) -> None:
    """Say where somebody listens: it goes first from there on."""
    project.focus(body.line_id)


@project_routes.get("/{project_id}/takes/{line_id}")
def takes(project: Project, line_id: str) -> dict[str, Any]:
    """A line's takes, the oldest first."""
    document, is_gone = project.document, project.shelf.is_gone
    found = project.takes(line_id)
    bodies = (take_body(take, document, project.doubts(take), gone=is_gone(take)) for take in found)
    return {"takes": list(bodies)}


def _dispute(error: EditConflict) -> JSONResponse:
    body = error_body(error) | {"rev": error.rev, "conflicts": error.conflicts}
    return JSONResponse(body, status_of(error))


space_routes = APIRouter(prefix="/studio/space")


class FreeBody(BaseModel):
    """What to free; None for what all projects hold in vain."""

    model_config = ConfigDict(extra="forbid")

    takes: bool = True
    trash: bool = True
    project_ids: Annotated[list[str], Field(max_length=10_000)] | None = None


@space_routes.get("")
def disk_usage(studio: StudioDep) -> dict[str, Any]:
    """What deleted takes and lines, unused recordings, torn files and removed projects hold."""
    return _holdings_body(find_reclaimable(studio.projects))


@space_routes.post("/free")
def free_space(studio: StudioDep, body: FreeBody) -> dict[str, Any]:
    """Delete it for good; answers with what was freed, and with what could not be."""
    project_ids = body.project_ids if body.takes else ()
    freed = reclaim_space(studio.projects, project_ids, trash=body.trash)
    left = [{"project_id": one, "message": message} for one, message in freed.left]
    return _holdings_body(freed) | {"left": left}


@space_routes.get("/trash")
def removed(studio: StudioDep) -> list[dict[str, Any]]:
    """Deleted projects that can be brought back, the one deleted last first."""
    return [card_body(card) for card in studio.projects.removed()]


@space_routes.post("/trash/{project_id}/restore")
def restore(studio: StudioDep, project_id: str) -> dict[str, Any]:
    """Bring a deleted project back."""
    return project_body(studio.projects.restore(project_id))


def _holdings_body(holdings: ReclaimableSpace) -> dict[str, Any]:
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
def keep_position(project: Project, place: LastPosition) -> dict[str, int]:
    """Keep where one is in a project; answers with the number of this place."""
    return {"number": save_last_position(project.folder.root, place, project.folder.disk).number}


def _read(data: bytes, name: str) -> dict[str, Any]:
    chat = not name and is_chat(data.decode(errors="replace"))
    dialog, notices = _of_file(data, name or _CLIPBOARD) if name or chat else _of_clipboard(data)
    lines = [_line_body(line) for line in create_lines(dialog)]
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


def _line_body(line: ProjectLine) -> dict[str, Any]:
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
