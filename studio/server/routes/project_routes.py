"""Routes of projects: list, create, edit, undo, render, play, reclaim disk space."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import FileResponse, StreamingResponse
from pydantic import Field

from studio.audio.clip import STUDIO_RATE_HZ
from studio.dialog.documents.reading import MAX_DOCUMENT_BYTES
from studio.dialog.formats.dialog_file import ImportOptions, import_dialog, read_dialog_text
from studio.dialog.model import MAX_NAME_CHARS, Dialog, Speech
from studio.dialog.reading.tables import MOST_SHOWN
from studio.dialog.script import parse_script
from studio.errors import FileDamaged, NameRejected, NotFound, ScriptError
from studio.project.document import encode_line
from studio.project.folder import LastPosition, save_last_position
from studio.project.line_audio import compute_peaks, open_line_audio
from studio.project.line_states import ProjectEvent
from studio.project.reclaim import ReclaimableSpace, find_reclaimable, reclaim_space
from studio.project.script_merge import create_lines
from studio.project.session import ProjectSession
from studio.project.takes import Take
from studio.server.event_stream import PING, EventStream, encode_event, is_woken
from studio.server.policies import Access, DiskUse, RequestClass, StudioDep, page_policy
from studio.server.routes.bodies import (
    AuthorBody,
    EditsBody,
    FocusBody,
    NewProjectBody,
    RenameBody,
    RenderBody,
    RequestBody,
    ScriptBody,
    UndoBody,
    card_body,
    edit_body,
    job_body,
    json_response,
    news_body,
    notice_bodies,
    project_body,
    take_body,
)
from studio.server.routes.state_feed import StateFeeds
from studio.server.transfers import StoredFile
from studio.services.line_checks import check_edits, check_script, check_settings, fit_settings
from studio.services.studio import Studio
from studio.storage.disk import DiskUsage

_UNNAMED = "Untitled"

project_routes = APIRouter(prefix="/studio/projects")


async def open_session(studio: Studio, project_id: str) -> ProjectSession:
    """Open a project; an open one needs no thread, and no wait for others being opened."""
    session = studio.projects.get_open(project_id)
    if session is None:
        session = await asyncio.to_thread(studio.projects.open, project_id)
    return session


async def _request_session(studio: StudioDep, project_id: str) -> ProjectSession:
    return await open_session(studio, project_id)


Project = Annotated[ProjectSession, Depends(_request_session)]
"""Type of a handler's `project`: the project in the path, opened."""


@project_routes.get("")
@page_policy(Access.GUEST)
def list_projects(studio: StudioDep) -> list[dict[str, Any]]:
    """List all projects, the last edited first; `numbered` are the lines that have a number."""
    cards = studio.projects.list_summaries()
    return [card_body(one) | {"numbered": one.numbered, "voices": one.voices} for one in cards]


@project_routes.post("", status_code=201)
@page_policy(Access.GUEST, disk=DiskUse.FILL)
def create(studio: StudioDep, body: NewProjectBody) -> Response:
    """Create a project: a copy of another one, from a script, or empty."""
    if body.like is not None:
        studio.disk_quota.reserve(studio.projects.size_bytes(body.like))
        return json_response(project_body(studio.projects.duplicate(body.like)), 201)
    # An empty box is an empty project, not a script that can't be read.
    parsed = read_dialog_text(body.text) if body.text and body.text.strip() else None
    if parsed:
        check_settings(parsed.dialog, studio.backend, studio.backends().values())
    name = body.name or (parsed.title if parsed else None) or _UNNAMED
    dialog = parsed.dialog if parsed else None
    session = studio.projects.create(name, dialog, gap_s=body.gap_s)
    made = project_body(session, parsed.notices if parsed else (), dialog or ())
    made["unspoken"] = parsed.unspoken if parsed else 0
    return json_response(made, 201)


@project_routes.get("/{project_id}")
@page_policy(Access.GUEST)
def snapshot(project: Project) -> Response:
    """Fetch a project's current state."""
    return json_response(project_body(project))


@project_routes.patch("/{project_id}", status_code=204)
@page_policy(Access.GUEST, disk=DiskUse.EDIT)
def rename(project: Project, body: RenameBody) -> None:
    """Rename a project."""
    project.rename(body.name)


@project_routes.delete("/{project_id}", status_code=204)
@page_policy(Access.GUEST, disk=DiskUse.FREE)
def remove(studio: StudioDep, project_id: str) -> None:
    """Move a project to the workspace's trash folder."""
    studio.projects.remove(project_id)


@project_routes.post("/{project_id}/edits")
@page_policy(Access.GUEST, disk=DiskUse.EDIT)
def edit(studio: StudioDep, project: Project, body: EditsBody) -> Response:
    """Apply edits, all or none."""
    check_edits(project, body.ops, studio.backends().values())
    news = project.edit(body.ops, body.author(body.group), body.base_rev)
    return json_response(edit_body(project, news))


