"""Routes by which projects and their audio are imported and exported as files."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from fastapi import UploadFile as FormFile
from fastapi.responses import FileResponse, Response
from pydantic import Field
from starlette.datastructures import UploadFile

from studio.audio.export import FILE_NAMES, check_names
from studio.audio.file_tags import Cover
from studio.audio.formats import FileSuffix
from studio.audio.loudness import Loudness
from studio.audio.mastering import Mastering
from studio.audio.podcast_files import PODCAST_FILES
from studio.audio.scene_file import ExportOptions, Scene, describe_result
from studio.dialog.documents.reading import MAX_DOCUMENT_BYTES
from studio.dialog.formats.dialog_file import Format, import_dialog
from studio.dialog.gaps import MAX_GAP_S
from studio.engine.event_log import StateChange
from studio.errors import BadInput, Conflict
from studio.hearing.timing_files import TimingFormat, write_timing
from studio.project.cover import read_project_cover, save_project_cover
from studio.project.document import MAX_PROJECT_NAME_CHARS
from studio.project.ops import LineId
from studio.project.project_file import MAX_BYTES, PROJECT_SUFFIX, write_archive
from studio.project.scene_export import (
    ExportState,
    SceneExport,
    SceneExports,
    SceneExportSpec,
    build_scene,
    describe_left_out,
    export_script,
    time_lines,
)
from studio.project.session import ProjectSession
from studio.server.middleware.admission import limit_body, stated_bytes, too_large
from studio.server.policies import (
    PROJECT_BYTES,
    UPLOAD_BYTES,
    Access,
    DiskUse,
    PerStudio,
    RequestClass,
    StudioDep,
    page_policy,
    spend_upload,
    upload_policy,
)
from studio.server.routes.bodies import RequestBody, json_response, project_body
from studio.server.routes.project_routes import Project
from studio.server.transfers import (
    LoudnessChoice,
    StoredFile,
    attachment,
    make_file,
    mastering_of,
    unless_left,
)
from studio.services.line_checks import find_unfit_settings, fit_settings
from studio.services.studio import Studio
from studio.storage.disk import Disk, storage_errors
from studio.storage.workspace import EXPORTS

if TYPE_CHECKING:
    SoundFormat = str
    ExportFormat = str
else:
    SoundFormat = Literal[FileSuffix, "zip", "tracks"]
    _OTHERS = ("tableread", *map(str, (*Format, *TimingFormat)), *PODCAST_FILES)
    ExportFormat = Literal[(SoundFormat, *_OTHERS)]


class SoundBody(RequestBody):
    """An audio file of a project; `tracks` is a zip with a track for each speaker.

    With `captions` a zip has captions, too.
    """

    format: SoundFormat = "wav"
    loudness: LoudnessChoice = "rendered"
    even_voices: bool = Field(False, strict=True)
    kbps: Literal[64, 96, 128, 192] | None = None
    names: Annotated[str, Field(max_length=100)] = FILE_NAMES
    podcast: bool = Field(False, strict=True)
    captions: bool = Field(False, strict=True)
    section: LineId | None = None

    @property
    def suffix(self) -> str:
        return ".zip" if self.format == "tracks" else f".{self.format}"

    @property
    def options(self) -> ExportOptions:
        """The same as export options; the finished file is measured."""
        mastering = mastering_of(self.loudness, even_voices=self.even_voices)
        return ExportOptions(
            mastering,
            tracks=self.format == "tracks",
            is_measured=True,
            kbps=self.kbps,
            names=check_names(self.names),
            podcast=self.podcast,
            captions=self.captions,
        )


def parse_mastering_query(
    loudness: Annotated[str, Query(max_length=40)] = "rendered", *, even_voices: bool = False
) -> Mastering:
    """The mastering in a query string: `?loudness=podcast&even_voices=true`."""
    return mastering_of(loudness, even_voices=even_voices)


MasteringQuery = Annotated[Mastering, Depends(parse_mastering_query)]


def loudness_body(loudness: Loudness, choice: ExportOptions) -> dict[str, Any]:
    """The measured levels of a finished file, and remarks about them."""
    levels = asdict(loudness)
    remarks = list(describe_result(loudness, choice))
    return {"loudness_lufs": levels.pop("lufs"), **levels, "remarks": remarks}


project_file_routes = APIRouter(prefix="/studio/projects")


_SCRIPTS = frozenset(Format)
_TIMINGS = frozenset(TimingFormat)
_TEXTS = _SCRIPTS | _TIMINGS | frozenset(PODCAST_FILES)
_UNPACKED = 2
"""How many times its limit an archive may take unpacked; audio is stored in it uncompressed."""


@project_file_routes.post("/import", status_code=201)
@upload_policy(max_body_bytes=PROJECT_BYTES)
async def import_project(
    studio: StudioDep,
    request: Request,
    name: Annotated[str, Query(max_length=1_000)] = "",
    gap_s: Annotated[float, Query(ge=0, le=MAX_GAP_S)] = 0.0,
) -> Response:
    """Create a project from a file: an exported project, or a script in any format.

    `gap_s` is the usual gap between a script's lines.

    The body is the file itself, which is written to disk as it arrives; or a form with a `file`.
    """
    max_bytes = _max_import_bytes(request)
    charge = partial(spend_upload, request)
    create = partial(
        _create_project, studio, max_bytes=max_bytes, gap_s=gap_s, charge_voices=charge
    )
    if request.headers.get("content-type", "").startswith("multipart/"):
        bounded = Request(request.scope, limit_body(request.receive, max_bytes))
        async with bounded.form(max_files=1, max_fields=1) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise BadInput("No file came with this. Choose one, then import it.")
            return await asyncio.to_thread(create, file.file, file.filename or "")
    with studio.projects.open_upload() as path:
        with path.open("xb") as arriving:
            await _save_body(request, arriving, path, max_bytes)
        with path.open("rb") as arrived:
            return await asyncio.to_thread(create, arrived, name)


def _create_project(
    studio: Studio,
    file: BinaryIO,
    name: str,
    *,
    max_bytes: int,
    gap_s: float,
    charge_voices: Callable[[int], None],
) -> Response:
    name = PurePath(name).name
    unpacked_bytes = min(max_bytes * _UNPACKED, MAX_BYTES)
    if (left_bytes := studio.disk_quota.left_bytes) is not None:
        unpacked_bytes = min(unpacked_bytes, left_bytes)
    brought = studio.projects.import_file(
        file, max_bytes=unpacked_bytes, charge_voices=charge_voices
    )
    if brought is not None:
        notices = find_unfit_settings(brought, studio.backends().values())
        return json_response(project_body(brought, notices), 201)
    file.seek(0)
    imported = import_dialog(file.read(MAX_DOCUMENT_BYTES + 1), name or "The file")
    dialog, left_out = fit_settings(imported.dialog, studio.backend, studio.backends().values())
    title = (imported.title or PurePath(name).stem.strip())[:MAX_PROJECT_NAME_CHARS] or "Untitled"
    session = studio.projects.create(title, dialog, gap_s=gap_s)
    body = project_body(session, imported.notices + left_out, dialog)
    offered = {
        "unspoken": imported.unspoken,
        "quoted": imported.quoted,
        "timed": imported.timed,
        "columns": imported.columns and asdict(imported.columns),
    }
    return json_response(body | offered, 201)


async def _save_body(request: Request, file: BinaryIO, path: Path, max_bytes: int) -> None:
    """Write a body to a file as it arrives.

    Raises:
        BadInput: It is too large; a stated length is checked before anything is read.
    """
    stated = stated_bytes(request.headers) or 0
    if stated > max_bytes:
        raise BadInput(_too_large(max_bytes))
    Disk().check_free_space(path.parent, stated)
    come = 0
    async for chunk in request.stream():
        come += len(chunk)
        if come > max_bytes:
            raise BadInput(_too_large(max_bytes))
        with storage_errors(path):
            await asyncio.to_thread(file.write, chunk)


def _too_large(max_bytes: int) -> str:
    return f"{too_large(max_bytes)} Export the project without deleted takes."


def _max_import_bytes(request: Request) -> int:
    """The limit of an import; the owner's is only that of the format."""
    visitor = getattr(request.state, "visitor", None)
    return MAX_BYTES if visitor is None or visitor.is_owner else UPLOAD_BYTES


