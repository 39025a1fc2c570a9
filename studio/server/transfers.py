"""Files in request bodies and in responses: uploads, exports, and how loud an export is."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

import anyio.from_thread
from fastapi import Request, UploadFile
from fastapi.responses import FileResponse, Response
from pydantic import Field
from starlette.background import BackgroundTask
from starlette.types import Receive, Scope, Send

from studio.audio.clip import Clip
from studio.audio.decode import DEFAULT_LIMITS
from studio.audio.encode import encode
from studio.audio.export import OnProgress
from studio.audio.formats import AudioFormat
from studio.audio.mastering import MAX_LUFS, MIN_LUFS, Mastering, parse_target
from studio.errors import Cancelled, NotFound
from studio.server.policies import UPLOAD_BYTES
from studio.services.studio import Studio
from studio.storage.workspace import EXPORTS, ensure_writable

_GONE_CHECK_S = 0.5
_GONE = "Whoever asked for it has left."

T = TypeVar("T")

Lufs = Annotated[float, Field(ge=MIN_LUFS, le=MAX_LUFS, allow_inf_nan=False, strict=True)]
LoudnessChoice = Literal["rendered", "podcast", "audiobook", "broadcast"] | Lufs
"""The loudness of an export in a request body: a target by its name, or LUFS."""


def mastering_of(loudness: str | float, *, even_voices: bool) -> Mastering:
    """The mastering that a request asks for."""
    return Mastering(parse_target(str(loudness)), even_voices)


@asynccontextmanager
async def receive(
    request: Request, studio: Studio, *, max_bytes: int = DEFAULT_LIMITS.max_bytes
) -> AsyncIterator[Path]:
    """Write a request's body to a file, which is deleted when the block ends.

    Memory holds one chunk of it, and reading stops at the limit.
    """
    with studio.voices.uploads.open_writer(max_bytes=max_bytes) as arriving:
        async for chunk in request.stream():
            await asyncio.to_thread(arriving.write, chunk)
        yield arriving.finish()


def store_upload(studio: Studio, file: UploadFile, name: str) -> str:
    """Store a recording of a form; returns its id."""
    uploads = studio.voices.uploads
    with uploads.open_writer(max_bytes=UPLOAD_BYTES) as arriving:
        while chunk := file.file.read(1 << 20):
            arriving.write(chunk)
        return uploads.add(arriving.finish(), name).upload_id


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Await work, and cancel it when the client disconnects.

    Raises:
        Cancelled: The client has disconnected.
    """
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=_GONE_CHECK_S)
            if not task.done() and await request.is_disconnected():
                raise Cancelled(_GONE)
        return task.result()
    finally:
        task.cancel()


class StoredFile(FileResponse):
    """A file as its route found it, sent whole even if another request removes it meanwhile.

    Raises:
        NotFound: It has been removed.
    """

    def __init__(self, path: Path, **options: Any) -> None:
        try:
            self._opened = path.open("rb")
        except FileNotFoundError as error:
            raise NotFound("This file has been removed.") from error
        descriptor = self._opened.fileno()
        super().__init__(path, stat_result=os.fstat(descriptor), **options)
        if os.name == "posix":  # elsewhere nobody can remove what is open
            self.path = f"/dev/fd/{descriptor}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, and close it."""
        with self._opened:
            await super().__call__(scope, receive, send)


def wav_answer(clip: Clip) -> Response:
    """A clip as a WAV body."""
    data = encode(clip, AudioFormat.WAV)
    return Response(data, media_type="audio/wav", headers={"Cache-Control": "no-store"})


def make_file(
    studio: Studio, file_name: str, write: Callable[[Path], object], **options: Any
) -> FileResponse:
    """Respond with a file that `write` makes, and delete it afterwards.

    The file is in the workspace, because the system's temporary folder may be in memory. If the
    process ends before the response does, the next start deletes the file. `write` gets a path that
    doesn't exist yet, whose suffix may choose a format.
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
    """Content-Disposition of a download; percent-encoded, so that any name is safe in it."""
    return f"attachment; filename*=utf-8''{quote(file_name, safe='')}"


def unless_left(request: Request) -> OnProgress:
    """A progress callback that cancels an export once its client has disconnected.

    For handlers that run in a thread, not on the event loop.
    """
    looked_s = time.monotonic()

    def look(_share: float) -> None:
        nonlocal looked_s
        if time.monotonic() - looked_s < _GONE_CHECK_S:
            return
        looked_s = time.monotonic()
        if anyio.from_thread.run(request.is_disconnected):
            raise Cancelled(_GONE)

    return look
