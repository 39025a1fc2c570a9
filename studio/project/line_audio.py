"""The audio of a line: live while it is generated, from its take, or as silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from studio.audio.clip import to_pcm16
from studio.audio.timeline import (
    SilencePart,
    TakePart,
    Timeline,
    lay_out,
    lay_out_part,
    stream_timeline,
)
from studio.engine.job import SegmentAudio
from studio.errors import Cancelled, FileDamaged, NotFound, SpeechFailed, StorageFailed
from studio.project.document import LineKind
from studio.project.line_states import LineState
from studio.project.render_queue import LineJob
from studio.project.session import ProjectSession

CUT_MARKER = b"\0"
"""Half a sample at the end of the stream of a line whose generation failed."""


@dataclass(frozen=True, slots=True)
class LineAudio:
    """The audio of a line.

    Attributes:
        take_id: The take that it is or becomes; None for silence.
        chunks: s16le mono at the studio's rate; half a sample at the end marks an incomplete line.
    """

    take_id: str | None
    chunks: AsyncIterator[bytes]


async def open_line_audio(session: ProjectSession, line_id: str) -> LineAudio:
    """Wait until a line can be played.

    Raises:
        NotFound: The line doesn't exist, or has no audio and isn't queued.
        SpeechFailed: It couldn't be spoken.
        Cancelled: It was taken out of the queue, or the project was closed.
        StorageFailed: Its take can't be read.
    """
    waited = False
    while True:
        seq = session.events.seq
        with session.lock:
            view, line_job = session.get_view(line_id), session.get_line_job(line_id)
        if view is None:
            raise NotFound("This line isn't there any more.")
        if view.line.kind is LineKind.SILENCE:
            silence = lay_out_part(SilencePart(0, view.line.duration_s or 0.0))
            return LineAudio(None, _stream_pcm(silence))
        if line_job is not None:
            parts = [SegmentAudio(record) for record in line_job.job.records]
            return LineAudio(line_job.spec.take_id, _stream_live(session, line_job, parts))
        if view.state is not LineState.QUEUED:
            break
        if session.events.closed:
            raise Cancelled("The project was closed before this line was spoken.")
        waited = True
        await session.events.wait_for_change(seq)
    if view.state is LineState.FAILED:
        raise SpeechFailed(view.message or "This line could not be spoken.")
    if view.take is not None:
        # A damaged take is played once more, while the page learns that it is damaged.
        with suppress(FileDamaged):
            await asyncio.to_thread(session.check_audio, view.take)
        part = TakePart(0, session.take_store.get_audio_path(view.take))
        timeline = await asyncio.to_thread(lay_out_part, part)
        return LineAudio(view.take.take_id, _stream_pcm(timeline))
    if waited:
        raise Cancelled("This line was cancelled before it was spoken.")
    raise NotFound("Nothing was made of this line yet. Render it first.")


def compute_peaks(path: Path, bins: int) -> list[int]:
    """The lowest and highest sample of each of `bins` parts of a take, -128 to 127, alternating."""
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
    """Extend the peaks of the stretches that a block overlaps.

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
    # Only the first stretch can have started in an earlier block.
    goes_on = starts[begun] < 0
    lowest[begun:ended] = [min(lows[0], lowest[begun]) if goes_on else lows[0], *lows[1:]]
    highest[begun:ended] = [max(highs[0], highest[begun]) if goes_on else highs[0], *highs[1:]]


async def _stream_live(
    session: ProjectSession, line_job: LineJob, parts: list[SegmentAudio]
) -> AsyncIterator[bytes]:
    """Stream segments as they are generated, or the take, once they have been moved into it."""
    sent = 0
    try:
        for part in parts:
            async for chunk in part.stream():
                pcm = to_pcm16(chunk).tobytes()
                sent += len(pcm)
                yield pcm
            if not part.is_whole:
                yield CUT_MARKER
                return
    except StorageFailed:
        # A take's audio is in place before the segments are deleted and the take is listed.
        # A dropped line has no take, and ends here.
        path = session.take_store.build_path(line_job.line_id, line_job.spec.take_id)
        if not path.exists():
            yield CUT_MARKER
            return
        take = await asyncio.to_thread(lay_out_part, TakePart(0, path))
        async for pcm in _stream_pcm(take, skip_bytes=sent):
            yield pcm


async def _stream_pcm(timeline: Timeline, skip_bytes: int = 0) -> AsyncIterator[bytes]:
    async for block in stream_timeline(timeline):
        pcm = to_pcm16(block).tobytes()
        if len(pcm) > skip_bytes:
            yield pcm[skip_bytes:]
        skip_bytes = max(0, skip_bytes - len(pcm))
