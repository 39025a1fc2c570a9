"""Routes of pages that only read a project: the table read, and where the play-head is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse

from studio.engine.event_log import EventLog
from studio.project.line_states import LineState, LineView, PlayHead
from studio.project.ops import LineId
from studio.project.session import ProjectSession
from studio.server.event_stream import PING, EventStream, encode_event, is_woken
from studio.server.policies import Access, RequestClass, RoutePolicy, page_policy
from studio.server.routes.bodies import RequestBody, json_response, speakers_body
from studio.server.routes.project_routes import Project
from studio.storage.workspace import ASSETS

_PAUSE_S = 0.25
"""Between two messages of a stream, since a render changes a project hundreds of times a second."""


class PlayHeadBody(RequestBody):
    """The line at the play-head of a page, and whether it is being played."""

    line_id: LineId | None
    playing: bool = False


PAGES = ASSETS / "page" / "reading"
"""The pages that only read."""

table_read_page = APIRouter()


@table_read_page.get("/studio/read")
@RoutePolicy(Access.ANYBODY, is_page=True)
def table_read() -> FileResponse:
    """The page of the table read, which holds nothing of any project and asks who reads it."""
    return FileResponse(PAGES / "table_read.html", headers={"Cache-Control": "no-cache"})


reading_routes = APIRouter(prefix="/studio/projects/{project_id}")


@reading_routes.get("/reading")
@page_policy(Access.GUEST)
def read(project: Project) -> Response:
    """What the table read shows."""
    return json_response(reading_body(project))


@reading_routes.get("/reading/events")
@page_policy(Access.GUEST, request_class=RequestClass.UNCOUNTED)
async def follow(project: Project) -> EventStream:
    """That the project changed, and where the play-head is."""
    return EventStream(follow_reading(project))


@reading_routes.put("/heard", status_code=204)
@page_policy(Access.GUEST)
def hear(project: Project, body: PlayHeadBody) -> None:
    """Say where the play-head is."""
    project.play_head.append(PlayHead(body.line_id, body.playing))


def reading_body(session: ProjectSession) -> dict[str, Any]:
    """What is read of a project: its lines, and which of them can be heard as they are now."""
    with session.lock:
        # Read first: a change in between is then sent twice rather than missed.
        seq = session.events.seq
        views = session.list_views()
        colours = {one["name"]: one["colour"] for one in speakers_body(session)}
        name = session.document.name
    return {
        "name": name,
        "seq": seq,
        "colours": colours,
        "lines": [_line_body(view) for view in views],
        "heard": _play_head_body(session),
    }


def _line_body(view: LineView) -> dict[str, Any]:
    line = view.line
    is_ready = view.take is not None and view.state is LineState.READY
    return {
        "line_id": line.line_id,
        "kind": line.unspoken or line.kind,
        "speaker": line.speaker,
        "text": line.text,
        "take_id": view.take.take_id if view.take and is_ready else None,
        "samples": view.samples,
    }


def _play_head_body(session: ProjectSession) -> dict[str, Any] | None:
    latest = session.play_head.read()
    return asdict(latest[-1]) if latest else None


async def follow_reading(
    session: ProjectSession,
    *wakers: EventLog[Any],
    is_over: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[bytes, None]:
    """Say when a project changed, and where the play-head is.

    Args:
        session: The project; the stream ends when it is closed.
        wakers: Further logs after whose changes `is_over` is asked again.
        is_over: Whether the stream has to end.
    """
    woken, sent = asyncio.Event(), (-1, -1)
    logs: tuple[EventLog[Any], ...] = (session.events, session.play_head, *wakers)
    with ExitStack() as held:
        for log in logs:
            held.enter_context(log.waking(woken))
        while not (is_over() or session.events.closed):
            now = (session.events.seq, session.play_head.seq)
            if now[1] != sent[1] and now[1]:
                yield encode_event({"type": "heard", "heard": _play_head_body(session)})
            if now[0] != sent[0]:
                yield encode_event({"type": "changed", "seq": now[0]})
            sent = now
            while not await is_woken(woken):
                yield PING
            if not is_over():
                await asyncio.sleep(_PAUSE_S)
