"""The codec for many lines: finished ones in rounds, streamed ones in chunks, in worker threads."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import numpy as np
import torch

from studio.audio.clip import Samples
from studio.backends.batching.codec_worker import CodecFrames, CodecWorker
from studio.backends.batching.cuda_graphs import synchronize
from studio.backends.batching.prefill import EmbeddingCache
from studio.backends.batching.runner_contract import BUCKETS
from studio.backends.batching.slots import to_device
from studio.backends.device import turn
from studio.backends.qwen3.checkpoint import FRAMES_PER_S
from studio.backends.qwen3.codec import CodecDecoder
from studio.backends.qwen3.codec_batch import CodecGraphBuffers, CodecRound, RowBlock, pack_rounds
from studio.backends.qwen3.packed_codec import choose_waves
from studio.backends.qwen3.qwen3_memory import (
    CODEC_FRAMES,
    CODEC_ROW_FRAMES,
    MAX_CACHED_SAMPLES,
    MAX_STREAMED_LINES,
    STREAM_CHUNK_FRAMES,
)


@dataclass(eq=False)
class StreamedLine:
    """A line decoded while it is generated; its state between two chunks: float32 [numbers]."""

    state: torch.Tensor


class StreamedLinesDecoder:
    """Decodes streamed lines in rows of their own, so that they don't wait; for one thread."""

    def __init__(self, step: CodecDecoder) -> None:
        self._rows = CodecGraphBuffers(
            step, MAX_STREAMED_LINES, max(STREAM_CHUNK_FRAMES), high_priority=True
        )

    @property
    def captured(self) -> int:
        return self._rows.captured

    def prepare(self) -> None:
        """Capture all graphs, the largest first."""
        for rows in range(MAX_STREAMED_LINES, 0, -1):
            for frames in sorted(STREAM_CHUNK_FRAMES, reverse=True):
                self._rows.prepare(RowBlock(0, rows, frames))

    def decode(self, chunks: Sequence[tuple[StreamedLine, torch.Tensor]]) -> list[Samples]:
        """Decode the next frames of lines, equal numbers of several lines in one go.

        Args:
            chunks: Different lines, and their frames on any device: int64 [frames, groups].

        Returns:
            Of each line, float32 [samples].

        Raises:
            torch.OutOfMemoryError: There is too little. The lines are as they were.
        """
        made: list[list[Samples]] = [[np.zeros(0, np.float32)] for _ in chunks]
        states = [stream.state for stream, _ in chunks]
        with torch.inference_mode():
            for lines, start, frames in _pack_chunks([len(codes) for _, codes in chunks]):
                for row, line in enumerate(lines):
                    self._rows.state[row] = states[line]
                    codes = chunks[line][1][start[line] : start[line] + frames]
                    self._rows.codes[row, :frames] = codes
                samples = self._rows.run(RowBlock(0, len(lines), frames))
                for row, line in enumerate(lines):
                    made[line].append(samples[row].copy())
                    states[line] = self._rows.state[row].clone()
        for (stream, _), state in zip(chunks, states, strict=True):
            stream.state = state
        return [np.concatenate(pieces) for pieces in made]

    def close(self) -> None:
        """Give up the graphs and the memory they hold."""
        self._rows.close()


def _pack_chunks(lengths: Sequence[int]) -> Iterator[tuple[list[int], list[int], int]]:
    """Cut chunks of any lengths into pieces that there are graphs for, the longest first.

    Yields:
        Lines that have a piece together, where each line's begins, and the frames of each.
    """
    starts = [0] * len(lengths)
    for size in sorted(STREAM_CHUNK_FRAMES, reverse=True):
        while left := [n for n, length in enumerate(lengths) if length - starts[n] >= size]:
            lines = left[:MAX_STREAMED_LINES]
            yield lines, list(starts), size
            for line in lines:
                starts[line] += size


# Lines to audio, as if each were decoded whole and alone.
#
# Finished lines go through rows together, some frames of each at a time; streamed lines have rows
# of their own. A row, 5.2 MB at full size, is all the state that a line needs to go on, so nothing
# is decoded twice whatever the chunks; what a voice's sample leaves there is computed once.


@dataclass(frozen=True, slots=True, eq=False)
class CodecInput:
    """One finished line.

    Attributes:
        codes: int64 [frames, groups]; may be empty.
        sample: The codes of the sample before it, which are read and not decoded; on any
            device.
    """

    codes: torch.Tensor
    sample: torch.Tensor | None = None


