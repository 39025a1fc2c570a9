"""Recordings that come in as bodies, and sounds that go out; work that ends when nobody waits."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import Response

from studio.audio.clip import Clip
from studio.audio.decode import DEFAULT_LIMITS
from studio.audio.encode import AudioFormat, encode_blocks
from studio.errors import Cancelled
from studio.service import Studio

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