@project_routes.post("/{project_id}/undo")
@page_policy(Access.GUEST, disk=DiskUse.EDIT)
def undo(project: Project, body: UndoBody) -> Response:
    """Undo the latest step, or the latest of the caller's own."""
    news = project.undo(body.author(), body.base_rev, own=body.own)
    return json_response(edit_body(project, news))


@project_routes.post("/{project_id}/redo")
@page_policy(Access.GUEST, disk=DiskUse.EDIT)
def redo(project: Project, body: AuthorBody) -> Response:
    """Redo the step that was undone last."""
    return json_response(edit_body(project, project.redo(body.author())))


@project_routes.get("/{project_id}/script")
@page_policy(Access.GUEST)
def script(project: Project) -> Response:
    """Write the lines as a script."""
    rev, text, notices = project.format_script()
    return json_response({"rev": rev, "text": text, "notices": notices})


@project_routes.put("/{project_id}/script")
@page_policy(Access.GUEST, disk=DiskUse.EDIT)
def merge_script(studio: StudioDep, project: Project, body: ScriptBody) -> Response:
    """Change the lines to those of a script."""
    check = partial(check_script, project, others=studio.backends().values())
    news, notices = project.merge_script(body.text, body.author(), body.base_rev, check=check)
    return json_response(edit_body(project, news) | {"notices": list(map(asdict, notices))})


@project_routes.post("/{project_id}/render")
@page_policy(Access.GUEST, disk=DiskUse.FILL)
def render(project: Project, body: RenderBody) -> Response:
    """Render the lines whose take is missing or stale, or further takes of some lines."""
    project.render(body.line_ids, again=body.again, listen_from=body.listen_from)
    return json_response(job_body(project))


@project_routes.post("/{project_id}/cancel")
@page_policy(Access.GUEST)
def cancel(project: Project) -> dict[str, Any] | None:
    """Stop the render."""
    project.cancel()
    return job_body(project)


@project_routes.post("/{project_id}/focus", status_code=204)
@page_policy(Access.GUEST)
def focus(project: Project, body: FocusBody) -> None:
    """Move the play-head: the render goes on from there first."""
    project.focus(body.line_id)


@project_routes.get("/{project_id}/takes/{line_id}")
@page_policy(Access.GUEST)
def takes(project: Project, line_id: str) -> dict[str, Any]:
    """List a line's takes, the oldest first."""
    locked, is_gone = frozenset(project.document.locked_takes), project.take_store.is_freed
    found = project.list_takes(line_id)
    bodies = (
        take_body(take, locked, project.find_issues(take), gone=is_gone(take))
        | {"distance": project.describe_distance(take)}
        | {"number": project.take_store.get_number(take)}
        for take in found
    )
    return {"takes": list(bodies)}


def project_event_routes(feeds: StateFeeds) -> APIRouter:
    """The stream that a page follows, with the state of its studio by `feeds`."""
    routes = APIRouter(prefix="/studio/projects")
    batches = _SharedBatches()

    @routes.get("/{project_id}/events")
    @page_policy(Access.GUEST, request_class=RequestClass.UNCOUNTED)
    async def events(studio: StudioDep, project: Project, since: int = 0) -> EventStream:
        """What happens in the project after `since`, and the studio's state, now and as it changes.

        Ends where `since` is too long ago: the page loads all again.
        """
        return EventStream(_follow(feeds, batches, studio, project, since))

    return routes


_Batch = list[tuple[int, ProjectEvent]]


class _SharedBatches:
    """Writes events once for all pages that follow a project; on the server's event loop.

    An edit of all lines is 10 MB, and may have hundreds of pages to go to.
    """

    def __init__(self) -> None:
        self._writing: dict[tuple[ProjectSession, int, int], asyncio.Task[bytes]] = {}

    async def write(self, project: ProjectSession, batch: _Batch) -> bytes:
        """The events as the stream sends them; nothing is kept once they are written."""
        wanted = project, batch[0][0], batch[-1][0]
        task = self._writing.get(wanted)
        if task is None:
            work = asyncio.to_thread(_write_batch, project, batch)
            task = self._writing[wanted] = asyncio.create_task(work)
            task.add_done_callback(lambda _: self._writing.pop(wanted))
        return await asyncio.shield(task)  # others wait for it when a page leaves


async def _follow(
    feeds: StateFeeds,
    batches: _SharedBatches,
    studio: Studio,
    project: ProjectSession,
    since: int,
) -> AsyncGenerator[bytes, None]:
    woken, seen = asyncio.Event(), 0
    with project.events.waking(woken), feeds.subscribe(studio, woken) as feed:
        while not feed.is_over and (batch := project.events.read_batch(since)) is not None:
            if batch:
                if events := await batches.write(project, batch):
                    yield events
                since += len(batch)
            if feed.version > seen:
                message, seen = feed.message(seen), feed.version
                yield message
            while not await is_woken(woken):
                yield PING