class BatchedCodec:
    """Decodes lines; keeps nothing of them but what their voices' samples come to.

    One thread may decode finished lines while another decodes chunks.

    Attributes:
        rows: Finished lines that are decoded at once.
    """

    def __init__(
        self, decoder: Any, *, convolved_at_once: int | None = None, graphs: bool | None = None
    ) -> None:
        """Allocate the rows; capture nothing yet.

        The package's decoder is only read. None for `graphs`, with which rounds have few shapes, is
        what suits the device.
        """
        with torch.inference_mode():
            self._step = CodecDecoder(decoder, waves=choose_waves(decoder.device))
        device = self._step.device.type
        self.rows = (convolved_at_once or CODEC_FRAMES[device][1]) // CODEC_ROW_FRAMES or 1
        shapes = BUCKETS if (device == "cuda" if graphs is None else graphs) else range(self.rows)
        self._sizes = [*(size for size in shapes if 0 < size < self.rows), self.rows]
        self._buffers = CodecGraphBuffers(self._step, self.rows, CODEC_ROW_FRAMES)
        self._streamed = StreamedLinesDecoder(self._step)
        self._samples = EmbeddingCache(MAX_CACHED_SAMPLES)

    @property
    def frames_at_once(self) -> int:
        """Frames of finished lines that are decoded at once."""
        return self.rows * CODEC_ROW_FRAMES

    @property
    def captured(self) -> int:
        return self._buffers.captured + self._streamed.captured

    @property
    def computed(self) -> int:
        """Samples that the codec has read so far; others were cached."""
        return self._samples.computed

    def prepare(self) -> None:
        """Capture all graphs, the largest first, whose memory is enough for the others."""
        for size in reversed(self._sizes):
            self._buffers.prepare(RowBlock(0, size, CODEC_ROW_FRAMES))
        self._streamed.prepare()

    def close(self) -> None:
        """Give up the graphs and the memory they hold."""
        self._buffers.close()
        self._streamed.close()

    def decode(self, lines: Sequence[CodecInput]) -> list[Samples]:
        """Decode finished lines of any lengths.

        Returns:
            In the order given; float32 [frames * samples per frame], within [-1, 1].
        """
        made = dict(self.decode_each(lines))
        return [made[number] for number in range(len(lines))]

    def decode_each(
        self, lines: Sequence[CodecInput], *, most_rows: int | None = None
    ) -> Iterator[tuple[int, Samples]]:
        """Decode finished lines in rounds of at most `most_rows`; give each out when it is done.

        Yields:
            A line's number and its samples, as from `decode`.
        """
        spoken = [number for number, line in enumerate(lines) if len(line.codes)]
        yield from ((n, np.zeros(0, np.float32)) for n in range(len(lines)) if n not in spoken)
        if not spoken:
            return
        batch = _CodeBatch(self._step, [lines[number] for number in spoken])
        pieces: list[list[Samples]] = [[] for _ in spoken]
        sizes = [size for size in self._sizes if size <= (most_rows or size)] or self._sizes[:1]
        for one in pack_rounds(batch.lengths, sizes, CODEC_ROW_FRAMES):
            for piece, samples in zip(one.pieces, self._round(batch, one), strict=True):
                pieces[piece.line].append(samples)
                if piece.last:
                    yield spoken[piece.line], np.concatenate(pieces[piece.line])
                    pieces[piece.line] = []

    def stream(self, sample: torch.Tensor | None = None) -> StreamedLine:
        """Begin a line that is streamed, after a sample's codes."""
        with torch.inference_mode():
            begun = self._state_after_sample(sample)
            return StreamedLine(self._step.new_state(1)[0] if begun is None else begun.clone())

    def decode_chunks(self, chunks: Sequence[tuple[StreamedLine, torch.Tensor]]) -> list[Samples]:
        """Decode the next frames of streamed lines; see `StreamedLinesDecoder.decode`."""
        return self._streamed.decode(chunks)

    def _round(self, batch: _CodeBatch, one: CodecRound) -> Iterator[Samples]:
        """The samples of each piece, without the padding's."""
        places, per_frame = self._buffers, self._step.samples_per_frame
        held = []  # until the copies have been made, whatever else is kept meanwhile
        with torch.inference_mode():
            for row, piece in enumerate(one.pieces):
                if piece.start == 0:
                    held.append(begun := self._state_after_sample(batch.lines[piece.line].sample))
                    places.state[row] = 0 if begun is None else begun
            rows = len(one.pieces)
            places.codes[:rows, : one.frames] = batch.frames(one)
        made = places.run(RowBlock(0, one.rows, one.frames))
        for row, piece in enumerate(one.pieces):
            yield made[row, : (piece.end - piece.start) * per_frame].copy()

    def _state_after_sample(self, sample: torch.Tensor | None) -> torch.Tensor | None:
        """The state after a sample, computed once: float32 [numbers]; None without a sample."""
        if sample is None or not len(sample):
            return None

        def read_sample() -> torch.Tensor:
            state = self._step.new_state(1)
            self._step.advance(sample[None].to(self._step.device), state)
            if state.is_cuda:  # who decodes chunks has another stream than who decodes lines
                torch.cuda.current_stream().synchronize()
            return state[0]

        return self._samples.get_or_compute(id(sample), sample, read_sample)


