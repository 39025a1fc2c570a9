"""Rows through which lines are decoded: tensors that stay where they are, and graphs over them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from studio.audio.clip import Samples
from studio.backends.batched.graphs import Replays
from studio.backends.qwen3.codec_step import CodecStep


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that are decoded at once.

    Attributes:
        first: The first row.
        rows: As many.
        frames: Of each.
    """

    first: int
    rows: int
    frames: int

    @property
    def span(self) -> slice:
        """The rows."""
        return slice(self.first, self.first + self.rows)


class CodecRows:
    """Codes, state and samples of the lines that are being decoded; for one thread.

    Attributes:
        codes: int64 [rows, most frames, groups]; what `run` decodes.
        state: float32 [rows, numbers of the step]; `run` moves it on.
    """

    def __init__(
        self, step: CodecStep, rows: int, most_frames: int, *, urgent: bool = False
    ) -> None:
        """Allocate them.

        Args:
            step: Decodes.
            rows: As many.
            most_frames: Of a row at once.
            urgent: Whether they go before what isn't, on a card.

        Raises:
            torch.OutOfMemoryError: There is no room.
        """
        self._step = step
        device = step.device
        self._most_samples = most_frames * step.samples_per_frame
        with torch.inference_mode():
            self.state = step.fresh(rows)
            self.codes = torch.zeros(
                (rows, most_frames, step.groups), dtype=torch.int64, device=device
            )
            self._made = torch.zeros(rows * self._most_samples, device=device)
            # A copy into ordinary memory would go through a small buffer of the driver's.
            self._heard = torch.zeros(self._made.shape, pin_memory=device.type == "cuda")
        self._replays: Replays[Block] = Replays(
            self._decode, device, makes="samples", urgent=urgent
        )

    @property
    def captured(self) -> int:
        """Blocks that are replayed."""
        return self._replays.captured

    def run(self, block: Block) -> Samples:
        """Decode the first frames of a block's rows.

        Returns:
            float32 [rows, samples]: a view that the next run of these rows writes over.

        Raises:
            torch.OutOfMemoryError: There is too little; the rows' state is lost.
        """
        with torch.inference_mode():
            self._replays.run(block)
            heard = self._samples(self._heard, block)
            heard.copy_(self._samples(self._made, block), non_blocking=True)
        if self._made.is_cuda:
            torch.cuda.current_stream().synchronize()
        view: Samples = heard.numpy()
        return view

    def prepare(self, block: Block) -> None:
        """Do all that comes before a block's first replay; its rows' state is lost."""
        with torch.inference_mode():
            self._replays.prepare(block)

    def close(self) -> None:
        """Give up the graphs and all memory; more than once does nothing more."""
        self._replays.close()
        self.state = self.codes = self._made = self._heard = torch.empty(0)

    def _decode(self, block: Block) -> None:
        made = self._step(self.codes[block.span, : block.frames], self.state[block.span])
        self._samples(self._made, block).copy_(made)

    def _samples(self, buffer: torch.Tensor, block: Block) -> torch.Tensor:
        """A block's place: [rows, samples], in one piece, as a copy to the host needs it."""
        samples = block.frames * self._step.samples_per_frame
        start = block.first * self._most_samples
        return buffer[start : start + block.rows * samples].view(block.rows, samples)