@project_file_routes.get("/{project_id}/export")
@page_policy(Access.GUEST, request_class=RequestClass.LONG)
def export(
    studio: StudioDep,
    project: Project,
    request: Request,
    mastering: MasteringQuery,
    suffix: Annotated[ExportFormat, Query(alias="format")] = "wav",
    *,
    deleted: bool = True,
) -> Response:
    """Export a project as one file, its lines as a script, its audio, or what is said when.

    A project's file contains its deleted takes unless `deleted` is false. Audio is as rendered
    unless `loudness` and `even_voices` say otherwise.
    """
    name = project.document.name
    if suffix in _TEXTS:
        data, left_out = _write_text(project, suffix)
        headers = _export_headers(f"{name}.{suffix}", left_out)
        return Response(data, media_type="application/octet-stream", headers=headers)
    if suffix == "tableread":
        return make_file(
            studio,
            f"export{PROJECT_SUFFIX}",
            lambda path: write_archive(project, path, deleted=deleted),
            headers={"Content-Disposition": attachment(f"{name}{PROJECT_SUFFIX}")},
        )
    left, choice = unless_left(request), ExportOptions(mastering, tracks=suffix == "tracks")
    suffix = "zip" if suffix == "tracks" else suffix
    scene = _describe_scene(studio, build_scene(project))
    return make_file(
        studio,
        f"export.{suffix}",
        lambda path: scene.write(path, choice, on_progress=left),
        headers=_export_headers(f"{name}.{suffix}", describe_left_out(scene)),
    )


