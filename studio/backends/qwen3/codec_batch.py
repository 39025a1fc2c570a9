"""Batches of the codec: lines packed into equal rows, and the static buffers of its graphs."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from studio.audio.clip import Samples
from studio.backends.batching.cuda_graphs import CudaGraphRunner
from studio.backends.qwen3.codec import CodecDecoder

_ROUND_COST_FRAMES = 16
"""Fixed cost of a round, in frames: a GPU is hardly faster with fewer than these."""


@dataclass(frozen=True, slots=True)
class CodecPiece:
    """Consecutive frames of a line, decoded in one round.

    Attributes:
        end: Behind the last.
        last: Whether the line ends with them.
    """

    line: int
    start: int
    end: int
    last: bool


@dataclass(frozen=True, slots=True)
class CodecRound:
    """Pieces that are decoded at once.

    Attributes:
        rows: That are decoded; beyond the pieces they are idle.
        frames: Of each row; beyond a piece's they are padding.
    """

    pieces: Sequence[CodecPiece]
    rows: int
    frames: int


def pack_rounds(lengths: Sequence[int], sizes: Sequence[int], frames: int) -> list[CodecRound]:
    """Share lines out over rows, each row taking the next line when one has ended.

    Args:
        lengths: Frames of each line, at least one.
        sizes: Numbers of rows that a round can have, ascending; all of them are weighed.
        frames: Of each row in a round.

    Returns:
        In order; the cheapest there is among as many rows as each of the sizes.
    """
    ways = (list(_pack_into_rows(lengths, sizes, frames, rows)) for rows in sizes)
    return min(ways, key=lambda way: sum(one.rows * frames + _ROUND_COST_FRAMES for one in way))


def _pack_into_rows(
    lengths: Sequence[int], sizes: Sequence[int], frames: int, rows: int
) -> Iterator[CodecRound]:
    """Pack lines into a given number of rows.

    The longest line goes first and to the row that is free first, so that the rows end about
    together; the rows that go on longest come first, so that those with work are always the first.
    """
    queues: list[list[CodecPiece]] = [[] for _ in range(min(rows, len(lengths)))]
    free = [(0, row) for row in range(len(queues))]  # rounds until a row is free
    for line in sorted(range(len(lengths)), key=lambda line: -lengths[line]):
        _, row = free[0]
        queues[row].extend(_cut_line(line, lengths[line], frames))
        heapq.heapreplace(free, (len(queues[row]), row))
    queues.sort(key=len, reverse=True)
    for number in range(len(queues[0]) if queues else 0):
        pieces = [queue[number] for queue in queues if number < len(queue)]
        yield CodecRound(pieces, next(size for size in sizes if size >= len(pieces)), frames)


def _cut_line(line: int, length: int, frames: int) -> Iterator[CodecPiece]:
    for start in range(0, length, frames):
        end = min(length, start + frames)
        yield CodecPiece(line, start, end, last=end == length)


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows that are decoded at once."""

    first: int
    rows: int
    frames: int

    @property
    def span(self) -> slice:
        """The rows."""
        return slice(self.first, self.first + self.rows)


class CodecGraphBuffers:
    """Codes, state and samples of the lines that are being decoded; for one thread.

    Attributes:
        codes: int64 [rows, most frames, groups]; what `run` decodes.
        state: float32 [rows, numbers of the step]; `run` moves it on.
    """

    def __init__(
        self, step: CodecDecoder, rows: int, most_frames: int, *, high_priority: bool = False
    ) -> None:
        self._step = step
        device = step.device
        self._most_samples = most_frames * step.samples_per_frame
        with torch.inference_mode():
            self.state = step.new_state(rows)
            self.codes = torch.zeros(
                (rows, most_frames, step.groups), dtype=torch.int64, device=device
            )
            self._made = torch.zeros(rows * self._most_samples, device=device)
            # A copy into ordinary memory would go through a small buffer of the driver's.
            self._host_samples = torch.zeros(self._made.shape, pin_memory=device.type == "cuda")
        self._graphs: CudaGraphRunner[RowBlock] = CudaGraphRunner(
            self._decode, device, product="samples", high_priority=high_priority
        )

    @property
    def captured(self) -> int:
        return self._graphs.captured

    def run(self, block: RowBlock) -> Samples:
        """Decode the first frames of a block's rows.

        Returns:
            float32 [rows, samples]: a view that the next run of these rows writes over.

        Raises:
            torch.OutOfMemoryError: There is too little; the rows' state is lost.
        """
        with torch.inference_mode():
            self._graphs.run(block)
            host = self._samples(self._host_samples, block)
            host.copy_(self._samples(self._made, block), non_blocking=True)
        if self._made.is_cuda:
            torch.cuda.current_stream().synchronize()
        view: Samples = host.numpy()
        return view

    def prepare(self, block: RowBlock) -> None:
        """Do all that comes before a block's first replay; its rows' state is lost."""
        with torch.inference_mode():
            self._graphs.prepare(block)

    def close(self) -> None:
        """Free the graphs and all memory; may be called more than once."""
        self._graphs.close()
        self.state = self.codes = self._made = self._host_samples = torch.empty(0)

    def _decode(self, block: RowBlock) -> None:
        made = self._step(self.codes[block.span, : block.frames], self.state[block.span])
        self._samples(self._made, block).copy_(made)

    def _samples(self, buffer: torch.Tensor, block: RowBlock) -> torch.Tensor:
        """A block's output: [rows, samples], contiguous, as a copy to the host needs it."""
        samples = block.frames * self._step.samples_per_frame
        start = block.first * self._most_samples
        return buffer[start : start + block.rows * samples].view(block.rows, samples)
