"""A line as sound: live while it is made, from its take, or as silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.audio.pcm import to_pcm16
from studio.audio.timeline import TakePart, lay_out
from studio.engine.feed import Feed
from studio.engine.job import SegmentRecord, SegmentState
from studio.errors import Cancelled, NotFound, SpeechFailed, StorageFailed
from studio.project.document import LineKind
from studio.project.lines import LineState
from studio.project.making import Making
from studio.project.session import Session

_SILENCE_BLOCK_BYTES = 2 * STUDIO_RATE_HZ


@dataclass(frozen=True, slots=True)
class _Part:
    """One segment of a line as it was when somebody began to listen."""

    live: Feed[Samples]
    path: Path | None
    silent_samples: int


async def line_sound(session: Session, line_id: str) -> AsyncIterator[bytes]:
    """Wait until a line can be heard; then its sound as s16le mono at the studio's rate.

    Raises:
        NotFound: The line isn't there, or nobody made it and nobody is about to.
        SpeechFailed: It could not be spoken.
        Cancelled: It was wanted, and then wasn't any more.
    """
    waited = False
    while True:
        seq = session.news.seq
        with session.lock:
            view, making = session.view(line_id), session.making(line_id)
        if view is None:
            raise NotFound("This line isn't there any more.")
        if view.line.kind is LineKind.SILENCE:
            return _silence(view.samples or 0)
        if making is not None:
            return _live(session, making, _parts(making))
        if view.state is not LineState.QUEUED:
            break
        waited = True
        await session.news.changed(seq)
    if view.state is LineState.FAILED:
        raise SpeechFailed(view.message or "This line could not be spoken.")
    if view.take is not None:
        return _take(session.shelf.audio(view.take))
    if waited:
        raise Cancelled("This line was cancelled before it was spoken.")
    raise NotFound("Nothing was made of this line yet. Render it first.")


def peaks(path: Path, bins: int) -> list[int]:
    """The lowest and highest sample of each of `bins` stretches of a take, -128 to 127, in turn.

    Raises:
        StorageFailed: The take can't be read.
    """
    blocks = [to_pcm16(block) for block in lay_out([TakePart(0, path)]).blocks()]
    samples = np.concatenate(blocks) if blocks else np.zeros(1, dtype=np.int16)
    starts = np.linspace(0, len(samples), min(bins, len(samples)), endpoint=False).astype(np.intp)
    lowest, highest = np.minimum.reduceat(samples, starts), np.maximum.reduceat(samples, starts)
    pairs = np.stack([lowest, highest], axis=1).ravel() >> 8
    return [int(peak) for peak in pairs]


def _parts(making: Making) -> list[_Part]:
    return [_part(record) for record in making.job.records]


def _part(record: SegmentRecord) -> _Part:
    # The feed before the path: once the feed is replaced, the path is there.
    live, path = record.live, record.path
    silent = record.state is SegmentState.SAVED and path is None
    return _Part(live, path, (record.samples or 0) if silent else 0)


async def _live(session: Session, making: Making, parts: list[_Part]) -> AsyncIterator[bytes]:
    """Segments as they come; where a finished one was moved away, the take they became."""
    sent = 0
    try:
        for part in parts:
            async for chunk in _sound_of(part):
                sent += len(chunk)
                yield chunk
    except StorageFailed:
        # Its audio has its place before the segments go, and before the take is known. A line
        # that was dropped has none, and ends here.
        path = session.shelf.place(making.line_id, making.take_id)
        if path.exists():
            async for chunk in _take(path, skip_bytes=sent):
                yield chunk


async def _sound_of(part: _Part) -> AsyncIterator[bytes]:
    if part.path is not None:
        yield await asyncio.to_thread(_read, part.path)
        return
    async for silent in _silence(part.silent_samples):
        yield silent
    async for chunk in part.live.afollow():
        yield to_pcm16(chunk).tobytes()


async def _take(path: Path, skip_bytes: int = 0) -> AsyncIterator[bytes]:
    yield (await asyncio.to_thread(_read, path))[skip_bytes:]


async def _silence(samples: int) -> AsyncIterator[bytes]:
    left = 2 * samples
    while left:
        block = min(left, _SILENCE_BLOCK_BYTES)
        left -= block
        yield bytes(block)


def _read(path: Path) -> bytes:
    timeline = lay_out([TakePart(0, path)])
    if timeline.skipped:
        raise StorageFailed(timeline.skipped[0].message)
    return b"".join(to_pcm16(block).tobytes() for block in timeline.blocks())
