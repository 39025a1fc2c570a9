"""One frame of all lines in flight, with everything that decides on the device.

Nothing here reads a tensor's value on the host, and no shape depends on one: the same code runs
at once on a CPU and is captured as a graph on CUDA.

Source: `Qwen3TTSTalkerForConditionalGeneration.forward` of qwen-tts-hf 0.1.1.post1, and the logits
processors of the transformers package that its `generate` asks for.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from studio.backends.batched.rest_codes import RestCodes
from studio.backends.batched.slot_step import Shape, SlotStep
from studio.backends.batched.slots import Real, Slots
from studio.backends.batched.state import Whole
from studio.backends.batched.transformer import times
from studio.backends.batched.weights import Weights

_MIN_FRAMES = 2  # as in the reference; with fewer, very short lines come out empty


class FrameStep(SlotStep):
    """Advances slots by a frame."""

    def __init__(self, weights: Weights, slots: Slots) -> None:
        """Hold the constants that a frame needs; both arguments are used, not copied."""
        super().__init__(slots)
        self._weights = weights
        self._slots = slots
        self._groups = torch.arange(weights.groups, device=weights.head.device)
        self._rest = RestCodes(weights, slots)

    def __call__(self, shape: Shape) -> None:
        """Make a frame in every slot of the first `shape.rows` that runs."""
        slots, rows = self._slots, shape.rows
        frame = slots.column(Whole.FRAME, rows)
        parts = self._weights.talker.parts
        chance = parts.chance(slots.column(Whole.KEY, rows), frame, self._groups)
        rules = slots.first_rules(rows)
        first = parts.choose(self._first_scores(rows), chance[0], rules, shape.breadth)
        goes = self._decided(first == self._weights.end)
        codes = self._rest(first, chance, shape.breadth)  # [rows, groups]
        self._keep(codes, goes)
        self._finish(first, self._advanced(codes, shape), goes)

    def _first_scores(self, rows: int) -> torch.Tensor:
        """What may be a frame's first code: float32 [rows, vocabulary]."""
        slots = self._slots
        scores = times(slots.hidden[:rows], self._weights.head).float()
        penalty = slots.real[:rows, Real.PENALTY, None]
        less = torch.where(scores < 0, scores * penalty, scores / penalty)
        scores = torch.where(slots.said[:rows], less, scores) + self._weights.banned
        scores[:, self._weights.end].masked_fill_(
            slots.column(Whole.FRAME, rows) < _MIN_FRAMES, -torch.inf
        )
        return scores

    def _advanced(self, codes: torch.Tensor, shape: Shape) -> torch.Tensor:
        """Read the frame with the text that goes with it; the next frame's state."""
        weights, slots, rows = self._weights, self._slots, shape.rows
        heard = F.embedding(codes + weights.offsets, weights.tables).sum(dim=1)
        spoken = torch.minimum(slots.column(Whole.FRAME, rows), slots.column(Whole.TEXT, rows))
        at = self._places(shape)
        attend = self._attention(at, shape, weights.talker.group)
        return weights.talker.read(heard + slots.text[self._rows[:rows], spoken], at, attend)