def _write_batch(project: ProjectSession, batch: _Batch) -> bytes:
    bodies = ((seq, news_body(project, seq, news)) for seq, news in batch)
    return b"".join(encode_event(body, seq) for seq, body in bodies if body is not None)


space_routes = APIRouter(prefix="/studio/space")


class FreeBody(RequestBody):
    """What to free: takes of some projects, or of all where `project_ids` is None, and trash."""

    takes: bool = True
    trash: bool = True
    project_ids: Annotated[list[str], Field(max_length=10_000)] | None = None


@space_routes.get("")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
def disk_usage(studio: StudioDep) -> dict[str, Any]:
    """The disk space of deleted takes and lines, unused recordings, broken files and the trash."""
    return _disk_usage_body(find_reclaimable(studio.projects))


@space_routes.post("/free")
@page_policy(Access.GUEST, request_class=RequestClass.LONG, disk=DiskUse.FREE)
def free_space(studio: StudioDep, body: FreeBody) -> dict[str, Any]:
    """Delete it for good; the response says what was freed and what couldn't be."""
    project_ids = body.project_ids if body.takes else ()
    freed = reclaim_space(studio.projects, project_ids, trash=body.trash)
    left = [{"project_id": one, "message": message} for one, message in freed.failures]
    return _disk_usage_body(freed) | {"left": left}


@space_routes.get("/trash")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
def list_removed(studio: StudioDep) -> list[dict[str, Any]]:
    """List the deleted projects that can be restored, the last deleted first."""
    return [card_body(card) for card in studio.projects.list_removed()]


@space_routes.post("/trash/{project_id}/restore")
@page_policy(Access.GUEST, request_class=RequestClass.LONG, disk=DiskUse.FREE)
def restore(studio: StudioDep, project_id: str) -> Response:
    """Restore a deleted project."""
    return json_response(project_body(studio.projects.restore(project_id)))


def _disk_usage_body(holdings: ReclaimableSpace) -> dict[str, Any]:
    takes, recordings, trash = holdings.takes, holdings.recordings, holdings.trash
    return {
        "bytes": takes.size_bytes + recordings.size_bytes + trash.size_bytes,
        "takes": _files_body(takes),
        "recordings": _files_body(recordings),
        "trash": {"projects": trash.count, "bytes": trash.size_bytes},
        "projects": [
            {"project_id": one.project_id, "name": one.name, **_files_body(one.total)}
            for one in holdings.projects
        ],
    }


def _files_body(usage: DiskUsage) -> dict[str, int]:
    return {"files": usage.count, "bytes": usage.size_bytes}


_CLIPBOARD = "The clipboard"

project_line_routes = APIRouter(prefix="/studio/projects")


@project_line_routes.post("/lines")
@page_policy(Access.GUEST, max_body_bytes=MAX_DOCUMENT_BYTES)
async def read_lines(
    studio: StudioDep,
    request: Request,
    name: Annotated[str, Query(max_length=1_000)] = "",
    narrator: Annotated[str, Query(max_length=MAX_NAME_CHARS)] = "",
    fit: bool = False,
    columns: Annotated[list[str] | None, Query(max_length=MOST_SHOWN)] = None,
) -> Response:
    """Read a file, or pasted text if there is no name, as new lines; no project changes.

    The body is the file itself, whatever its content type. `narrator` is the name that speaks
    action, headings and stage directions, and all of a story; `fit` keeps the times of subtitles;
    `columns` says what each column of a table is read as. The response has the text's title, how
    much of it only a narrator would read, how many quotations of a story characters say, whether it
    is subtitles, a chat, and a plain script, and the first rows of a table.
    """
    options = ImportOptions(narrator or None, fit, columns or ())
    return await asyncio.to_thread(_read, studio, await request.body(), name, options)


@project_line_routes.put("/{project_id}/place")
@page_policy(Access.GUEST)
def keep_position(project: Project, place: LastPosition) -> dict[str, int]:
    """Save the last position in a project; responds with the number of this position."""
    folder = project.folder
    return {"number": save_last_position(folder.root, place, folder.disk, project.rev).number}


_FIRST_ROWS = 100


