"""Routes by which projects and their audio come in and go out as files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, UploadFile
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from studio.api.desk import Desk
from studio.api.project_schemas import project_body
from studio.api.projects import Project
from studio.dialog.formats.exporting import export_notices
from studio.dialog.formats.file_format import Format
from studio.dialog.formats.importing import import_dialog
from studio.dialog.model import MAX_SCRIPT_BYTES
from studio.errors import StudioError
from studio.project.archive import SUFFIX, is_archive, write_archive
from studio.project.checks import MAX_NAME_CHARS
from studio.project.scene import export_scene, export_script

project_file_routes = APIRouter(prefix="/studio/projects")

ExportFormat = Literal[
    "tableread", "txt", "fountain", "srt", "vtt", "csv", "tsv", "json", "jsonl",
    "wav", "flac", "mp3", "zip",
]  # fmt: skip

_SCRIPTS = frozenset(Format)


@project_file_routes.post("/import", status_code=201)
def bring_in(studio: Desk, file: UploadFile) -> dict[str, Any]:
    """Make a project of a file: one that was exported, or a script of any format."""
    name = PurePath(file.filename or "").name
    if is_archive(file.file):
        file.file.seek(0)
        return project_body(studio.projects.bring_in(file.file))
    file.file.seek(0)
    imported = import_dialog(file.file.read(MAX_SCRIPT_BYTES + 1), name or "The file")
    title = PurePath(name).stem.strip()[:MAX_NAME_CHARS] or "Untitled"
    session = studio.projects.create(title, imported.dialog)
    return project_body(session, imported.notices)


@project_file_routes.get("/{project_id}/export")
def export(
    project: Project, suffix: Annotated[ExportFormat, Query(alias="format")] = "wav"
) -> Response:
    """A project as one file, its lines as a script, or what can be heard of it."""
    name = project.document.name
    if suffix in _SCRIPTS:
        data = export_script(project, Format(suffix))
        notices = export_notices(project.document.dialog(), Format(suffix))
        left_out = quote(" ".join(notice.message for notice in notices)[:2_000])
        headers = {"Content-Disposition": _attachment(f"{name}.{suffix}"), "X-Left-Out": left_out}
        return Response(data, media_type="application/octet-stream", headers=headers)
    if suffix == "tableread":
        return _written(lambda path: write_archive(project, path), f"{name}{SUFFIX}", SUFFIX)
    return _written(lambda path: export_scene(project, path), f"{name}.{suffix}", f".{suffix}")


@project_file_routes.post("/{project_id}/audio", status_code=201)
def add_audio(project: Project, file: UploadFile) -> dict[str, str]:
    """Bring a recording into a project, for audio lines; answers with the path they name."""
    return {"path": project.add_audio(PurePath(file.filename or "").name, file.file)}


def _written(write: Callable[[Path], None], file_name: str, suffix: str) -> FileResponse:
    folder = tempfile.TemporaryDirectory(prefix="tableread-")
    path = Path(folder.name) / f"export{suffix}"
    try:
        write(path)
    except StudioError:
        folder.cleanup()
        raise
    headers = {"Content-Disposition": _attachment(file_name)}
    return FileResponse(path, headers=headers, background=BackgroundTask(folder.cleanup))


def _attachment(file_name: str) -> str:
    """A download under any name: percent-encoded, so that no character of it can do harm."""
    return f"attachment; filename*=UTF-8''{quote(file_name, safe='')}"
