"""Routes of projects: make, look, edit, undo, render."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from studio.api.desk import Desk
from studio.api.errors import error_body, status_of
from studio.api.project_schemas import (
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
    project_body,
    take_body,
)
from studio.api.schemas import notice_body
from studio.dialog.read import read_dialog_text
from studio.errors import EditConflict
from studio.project.news import News
from studio.project.session import Session

_UNNAMED = "Untitled"

project_routes = APIRouter(prefix="/studio/projects")


async def _session_of(studio: Desk, project_id: str) -> Session:
    # One that is open already is had without a thread, and without waiting for others.
    session = studio.projects.opened(project_id)
    if session is None:
        session = await asyncio.to_thread(studio.projects.open, project_id)
    return session


Project = Annotated[Session, Depends(_session_of)]
"""The project that a request names, opened."""


@project_routes.get("")
def listed(studio: Desk) -> list[dict[str, Any]]:
    """All projects, the one edited last first."""
    return [card_body(card) for card in studio.projects.cards()]


@project_routes.post("", status_code=201)
def create(studio: Desk, body: NewProjectBody) -> dict[str, Any]:
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
def remove(studio: Desk, project_id: str) -> None:
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

    def written(bundle: list[tuple[int, News]]) -> list[tuple[str, str]]:
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