def _read(studio: Studio, data: bytes, name: str, options: ImportOptions) -> Response:
    read = import_dialog(data, name or _CLIPBOARD, options)
    dialog, left_out = fit_settings(read.dialog, studio.backend, studio.backends().values())
    # What a line doesn't say is left out, as in the edit that adds it.
    lines = [
        {"line_id": line.line_id, "kind": str(line.kind), **encode_line(line)}
        for line in create_lines(dialog)
    ]
    body = {
        "lines": lines,
        "notices": notice_bodies(read.notices + left_out, dialog),
        "chat": read.chat,
        "plain": _is_plain(data, read.dialog),
        "title": read.title,
        "unspoken": read.unspoken,
        "quoted": read.quoted,
        "timed": read.timed,
        "columns": read.columns and asdict(read.columns),
    }
    return json_response(body)


def _is_plain(data: bytes, dialog: Dialog) -> bool:
    """Whether text is a script as it is, so that it can stay so in the script view."""
    try:
        text = data.decode()
        return _begins_plain(text, dialog) and parse_script(text).dialog == dialog
    except (ScriptError, NameRejected, UnicodeDecodeError):
        return False


def _begins_plain(text: str, dialog: Dialog) -> bool:
    """Whether the first rows may be those of a script as it is; most other text has others."""
    rows = text.split("\n", _FIRST_ROWS)[:_FIRST_ROWS]
    begun = parse_script("\n".join([*rows, "A: And so on."])).dialog.lines
    spoken = [idx for idx, line in enumerate(begun) if isinstance(line, Speech)]
    sure = spoken[-2] if len(spoken) > 1 else 0  # the last speech of the text may go on below
    return begun[:sure] == dialog.lines[:sure]


project_audio_routes = APIRouter(prefix="/studio/projects/{project_id}")

# A take never changes, so a browser that has it need not ask again.
_FOR_GOOD = {"Cache-Control": "private, max-age=31536000, immutable"}

Bins = Annotated[int, Query(ge=1, le=4_000)]


@project_audio_routes.get("/lines/{line_id}/audio")
@page_policy(Access.GUEST, request_class=RequestClass.UNCOUNTED)
async def line_audio(project: Project, line_id: str) -> StreamingResponse:
    """Stream one line as s16le mono: while it is generated, from its take, or as silence.

    The header `X-Take` names the take that it is or becomes. The stream of a line whose generation
    failed ends in half a sample.
    """
    sound = await open_line_audio(project, line_id)
    headers = {"X-Sample-Rate": str(STUDIO_RATE_HZ), "Cache-Control": "no-store"}
    if sound.take_id is not None:
        headers["X-Take"] = sound.take_id
    media_type = "application/octet-stream"
    return StreamingResponse(sound.chunks, media_type=media_type, headers=headers)


@project_audio_routes.get("/takes/{line_id}/{take_id}/audio.wav")
@page_policy(Access.GUEST)
def take_audio(project: Project, line_id: str, take_id: str) -> FileResponse:
    """Fetch a take's audio file."""
    path = project.take_store.get_audio_path(_take(project, line_id, take_id))
    return StoredFile(path, media_type="audio/wav", headers=_FOR_GOOD)


@project_audio_routes.get("/takes/{line_id}/{take_id}/peaks")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
def take_peaks(
    project: Project, line_id: str, take_id: str, bins: Bins = 200
) -> dict[str, list[int]]:
    """Compute the waveform of a take."""
    path = project.take_store.get_audio_path(_take(project, line_id, take_id))
    return {"peaks": compute_peaks(path, bins)}


@project_audio_routes.get("/takes/{line_id}/{take_id}/words")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
def take_words(project: Project, line_id: str, take_id: str) -> dict[str, Any]:
    """When each word of a take is said: offsets in its text, and milliseconds.

    They are found now if they aren't kept with the take.
    """
    take = project.time_words(_take(project, line_id, take_id))
    return {"text": take.text, "words": list(take.words or ())}


@project_audio_routes.get("/peaks")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
async def many_peaks(
    project: Project, takes: Annotated[str, Query(max_length=20_000)], bins: Bins = 48
) -> dict[str, Any]:
    """Compute the waveforms of several takes, by id; missing ones are left out."""
    store = project.take_store
    known = [take for one in takes.split(",") if (take := store.get(one)) is not None]

    def all_peaks() -> dict[str, list[int]]:
        found = [take for take in known if _is_playable(project, take)]
        return {take.take_id: compute_peaks(store.get_audio_path(take), bins) for take in found}

    return {"peaks": await asyncio.to_thread(all_peaks)}


def _is_playable(project: ProjectSession, take: Take) -> bool:
    try:
        project.check_audio(take)
    except FileDamaged:
        return False
    return not project.take_store.is_freed(take)


def _take(project: ProjectSession, line_id: str, take_id: str) -> Take:
    take = project.take_store.find(take_id)
    if take.line_id != line_id:
        raise NotFound("This take isn't there any more.")
    project.check_audio(take)
    if project.take_store.is_freed(take):
        raise NotFound("The audio of this take was freed. Choose it and render its line again.")
    return take
