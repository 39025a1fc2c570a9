"""Recordings in request bodies and files made for one answer, while the client waits."""

from __future__ import annotations

import asyncio
import io
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import anyio.from_thread
from fastapi import Request
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from studio.audio.clip import Clip
from studio.audio.decode import DEFAULT_LIMITS
from studio.audio.encode import AudioFormat, encode_blocks
from studio.audio.export import OnProgress
from studio.errors import Cancelled
from studio.services.studio import Studio
from studio.storage.workspace import EXPORTS, ensure_writable

_GONE_CHECK_S = 0.5

T = TypeVar("T")


@asynccontextmanager
async def receive(
    request: Request, studio: Studio, *, max_bytes: int = DEFAULT_LIMITS.max_bytes
) -> AsyncIterator[Path]:
    """A request's body as a file, which is gone when the block ends.

    Memory holds one piece of it, and reading stops at the limit.

    Raises:
        AudioRejected: The body is larger than `max_bytes`.
    """
    with studio.voices.uploads.arriving(max_bytes=max_bytes) as arriving:
        async for chunk in request.stream():
            await asyncio.to_thread(arriving.write, chunk)
        yield arriving.finish()


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Await work, and cancel it when whoever asked for it has hung up.

    Raises:
        Cancelled: Nobody waits for it any more.
    """
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=_GONE_CHECK_S)
            if not task.done() and await request.is_disconnected():
                raise Cancelled("Whoever asked for it has left.")
        return task.result()
    finally:
        task.cancel()


def wav_answer(clip: Clip) -> Response:
    """A clip as a WAV body."""
    file = io.BytesIO()
    encode_blocks(file, [clip.samples], AudioFormat.WAV, rate_hz=clip.rate_hz)
    return Response(file.getvalue(), media_type="audio/wav", headers={"Cache-Control": "no-store"})


_LOOKS_EVERY_S = 0.5


def make_file(
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
    exports = ensure_writable(studio.options.workspace / EXPORTS)
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
