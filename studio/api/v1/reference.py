"""A recording that comes inside a request, as a data URL."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import re
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from studio.audio.clip import Clip
from studio.audio.decode import DecodeLimits
from studio.audio.guarded import decode_guarded
from studio.errors import BadInput, EngineBusy, SampleRejected
from studio.speakers.sample import MAX_SAMPLE_S, MIN_SAMPLE_S
from studio.speakers.speaker import Sample

_LIMITS = DecodeLimits(max_bytes=12_000_000, max_duration_s=120.0)
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*;base64,", re.ASCII)
_NAME = "ref_audio"
_AT_ONCE = 2
_MOST_WAITING = 8

T = TypeVar("T")


class References:
    """Work on recordings in requests, in threads of its own: one may take a minute.

    On the server's loop only.
    """

    def __init__(self) -> None:
        """Start with nothing to do."""
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="reference")
        self._begun = 0

    async def run(self, work: Callable[[], T]) -> T:
        """Do it in its turn.

        Raises:
            EngineBusy: Too many are waiting.
        """
        if self._begun >= _AT_ONCE + _MOST_WAITING:
            raise EngineBusy(
                "Too many recordings are being read; try again in 10 s.", retry_after_s=10
            )
        self._begun += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        # Not when the caller leaves: the thread goes on.
        future.add_done_callback(self._end)
        return await asyncio.shield(future)

    def _end(self, future: asyncio.Future[T]) -> None:
        self._begun -= 1
        if not future.cancelled():
            future.exception()  # seen: nobody may be waiting for it any more


def read_reference(data_url: str, transcript: str | None) -> Sample:
    """Decode a recording that a request holds.

    Args:
        data_url: `data:audio/wav;base64,…`; addresses of other places are never fetched.
        transcript: What it says, when known.

    Raises:
        BadInput: It is no base64 data URL.
        AudioRejected: It can't be decoded, or is larger than the limits.
        SampleRejected: It is too short or silent.
    """
    head = _DATA_URL.match(data_url)
    if head is None:
        raise BadInput("ref_audio must be a data URL: data:audio/wav;base64,… Nothing is fetched.")
    try:
        data = base64.b64decode(data_url[head.end() :], validate=True)
    except binascii.Error as error:
        raise BadInput(f"ref_audio holds no valid base64 ({error}).") from error
    with tempfile.TemporaryDirectory(prefix="tableread-reference-") as folder:
        path = Path(folder) / "reference"
        path.write_bytes(data)
        _, clip = decode_guarded(path, limits=_LIMITS, display_name=_NAME)
    return Sample(_checked(clip), hashlib.sha256(data).hexdigest(), transcript or None)


def _checked(clip: Clip) -> Clip:
    if clip.duration_s < MIN_SAMPLE_S:
        raise SampleRejected(f"ref_audio lasts {clip.duration_s:.1f} s; a voice needs 1 s or more.")
    if not clip.samples.any():
        raise SampleRejected("ref_audio is silent.")
    return Clip(clip.samples[: round(MAX_SAMPLE_S * clip.rate_hz)], clip.rate_hz)
