"""The audio of a line: live while it is generated, from its take, or as silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from studio.audio.clip import STUDIO_RATE_HZ, Samples, to_pcm16
from studio.audio.timeline import TakePart, Timeline, lay_out
from studio.engine.feed import Feed
from studio.engine.job import SegmentRecord, SegmentState
from studio.errors import Cancelled, NotFound, SpeechFailed, StorageFailed
from studio.project.document import LineKind
from studio.project.line_job import LineJob
from studio.project.line_states import LineState
from studio.project.session import ProjectSession

_SILENCE_BLOCK_BYTES = 2 * STUDIO_RATE_HZ

CUT_MARKER = b"\0"
"""Half a sample, with which the sound ends of a line that was given up before it was whole."""


@dataclass(frozen=True, slots=True)
class LineAudio:
    """A line as it can be heard.

    Attributes:
        take_id: The take it is, or becomes when it is whole; None for silence.
        chunks: s16le mono at the studio's rate. What ends in half a sample isn't the whole line.
    """

    take_id: str | None
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class _SegmentAudio:
    """One segment of a line as it was when somebody began to listen."""

    record: SegmentRecord
    live: Feed[Samples]
    path: Path | None
    silent_samples: int

    @property
    def is_whole(self) -> bool:
        """Whether all of it was in the feed; asked once that has ended."""
        made = self.record.state in (SegmentState.GENERATED, SegmentState.SAVED)
        return made and not self.live.withdrawn


async def open_line_audio(session: ProjectSession, line_id: str) -> LineAudio:
    """Wait until a line can be heard.

    Raises:
        NotFound: The line isn't there, or nobody made it and nobody is about to.
        SpeechFailed: It could not be spoken.
        Cancelled: It was wanted, and then wasn't any more, or the project was closed.
        StorageFailed: Its take can't be read.
    """
    waited = False
    while True:
        seq = session.news.seq
        with session.lock:
            view, making = session.view(line_id), session.making(line_id)
        if view is None:
            raise NotFound("This line isn't there any more.")
        if view.line.kind is LineKind.SILENCE:
            return LineAudio(None, _stream_silence(view.samples or 0))
        if making is not None:
            return LineAudio(making.take_id, _stream_live(session, making, _list_segments(making)))
        if view.state is not LineState.QUEUED:
            break
        if session.news.closed:
            raise Cancelled("The project was closed before this line was spoken.")
        waited = True
        await session.news.changed(seq)
    if view.state is LineState.FAILED:
        raise SpeechFailed(view.message or "This line could not be spoken.")
    if view.take is not None:
        laid = await asyncio.to_thread(_open_take, session.shelf.audio(view.take))
        return LineAudio(view.take.take_id, _stream_blocks(laid))
    if waited:
        raise Cancelled("This line was cancelled before it was spoken.")
    raise NotFound("Nothing was made of this line yet. Render it first.")


def compute_peaks(path: Path, bins: int) -> list[int]:
    """The lowest and highest sample of each of `bins` stretches of a take, -128 to 127, in turn.

    Raises:
        StorageFailed: The take can't be read.
    """
    timeline = lay_out([TakePart(0, path)])
    n_bins = max(1, min(bins, timeline.n_samples))
    starts = np.linspace(0, timeline.n_samples, n_bins, endpoint=False).astype(np.intp)
    lowest = np.zeros(n_bins, dtype=np.int16)
    highest = lowest.copy()
    at = 0
    for block in timeline.blocks():
        _widen_peaks(to_pcm16(block), starts - at, lowest, highest)
        at += len(block)
    pairs = np.stack([lowest, highest], axis=1).ravel() >> 8
    return [int(peak) for peak in pairs]


def _widen_peaks(
    samples: npt.NDArray[np.int16],
    starts: npt.NDArray[np.intp],
    lowest: npt.NDArray[np.int16],
    highest: npt.NDArray[np.int16],
) -> None:
    """Widen the stretches that a block lies in.

    Args:
        samples: The block.
        starts: First sample of each stretch, counted from the block's first.
        lowest: Of each stretch; written.
        highest: Of each stretch; written.
    """
    begun = np.searchsorted(starts, 0, side="right") - 1
    ended = np.searchsorted(starts, len(samples), side="left")
    cuts = np.maximum(starts[begun:ended], 0)
    lows, highs = np.minimum.reduceat(samples, cuts), np.maximum.reduceat(samples, cuts)
    # Only the first stretch can have begun in an earlier block.
    goes_on = starts[begun] < 0
    lowest[begun:ended] = [min(lows[0], lowest[begun]) if goes_on else lows[0], *lows[1:]]
    highest[begun:ended] = [max(highs[0], highest[begun]) if goes_on else highs[0], *highs[1:]]


def _list_segments(making: LineJob) -> list[_SegmentAudio]:
    return [_open_segment(record) for record in making.job.records]


def _open_segment(record: SegmentRecord) -> _SegmentAudio:
    # The feed before the path: once the feed is replaced, the path is there.
    live, path = record.live, record.path
    silent = record.state is SegmentState.SAVED and path is None
    return _SegmentAudio(record, live, path, (record.samples or 0) if silent else 0)


async def _stream_live(
    session: ProjectSession, making: LineJob, parts: list[_SegmentAudio]
) -> AsyncIterator[bytes]:
    """Segments as they come; where a finished one was moved away, the take they became."""
    sent = 0
    try:
        for part in parts:
            async for chunk in _stream_segment(part):
                sent += len(chunk)
                yield chunk
            if not part.is_whole:
                yield CUT_MARKER
                return
    except StorageFailed:
        # Its audio has its place before the segments go, and before the take is known. A line
        # that was dropped has none, and ends here.
        path = session.shelf.place(making.line_id, making.take_id)
        if not path.exists():
            yield CUT_MARKER
            return
        async for chunk in _stream_blocks(
            await asyncio.to_thread(_open_take, path), skip_bytes=sent
        ):
            yield chunk


async def _stream_segment(part: _SegmentAudio) -> AsyncIterator[bytes]:
    if part.path is not None:
        async for block in _stream_blocks(await asyncio.to_thread(_open_take, part.path)):
            yield block
        return
    async for silent in _stream_silence(part.silent_samples):
        yield silent
    async for chunk in part.live.afollow():
        yield to_pcm16(chunk).tobytes()


async def _stream_blocks(timeline: Timeline, skip_bytes: int = 0) -> AsyncIterator[bytes]:
    """A take a few seconds at a time, however long it is."""
    blocks = timeline.blocks()
    while (block := await asyncio.to_thread(next, blocks, None)) is not None:
        pcm = to_pcm16(block).tobytes()
        if len(pcm) > skip_bytes:
            yield pcm[skip_bytes:]
        skip_bytes = max(0, skip_bytes - len(pcm))


async def _stream_silence(samples: int) -> AsyncIterator[bytes]:
    left = 2 * samples
    while left:
        block = min(left, _SILENCE_BLOCK_BYTES)
        left -= block
        yield bytes(block)


def _open_take(path: Path) -> Timeline:
    timeline = lay_out([TakePart(0, path)])
    if timeline.skipped:
        raise StorageFailed(timeline.skipped[0].message)
    return timeline
