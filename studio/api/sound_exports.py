"""Routes by which a page has sound made into a file: begin, look, stop, fetch."""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

from fastapi import APIRouter
from fastapi.responses import FileResponse

from studio.api.desk import Desk
from studio.api.exports import attachment
from studio.api.projects import Project
from studio.api.sound import SoundBody, loudness_body
from studio.errors import Conflict
from studio.project.scene import scene_of
from studio.project.sound_exports import ExportState, SoundExport, SoundExports, SoundOrder
from studio.room import EXPORTS
from studio.service import Studio

MAX_AT_ONCE = 2
"""Exports of all workspaces that are written at once; each takes a processor."""


def sound_export_routes() -> APIRouter:
    """Exports of projects' sound, for all workspaces of a server."""
    routes = APIRouter(prefix="/studio/projects/{project_id}/exports")
    desks = _ExportDesks()

    @routes.post("", status_code=201)
    def begin(studio: Desk, project: Project, body: SoundBody) -> dict[str, Any]:
        order = SoundOrder(project.project_id, scene_of(project), body.suffix, body.choice)
        return _body(desks.of(studio).begin(order))

    @routes.get("/{export_id}")
    def look(studio: Desk, project_id: str, export_id: str) -> dict[str, Any]:
        return _body(desks.of(studio).find(project_id, export_id))

    @routes.delete("/{export_id}", status_code=204)
    def stop(studio: Desk, project_id: str, export_id: str) -> None:
        exports = desks.of(studio)
        exports.drop(exports.find(project_id, export_id))

    @routes.get("/{export_id}/file")
    def fetch(studio: Desk, project: Project, export_id: str) -> FileResponse:
        export = desks.of(studio).find(project.project_id, export_id)
        if export.state is not ExportState.DONE:
            raise Conflict("The file isn't finished yet. Wait for it, then fetch it.")
        headers = {"Content-Disposition": attachment(_file_name(project.document.name, export))}
        return FileResponse(export.path, headers=headers)

    return routes


class _ExportDesks:
    """The exports of each workspace, which all take turns."""

    def __init__(self) -> None:
        self._turns = threading.BoundedSemaphore(MAX_AT_ONCE)
        # Guards the table, which requests in several threads read and change.
        self._lock = threading.Lock()
        self._exports: WeakKeyDictionary[Studio, SoundExports] = WeakKeyDictionary()

    def of(self, studio: Studio) -> SoundExports:
        with self._lock:
            exports = self._exports.get(studio)
            if exports is None:
                exports = SoundExports(studio.options.workspace / EXPORTS, self._turns)
                self._exports[studio] = exports
            return exports


def _file_name(name: str, export: SoundExport) -> str:
    tracks = " tracks" if export.order.choice.tracks else ""
    return f"{name}{tracks}{export.order.suffix}"


def _body(export: SoundExport) -> dict[str, Any]:
    loudness = export.loudness
    measured = None if loudness is None else loudness_body(loudness, export.order.choice)
    return {
        "export_id": export.export_id,
        "state": export.state.value,
        "share": export.share,
        "message": export.message,
        "measured": measured,
    }