def _write_text(project: ProjectSession, suffix: str) -> tuple[bytes, Iterable[str]]:
    """A file without sound, and what it leaves out.

    Raises:
        Conflict: It has nothing to hold yet.
    """
    if suffix in _SCRIPTS:
        data, notices = export_script(project, Format(suffix))
        return data, [notice.message for notice in notices]
    if suffix in _TIMINGS:
        lines, duration_s, problems = time_lines(project)
        return write_timing(lines, TimingFormat(suffix), duration_s), problems
    scene = build_scene(project)
    files = scene.write_podcast_files()
    if suffix not in files:
        raise Conflict("There are no chapters: they begin at headings. Add a heading first.")
    return files[suffix], describe_left_out(scene)


def _describe_scene(studio: Studio, scene: Scene) -> Scene:
    described = studio.describe_scene(scene, scene.tags.title)
    return replace(described, kept_loudness=studio.kept_loudness)


def _export_headers(file_name: str, left_out: Iterable[str]) -> dict[str, str]:
    """The headers of an export, with what it leaves out."""
    text = quote(" ".join(left_out)[:2_000])
    return {"Content-Disposition": attachment(file_name), "X-Left-Out": text}


@project_file_routes.post("/{project_id}/audio", status_code=201)
@upload_policy()
def add_audio(project: Project, file: FormFile) -> dict[str, str]:
    """Add a recording to a project; audio lines name it by the path in the response."""
    return {"path": project.add_audio(PurePath(file.filename or "").name, file.file)}


@project_file_routes.get("/{project_id}/cover")
@page_policy(Access.GUEST)
def show_cover(project: Project) -> Response:
    """The image that its sound files carry, as it was chosen; nothing where there is none."""
    cover = read_project_cover(project.folder.root)
    if cover is None:
        return Response(status_code=204)
    return Response(cover.data, media_type=cover.media_type, headers={"Cache-Control": "no-store"})


@project_file_routes.put("/{project_id}/cover", status_code=204)
@page_policy(Access.GUEST, disk=DiskUse.FILL)
async def put_cover(project: Project, request: Request) -> None:
    """Choose the image, a JPEG or PNG, which is the body itself."""
    data = await request.body()
    await asyncio.to_thread(save_project_cover, project.folder, Cover(data))


