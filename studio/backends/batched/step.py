"""One frame of all lines in flight, with everything that decides on the device.

Nothing here reads a tensor's value on the host, and no shape depends on one: the same code runs
at once on a CPU and is captured as a graph on CUDA.

Source: `Qwen3TTSTalkerForConditionalGeneration.forward` of qwen-tts-hf 0.1.1.post1, and the logits
processors of the transformers package that its `generate` asks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from studio.backends.batched.choice import Breadth, choose
from studio.backends.batched.noise import frame_keys
from studio.backends.batched.rest_codes import RestCodes
from studio.backends.batched.slots import Real, Slots, State, Whole
from studio.backends.batched.transformer import run, times
from studio.backends.batched.weights import Weights

_MIN_FRAMES = 2  # as in the reference; with fewer, very short lines come out empty


@dataclass(frozen=True, slots=True)
class Shape:
    """What differs between two captures of the step; the host knows it without the device.

    Attributes:
        rows: Slots from the first on.
        window: Positions of the cache that are looked at; beyond every running line's.
        breadth: Of the choice of codes.
    """

    rows: int
    window: int
    breadth: Breadth = field(default_factory=Breadth)


class FrameStep:
    """Advances slots by a frame."""

    def __init__(self, weights: Weights, slots: Slots) -> None:
        """Hold the constants that a frame needs; both arguments are used, not copied."""
        self._weights = weights
        self._slots = slots
        device = weights.head.device
        self._rows = torch.arange(len(slots.whole), device=device)
        self._positions = torch.arange(slots.keys.shape[3], device=device)
        self._groups = torch.arange(weights.groups, device=device)
        self._kv_heads = torch.arange(weights.talker.kv_heads, device=device)
        self._rest = RestCodes(weights, slots)

    def __call__(self, shape: Shape) -> None:
        """Make a frame in every slot of the first `shape.rows` that runs."""
        slots, rows = self._slots, shape.rows
        frame = slots.column(Whole.FRAME, rows)
        keys = frame_keys(slots.column(Whole.KEY, rows), frame, self._groups)
        first = choose(self._first_scores(rows), keys[0], slots.first_rules(rows), shape.breadth)
        goes = self._decided(first, rows)
        codes = self._rest(first, keys, shape.breadth)  # [rows, groups]
        self._keep(codes, goes)
        hidden = self._advanced(codes, shape)
        # What a second try after a fault would read is written last.
        slots.hidden[:rows] = hidden
        slots.said[:rows].scatter_(1, first[:, None], True)
        frame += goes
        slots.column(Whole.LENGTH, rows).add_(goes)

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

    def _decided(self, first: torch.Tensor, rows: int) -> torch.Tensor:
        """Mark the slots that stop; returns which make this frame: bool [rows]."""
        slots = self._slots
        state = slots.column(Whole.STATE, rows)
        running = state == State.RUNNING
        ends = running & (first == self._weights.end)
        at_bound = slots.column(Whole.FRAME, rows) >= slots.column(Whole.LIMIT, rows)
        goes = running & ~ends & ~at_bound
        stopped = torch.where(ends, int(State.ENDED), int(State.BOUND))
        state.copy_(torch.where(running & ~goes, stopped, state))
        return goes

    def _keep(self, codes: torch.Tensor, goes: torch.Tensor) -> None:
        """Write a frame's codes where the line goes on, and aside where it doesn't."""
        slots, rows = self._slots, len(codes)
        aside = slots.codes.shape[1] - 1
        frame = torch.where(goes, slots.column(Whole.FRAME, rows), aside)
        slots.codes.index_put_((self._rows[:rows], frame), codes)

    def _advanced(self, codes: torch.Tensor, shape: Shape) -> torch.Tensor:
        """Read the frame with the text that goes with it; the next frame's state."""
        weights, slots, rows = self._weights, self._slots, shape.rows
        stack, group = weights.talker, weights.talker.group
        each = self._rows[:rows]
        heard = F.embedding(codes + weights.offsets, weights.tables).sum(dim=1)
        spoken = torch.minimum(slots.column(Whole.FRAME, rows), slots.column(Whole.TEXT, rows))
        # A line that stops at its cache's end has no position left; what it reads is of no use.
        at = slots.column(Whole.LENGTH, rows).clamp(max=shape.window - 1)
        where = (each[:, None], self._kv_heads, at[:, None])
        mask = self._mask(at, shape.window, heard.dtype)

        def attend(index: int, turned: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
            keys, values = slots.keys[index], slots.values[index]
            keys.index_put_(where, turned[:, :, group])
            values.index_put_(where, plain[:, :, group + 1])
            mixed = F.scaled_dot_product_attention(
                turned[:, :, :group],
                keys[:rows, :, : shape.window],
                values[:rows, :, : shape.window],
                attn_mask=mask.expand(-1, stack.kv_heads, group, -1),
            )
            return mixed.flatten(1)

        return run(stack, heard + slots.text[each, spoken], (stack.cos[at], stack.sin[at]), attend)

    def _mask(self, at: torch.Tensor, window: int, dtype: torch.dtype) -> torch.Tensor:
        """0 for what a row may see, minus infinity beyond: [rows, 1, 1, window]."""
        beyond = self._positions[:window] > at[:, None]
        mask = torch.zeros(beyond.shape, dtype=dtype, device=at.device)
        return mask.masked_fill_(beyond, -torch.inf)[:, None, None]
