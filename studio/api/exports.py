"""Files that are made for one answer: in a folder of the workspace, and gone with the answer."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio.from_thread
from fastapi import Request
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from studio.audio.export import OnProgress
from studio.errors import Cancelled
from studio.room import EXPORTS
from studio.service import Studio
from studio.workspace import writable

_LOOKS_EVERY_S = 0.5


def file_made(
    studio: Studio, file_name: str, write: Callable[[Path], object], **options: Any
) -> FileResponse:
    """Answer with a file that `write` makes.

    It lies in the workspace, which is made for large files: the system's own place for passing
    ones may be memory. What the end of a process leaves there is removed at the next start.

    Args:
        studio: Whose workspace.
        file_name: As it is called while it is written; the suffix may say how.
        write: Writes to a path that isn't there yet.
        options: Of the answer.

    Raises:
        StorageFailed: It can't be written.
    """
    exports = writable(studio.options.workspace / EXPORTS)
    folder = tempfile.TemporaryDirectory(prefix="export-", dir=exports)
    path = Path(folder.name) / file_name
    try:
        write(path)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(path, background=BackgroundTask(folder.cleanup), **options)


def attachment(file_name: str) -> str:
    """A download under any name: percent-encoded, so that no character of it can do harm."""
    return f"attachment; filename*=UTF-8''{quote(file_name, safe='')}"


def unless_left(request: Request) -> OnProgress:
    """Told how far an export is, it ends the export of somebody who has hung up.

    For handlers that run in threads.
    """
    looked_s = time.monotonic()

    def look(_share: float) -> None:
        nonlocal looked_s
        if time.monotonic() - looked_s < _LOOKS_EVERY_S:
            return
        looked_s = time.monotonic()
        if anyio.from_thread.run(request.is_disconnected):
            raise Cancelled("Whoever asked for it has left.")

    return look