class _CodeBatch:
    """Finished lines that are decoded together; their codes lie end to end on the device."""

    def __init__(self, step: CodecDecoder, lines: Sequence[CodecInput]) -> None:
        self.lines = lines
        self.lengths = [len(line.codes) for line in lines]
        padding = torch.zeros((CODEC_ROW_FRAMES, step.groups), dtype=torch.int64)
        parts = [*(line.codes for line in lines), padding]
        self._codes = torch.cat([part.to(step.device) for part in parts])
        self._starts = [sum(self.lengths[:number]) for number in range(len(lines))]
        self._within = torch.arange(CODEC_ROW_FRAMES, device=step.device)

    def frames(self, one: CodecRound) -> torch.Tensor:
        """Codes of a round's pieces: int64 [pieces, frames, groups].

        Behind a line's end they are the next line's, which change nothing that is kept.
        """
        starts = torch.tensor([self._starts[piece.line] + piece.start for piece in one.pieces])
        return self._codes[to_device(starts, self._codes.device)[:, None] + self._within]


MAX_BATCH_FRAMES = 4_096
"""Frames of finished lines that are packed into rounds together."""

MAX_ROWS_WITH_LISTENER = 16
"""Lines of a round while somebody listens to another: on a card a longer round slows its chunk, and
the frames that the chunk is made of."""

log = logging.getLogger(__name__)


class Qwen3CodecWorker(CodecWorker):
    """Decodes lines; what somebody listens to chunk by chunk, of two such lines in one go."""

    max_streamed = MAX_STREAMED_LINES
    frames_per_s = FRAMES_PER_S

    def __init__(self, decoder: Any, *, title: str, convolved_at_once: int | None = None) -> None:
        self._codec = _prepare_codec(decoder, convolved_at_once)
        # Held by their lines alone, and gone with them however they end.
        self._streams: WeakSet[StreamedLine] = WeakSet()
        super().__init__(decoder.device, title=title)

    def _batch(self, finished: deque[CodecFrames]) -> list[CodecFrames]:
        batch = [finished.popleft()]
        frames = len(batch[0].codes)
        most = MAX_ROWS_WITH_LISTENER * CODEC_ROW_FRAMES if self._streams else MAX_BATCH_FRAMES
        while finished and frames + len(finished[0].codes) <= most:
            batch.append(finished.popleft())
            frames += len(batch[-1].codes)
        return batch

    def _decode(self, batch: Sequence[CodecFrames]) -> None:
        with turn(self.device):
            super()._decode(batch)

    def _decode_chunks(self, batch: Sequence[CodecFrames]) -> None:
        """Decode the next frames of streamed lines.

        A line's first ones may be none: then the codec reads its sample while its prompt is read.
        """
        lines = [frames.line for frames in batch]
        for line in lines:
            if line.codec_state is None:
                line.codec_state = self._codec.stream(line.task.voice.ref_codes)
                self._streams.add(line.codec_state)
        made = self._codec.decode_chunks([(one.line.codec_state, one.codes) for one in batch])
        for frames, samples in zip(batch, made, strict=True):
            frames.line.deliver(samples)
            if frames.last:
                frames.line.codec_state = None
                frames.line.end(frames.error)

    def _decode_finished(self, batch: list[CodecFrames]) -> None:
        """Decode finished lines together."""
        coded = [CodecInput(frames.codes, frames.line.task.voice.ref_codes) for frames in batch]
        rows = MAX_ROWS_WITH_LISTENER if self._streams else None
        for number, samples in self._codec.decode_each(coded, most_rows=rows):
            batch[number].line.deliver(samples)
            batch[number].line.end(batch[number].error)

    def _release(self) -> None:
        self._codec.close()


def _prepare_codec(decoder: Any, at_once: int | None) -> BatchedCodec:
    """A codec that has captured its graphs, for fewer frames at once where it must be."""
    while True:
        codec = BatchedCodec(decoder, convolved_at_once=at_once)
        try:
            codec.prepare()
        except torch.OutOfMemoryError:
            codec.close()
            if codec.rows == 1:
                raise
            at_once = codec.frames_at_once // 2
            log.warning("the codec has no memory for %d frames at once", 2 * at_once)
        else:
            synchronize(decoder.device)  # the threads have streams of their own
            return codec
