"""Routes by which projects and their audio come in and go out as files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi import UploadFile as FormFile
from fastapi.responses import FileResponse, Response
from starlette.datastructures import UploadFile

from studio.api.body_limits import BodyLimits, counted, stated_bytes, too_large
from studio.api.desk import Desk
from studio.api.exports import attachment, file_made, unless_left
from studio.api.project_schemas import project_body
from studio.api.projects import Project
from studio.api.sound import MasteringWish
from studio.audio.atomic_file import storage_errors
from studio.audio.scene_file import SoundChoice
from studio.dialog.formats.file_format import Format
from studio.dialog.formats.importing import import_dialog
from studio.dialog.model import MAX_SCRIPT_BYTES
from studio.errors import BadInput
from studio.project.archive import MAX_BYTES, SUFFIX, is_archive, write_archive
from studio.project.checks import MAX_NAME_CHARS
from studio.project.disk import Disk
from studio.project.scene import export_scene, export_script
from studio.service import Studio

project_file_routes = APIRouter(prefix="/studio/projects")

ExportFormat = Literal[
    "tableread", "txt", "fountain", "srt", "vtt", "csv", "tsv", "json", "jsonl",
    "wav", "flac", "mp3", "zip", "tracks",
]  # fmt: skip

_SCRIPTS = frozenset(Format)
_UNPACKED = 2
"""How many times a file's limit it may take unpacked; sound is stored as it is."""


@project_file_routes.post("/import", status_code=201)
async def bring_in(
    studio: Desk, request: Request, name: Annotated[str, Query(max_length=1_000)] = ""
) -> dict[str, Any]:
    """Make a project of a file: one that was exported, or a script of any format.

    The body is the file itself, which goes to the disk as it comes; or a form with a `file`.
    """
    max_bytes = _most_bytes(request)
    if request.headers.get("content-type", "").startswith("multipart/"):
        bounded = Request(request.scope, counted(request.receive, max_bytes))
        async with bounded.form(max_files=1, max_fields=1) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise BadInput("No file came with this. Choose one, then import it.")
            return await asyncio.to_thread(_made, studio, file.file, file.filename or "", max_bytes)
    with studio.projects.arriving() as path:
        with path.open("xb") as arriving:
            await _receive(request, arriving, path, max_bytes)
        with path.open("rb") as arrived:
            return await asyncio.to_thread(_made, studio, arrived, name, max_bytes)


def _made(studio: Studio, file: BinaryIO, name: str, max_bytes: int) -> dict[str, Any]:
    name = PurePath(name).name
    if is_archive(file):
        file.seek(0)
        unpacked_bytes = min(max_bytes * _UNPACKED, MAX_BYTES)
        if (left_bytes := studio.room.left_bytes) is not None:
            unpacked_bytes = min(unpacked_bytes, left_bytes)
        return project_body(studio.projects.bring_in(file, max_bytes=unpacked_bytes))
    file.seek(0)
    imported = import_dialog(file.read(MAX_SCRIPT_BYTES + 1), name or "The file")
    title = PurePath(name).stem.strip()[:MAX_NAME_CHARS] or "Untitled"
    session = studio.projects.create(title, imported.dialog)
    return project_body(session, imported.notices)


async def _receive(request: Request, file: BinaryIO, path: Path, max_bytes: int) -> None:
    """Write a body to a file as it comes.

    Raises:
        BadInput: It is larger than is taken, which is seen before it comes where it says so.
        StorageFailed: There is no room for it.
    """
    stated = stated_bytes(request.headers) or 0
    if stated > max_bytes:
        raise BadInput(_too_large(max_bytes))
    Disk().check_room(path.parent, stated)
    come = 0
    async for chunk in request.stream():
        come += len(chunk)
        if come > max_bytes:
            raise BadInput(_too_large(max_bytes))
        with storage_errors(path):
            await asyncio.to_thread(file.write, chunk)


def _too_large(max_bytes: int) -> str:
    return f"{too_large(max_bytes)} Export the project without deleted takes."


def _most_bytes(request: Request) -> int:
    """How large a file may be: the owner's disk is the owner's matter."""
    visitor = getattr(request.state, "visitor", None)
    return MAX_BYTES if visitor is None or visitor.is_owner else BodyLimits().upload_bytes


@project_file_routes.get("/{project_id}/export")
def export(
    studio: Desk,
    project: Project,
    request: Request,
    mastering: MasteringWish,
    suffix: Annotated[ExportFormat, Query(alias="format")] = "wav",
    *,
    deleted: bool = True,
) -> Response:
    """A project as one file, its lines as a script, or what can be heard of it.

    A project's file has its deleted takes in it unless `deleted` is false. Sound is as rendered
    unless `loudness` and `even_voices` say otherwise.
    """
    name = project.document.name
    if suffix in _SCRIPTS:
        data, notices = export_script(project, Format(suffix))
        left_out = quote(" ".join(notice.message for notice in notices)[:2_000])
        headers = {"Content-Disposition": attachment(f"{name}.{suffix}"), "X-Left-Out": left_out}
        return Response(data, media_type="application/octet-stream", headers=headers)
    if suffix == "tableread":
        return _written(
            studio,
            lambda path: write_archive(project, path, deleted=deleted),
            f"{name}{SUFFIX}",
            SUFFIX,
        )
    left, choice = unless_left(request), SoundChoice(mastering, tracks=suffix == "tracks")
    suffix = "zip" if suffix == "tracks" else suffix
    return _written(
        studio,
        lambda path: export_scene(project, path, choice, on_progress=left),
        f"{name}.{suffix}",
        f".{suffix}",
    )


@project_file_routes.post("/{project_id}/audio", status_code=201)
def add_audio(project: Project, file: FormFile) -> dict[str, str]:
    """Bring a recording into a project, for audio lines; answers with the path they name."""
    return {"path": project.add_audio(PurePath(file.filename or "").name, file.file)}


def _written(
    studio: Studio, write: Callable[[Path], object], file_name: str, suffix: str
) -> FileResponse:
    headers = {"Content-Disposition": attachment(file_name)}
    return file_made(studio, f"export{suffix}", write, headers=headers)
