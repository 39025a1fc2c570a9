"""Routes by which projects and their audio are imported and exported as files."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Depends, Query, Request
from fastapi import UploadFile as FormFile
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.datastructures import UploadFile

from studio.audio.loudness import Loudness
from studio.audio.mastering import MAX_LUFS, MIN_LUFS, Mastering, parse_target
from studio.audio.scene_file import ExportOptions, describe_result
from studio.dialog.formats.file_format import Format
from studio.dialog.formats.importing import import_dialog
from studio.dialog.model import MAX_SCRIPT_BYTES
from studio.errors import BadInput, Conflict
from studio.project.document import MAX_PROJECT_NAME_CHARS
from studio.project.project_file import MAX_BYTES, PROJECT_SUFFIX, is_archive, write_archive
from studio.project.scene_export import (
    ExportState,
    SceneExport,
    SceneExports,
    SceneExportSpec,
    build_scene,
    export_scene,
    export_script,
)
from studio.server.deps import StudioDep
from studio.server.middleware.request_bodies import BodyLimits, limit_body, stated_bytes, too_large
from studio.server.routes.bodies import project_body
from studio.server.routes.project_routes import Project
from studio.server.transfers import attachment, make_file, unless_left
from studio.services.studio import Studio
from studio.storage.disk import Disk, storage_errors
from studio.storage.workspace import EXPORTS

SoundFormat = Literal["wav", "flac", "mp3", "zip", "tracks"]

Lufs = Annotated[float, Field(ge=MIN_LUFS, le=MAX_LUFS, allow_inf_nan=False, strict=True)]
LoudnessWish = Literal["rendered", "podcast", "audiobook", "broadcast"] | Lufs
"""A level by its name, or in LUFS."""


class SoundBody(BaseModel):
    """A file of a project's sound; `tracks` is a zip with one for each speaker."""

    model_config = ConfigDict(extra="forbid")

    format: SoundFormat = "wav"
    loudness: LoudnessWish = "rendered"
    even_voices: bool = Field(False, strict=True)

    @property
    def suffix(self) -> str:
        """Of the file, with its dot."""
        return ".zip" if self.format == "tracks" else f".{self.format}"

    @property
    def choice(self) -> ExportOptions:
        """The wish as the studio knows it."""
        mastering = mastering_of(self.loudness, even_voices=self.even_voices)
        return ExportOptions(mastering, tracks=self.format == "tracks", measured=True)


def mastering_of(loudness: str | float, *, even_voices: bool) -> Mastering:
    """A level that was checked."""
    return Mastering(parse_target(str(loudness)), even_voices)


def mastering_wished(
    loudness: Annotated[str, Query(max_length=40)] = "rendered", *, even_voices: bool = False
) -> Mastering:
    """A level in an address: `?loudness=podcast&even_voices=true`.

    Raises:
        BadInput: The loudness is none.
    """
    return mastering_of(loudness, even_voices=even_voices)


MasteringWish = Annotated[Mastering, Depends(mastering_wished)]


def loudness_body(loudness: Loudness, choice: ExportOptions) -> dict[str, Any]:
    """What a finished file holds, in figures and in words."""
    return {
        "loudness_lufs": loudness.lufs,
        "range_lu": loudness.range_lu,
        "true_peak_db": loudness.true_peak_db,
        "peak_db": loudness.peak_db,
        "rms_db": loudness.rms_db,
        "noise_db": loudness.noise_db,
        "remarks": list(describe_result(loudness, choice)),
    }


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
    studio: StudioDep, request: Request, name: Annotated[str, Query(max_length=1_000)] = ""
) -> dict[str, Any]:
    """Make a project of a file: one that was exported, or a script of any format.

    The body is the file itself, which goes to the disk as it comes; or a form with a `file`.
    """
    max_bytes = _most_bytes(request)
    if request.headers.get("content-type", "").startswith("multipart/"):
        bounded = Request(request.scope, limit_body(request.receive, max_bytes))
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
    title = PurePath(name).stem.strip()[:MAX_PROJECT_NAME_CHARS] or "Untitled"
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
    studio: StudioDep,
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
            f"{name}{PROJECT_SUFFIX}",
            PROJECT_SUFFIX,
        )
    left, choice = unless_left(request), ExportOptions(mastering, tracks=suffix == "tracks")
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
    return make_file(studio, f"export{suffix}", write, headers=headers)


MAX_AT_ONCE = 2
"""Exports of all workspaces that are written at once; each takes a processor."""


def sound_export_routes() -> APIRouter:
    """Exports of projects' sound, for all workspaces of a server."""
    routes = APIRouter(prefix="/studio/projects/{project_id}/exports")
    desks = _ExportsOfStudio()

    @routes.post("", status_code=201)
    def begin(studio: StudioDep, project: Project, body: SoundBody) -> dict[str, Any]:
        order = SceneExportSpec(project.project_id, build_scene(project), body.suffix, body.choice)
        return _body(desks.of(studio).begin(order))

    @routes.get("/{export_id}")
    def look(studio: StudioDep, project_id: str, export_id: str) -> dict[str, Any]:
        return _body(desks.of(studio).find(project_id, export_id))

    @routes.delete("/{export_id}", status_code=204)
    def stop(studio: StudioDep, project_id: str, export_id: str) -> None:
        exports = desks.of(studio)
        exports.drop(exports.find(project_id, export_id))

    @routes.get("/{export_id}/file")
    def fetch(studio: StudioDep, project: Project, export_id: str) -> FileResponse:
        export = desks.of(studio).find(project.project_id, export_id)
        if export.state is not ExportState.DONE:
            raise Conflict("The file isn't finished yet. Wait for it, then fetch it.")
        headers = {"Content-Disposition": attachment(_file_name(project.document.name, export))}
        return FileResponse(export.path, headers=headers)

    return routes


class _ExportsOfStudio:
    """The exports of each workspace, which all take turns."""

    def __init__(self) -> None:
        self._turns = threading.BoundedSemaphore(MAX_AT_ONCE)
        # Guards the table, which requests in several threads read and change.
        self._lock = threading.Lock()
        self._exports: WeakKeyDictionary[Studio, SceneExports] = WeakKeyDictionary()

    def of(self, studio: Studio) -> SceneExports:
        with self._lock:
            exports = self._exports.get(studio)
            if exports is None:
                exports = SceneExports(studio.options.workspace / EXPORTS, self._turns)
                self._exports[studio] = exports
            return exports


def _file_name(name: str, export: SceneExport) -> str:
    tracks = " tracks" if export.order.choice.tracks else ""
    return f"{name}{tracks}{export.order.suffix}"


def _body(export: SceneExport) -> dict[str, Any]:
    loudness = export.loudness
    measured = None if loudness is None else loudness_body(loudness, export.order.choice)
    return {
        "export_id": export.export_id,
        "state": export.state.value,
        "share": export.share,
        "message": export.message,
        "measured": measured,
    }