@project_file_routes.delete("/{project_id}/cover", status_code=204)
@page_policy(Access.GUEST, disk=DiskUse.FREE)
def remove_cover(project: Project) -> None:
    """Take the image away."""
    save_project_cover(project.folder, None)


MAX_AT_ONCE = 2
"""Exports that are written at once, of all workspaces together; each takes a processor."""


def scene_exports() -> PerStudio[SceneExports]:
    """The exports of each studio; the page's state follows them."""
    turns = threading.BoundedSemaphore(MAX_AT_ONCE)

    def exports_of(studio: Studio) -> SceneExports:
        report = partial(studio.engine.changes.append, StateChange.EXPORTS)
        return SceneExports(studio.options.workspace / EXPORTS, turns, report)

    return PerStudio(exports_of)


def sound_export_routes(exports_of: PerStudio[SceneExports]) -> APIRouter:
    """Exports of projects' audio in the background, for all workspaces of a server."""
    routes = APIRouter(prefix="/studio/projects/{project_id}/exports")

    @routes.post("", status_code=201)
    @page_policy(Access.GUEST)
    def begin_export(studio: StudioDep, project: Project, body: SoundBody) -> dict[str, Any]:
        scene = _describe_scene(studio, build_scene(project, body.section))
        order = SceneExportSpec(project.project_id, scene, body.suffix, body.options)
        return _export_body(exports_of.get(studio).begin(order))

    @routes.get("/{export_id}")
    @page_policy(Access.GUEST)
    def show_export(studio: StudioDep, project_id: str, export_id: str) -> dict[str, Any]:
        return _export_body(exports_of.get(studio).find(project_id, export_id))

    @routes.delete("/{export_id}", status_code=204)
    @page_policy(Access.GUEST, disk=DiskUse.FREE)
    def drop_export(studio: StudioDep, project_id: str, export_id: str) -> None:
        exports = exports_of.get(studio)
        exports.drop(exports.find(project_id, export_id))

    @routes.get("/{export_id}/file")
    @page_policy(Access.GUEST, request_class=RequestClass.LONG)
    def fetch_export(studio: StudioDep, project: Project, export_id: str) -> FileResponse:
        export = exports_of.get(studio).find(project.project_id, export_id)
        if export.state is not ExportState.DONE:
            raise Conflict("The file isn't finished yet. Wait for it, then fetch it.")
        name = _file_name(project.document.name, export)
        return StoredFile(export.path, headers={"Content-Disposition": attachment(name)})

    @routes.get("/{export_id}/captions")
    @page_policy(Access.GUEST, request_class=RequestClass.LONG)
    def fetch_captions(studio: StudioDep, project: Project, export_id: str) -> Response:
        """Captions of what the file has, as SRT."""
        export = exports_of.get(studio).find(project.project_id, export_id)
        name = _file_name(project.document.name, export, ".srt")
        data = export.spec.scene.write_captions()[".srt"]
        headers = {"Content-Disposition": attachment(name)}
        return Response(data, media_type="application/x-subrip", headers=headers)

    return routes


def _file_name(project: str, export: SceneExport, suffix: str | None = None) -> str:
    name = export.spec.scene.tags.title or project
    tracks = " tracks" if export.spec.options.tracks else ""
    return f"{name}{tracks}{suffix or export.spec.suffix}"


def export_bodies(exports: SceneExports) -> list[dict[str, Any]]:
    """A workspace's exports as the page's state has them."""
    return [_export_body(export) for export in exports.list_all()]


def _export_body(export: SceneExport) -> dict[str, Any]:
    loudness = export.loudness
    measured = None if loudness is None else loudness_body(loudness, export.spec.options)
    if measured is not None:
        spec = export.spec
        measured["remarks"] += describe_left_out(spec.scene)
        measured["remarks"] += spec.scene.describe_names(spec.suffix, spec.options)
    return {
        "export_id": export.export_id,
        "state": export.state.value,
        "share": export.progress,
        "message": export.message,
        "measured": measured,
    }
