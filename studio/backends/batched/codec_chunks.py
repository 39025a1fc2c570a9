"""Lines that are decoded while they are made, a chunk at a time, several of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from studio.audio.clip import Samples
from studio.backends.batched.codec_room import HEARD_TOGETHER, STREAM_FRAMES
from studio.backends.batched.codec_rows import Block, CodecRows
from studio.backends.qwen3.codec_step import CodecStep


class LineStream:
    """A line that is decoded while it is made.

    Attributes:
        state: Its own between two chunks: float32 [numbers].
    """

    def __init__(self, state: torch.Tensor) -> None:
        """Begin with what its sample left."""
        self.state = state


class HeardLines:
    """Rows of their own for such lines, so that they wait for no others; for one thread."""

    def __init__(self, step: CodecStep) -> None:
        """Allocate the rows.

        Raises:
            torch.OutOfMemoryError: There is no room.
        """
        self._rows = CodecRows(step, HEARD_TOGETHER, max(STREAM_FRAMES), urgent=True)

    @property
    def captured(self) -> int:
        """Shapes that are replayed."""
        return self._rows.captured

    def prepare(self) -> None:
        """Capture all graphs, the largest first.

        Raises:
            torch.OutOfMemoryError: There is too little for the largest.
        """
        for rows in range(HEARD_TOGETHER, 0, -1):
            for frames in sorted(STREAM_FRAMES, reverse=True):
                self._rows.prepare(Block(0, rows, frames))

    def decode(self, chunks: Sequence[tuple[LineStream, torch.Tensor]]) -> list[Samples]:
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
            for lines, start, frames in _shared([len(codes) for _, codes in chunks]):
                for row, line in enumerate(lines):
                    self._rows.state[row] = states[line]
                    codes = chunks[line][1][start[line] : start[line] + frames]
                    self._rows.codes[row, :frames] = codes
                samples = self._rows.run(Block(0, len(lines), frames))
                for row, line in enumerate(lines):
                    made[line].append(samples[row].copy())
                    states[line] = self._rows.state[row].clone()
        for (stream, _), state in zip(chunks, states, strict=True):
            stream.state = state
        return [np.concatenate(pieces) for pieces in made]

    def close(self) -> None:
        """Give up the graphs and the memory they hold."""
        self._rows.close()


def _shared(lengths: Sequence[int]) -> Iterator[tuple[list[int], list[int], int]]:
    """Cut chunks of any lengths into pieces that there are graphs for, the longest first.

    Yields:
        Lines that have a piece together, where each line's begins, and the frames of each.
    """
    starts = [0] * len(lengths)
    for size in sorted(STREAM_FRAMES, reverse=True):
        while left := [n for n, length in enumerate(lengths) if length - starts[n] >= size]:
            lines = left[:HEARD_TOGETHER]
            yield lines, list(starts), size
            for line in lines:
                starts[line] += size
