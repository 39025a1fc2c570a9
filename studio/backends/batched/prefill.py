"""Reading prompts of different lengths into slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from studio.backends.batched.core_contract import Prompted
from studio.backends.batched.sending import sent
from studio.backends.batched.state import SlotState
from studio.backends.batched.transformer import Backbone

LineT = TypeVar("LineT", bound=Prompted)

TOGETHER_ON_CUDA = 16_384
"""Positions, padding included, of prompts read in one pass."""

LENGTHS_ON_CUDA = 16
"""Prompts there are as long as a multiple of these: of each new shape a library chooses anew."""


def passes(lines: Sequence[LineT], positions: int) -> Iterator[list[LineT]]:
    """Group lines by length, so that little is padded.

    Args:
        lines: Any number of them.
        positions: The most of one group; a single line may have more. 0 reads each by itself,
            which on a CPU is as fast, and keeps a line's numbers free of its company.
    """
    group: list[LineT] = []
    for line in sorted(lines, key=_own):
        if group and _own(line) * (len(group) + 1) > positions:
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def read(
    stack: Backbone,
    slots: SlotState,
    lines: Sequence[Prompted],
    *,
    begun: int | Sequence[int] = 0,
    ends: Sequence[int] | None = None,
    lengths: int = 1,
) -> None:
    """Read prompts in one pass, and leave each one's last state and cache in its slot.

    Prompts are padded on the right, where causal attention never looks; a frame overwrites its
    padded position before it is seen.

    Args:
        stack: Reads them.
        slots: Where they go.
        lines: Whose prompts.
        begun: Positions at each prompt's start that its slot's cache holds already.
        ends: Of each, where to stop; None for all of it.
        lengths: Of which the pass's length is a multiple.
    """
    starts = [begun] * len(lines) if isinstance(begun, int) else list(begun)
    ends = [line.prompt.embeds.shape[1] for line in lines] if ends is None else ends
    spans = list(zip(lines, starts, ends, strict=True))
    rows = [row[start:end] for line, start, end in spans for row in line.prompt.embeds]
    prompts = pad_sequence(rows, batch_first=True)  # [lines * rows of a line, positions, hidden]
    if lengths > 1:
        prompts = F.pad(prompts, (0, 0, 0, -prompts.shape[1] % lengths))
    at, first, last = sent(
        torch.tensor([[line.slot, start, end - start - 1] for line, start, end in spans]),
        prompts.device,
    ).unbind(dim=1)
    places = first[:, None] + torch.arange(prompts.shape[1], device=prompts.device)
    places = places.clamp(max=slots.keys.shape[3] - 1)  # only padding reaches so far
    reading = _Reading(stack, slots, at, places, until=max(starts) + prompts.shape[1])
    attend = reading.go_on if any(starts) else reading.begin
    each = places.repeat_interleave(len(prompts) // len(lines), dim=0)
    x = stack.read(prompts.flatten(0, 1), each.flatten(), attend)
    x = x.view(len(lines), -1, prompts.shape[1], x.shape[1])
    slots.hidden[at] = x[torch.arange(len(lines), device=x.device), :, last].flatten(1)


class _Reading:
    """Keeps and attends while prompts are read."""

    def __init__(
        self,
        stack: Backbone,
        slots: SlotState,
        at: torch.Tensor,
        places: torch.Tensor,
        *,
        until: int,
    ) -> None:
        """Lay out where everything goes.

        Args:
            stack: Reads.
            slots: Where to.
            at: Slots of the lines: int64 [lines].
            places: Positions there: int64 [lines, positions].
            until: Positions of a slot that any of them sees.
        """
        self._stack = stack
        self._slots = slots
        self._at = at
        self._places = places
        self._until = min(until, slots.keys.shape[3])
        heads = torch.arange(slots.keys.shape[2], device=at.device)
        self._where = (at[:, None, None], heads[:, None], places[:, None])

    def begin(self, index: int, turned: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
        """Attend where slots hold nothing yet; see `Attention`."""
        queries, keys, values = self._kept(index, turned, plain)
        by_head = queries.transpose(2, 3).flatten(1, 2)  # [rows, heads, positions, head_dim]
        mixed = F.scaled_dot_product_attention(
            by_head, keys, values, is_causal=True, enable_gqa=True
        )
        mixed = mixed.unflatten(1, queries.shape[1:4:2])
        return mixed.permute(0, 3, 2, 1, 4).flatten(0, 1).flatten(1)

    def go_on(self, index: int, turned: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
        """Attend where some slots hold a beginning."""
        queries, keys, _ = self._kept(index, turned, plain)
        shape = (*keys.shape[:2], self._until, keys.shape[3])
        # The queries of a group as positions: with a mask, few kernels know groups.
        mixed = F.scaled_dot_product_attention(
            queries.flatten(2, 3),
            self._slots.keys[index, self._at, :, : self._until].view(shape),
            self._slots.values[index, self._at, :, : self._until].view(shape),
            attn_mask=self._mask,
        )
        mixed = mixed.unflatten(2, queries.shape[2:4])
        return mixed.permute(0, 2, 3, 1, 4).flatten(0, 1).flatten(1)

    def _kept(
        self, index: int, turned: torch.Tensor, plain: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Keep a layer's keys and values.

        Returns:
            Queries, [rows, kv_heads, positions, group, head_dim]; keys and values, the same
            without the group.
        """
        group, (lines, positions) = self._stack.group, self._places.shape
        heads = turned.unflatten(0, (-1, positions)).transpose(1, 2)
        keys = heads[:, :, :, group]
        values = plain.unflatten(0, (-1, positions)).transpose(1, 2)[:, :, :, group + 1]
        by_line = (lines, -1, positions, self._stack.head_dim)
        self._slots.keys[index].index_put_(self._where, keys.reshape(by_line))
        self._slots.values[index].index_put_(self._where, values.reshape(by_line))
        return heads[:, :, :, :group], keys, values

    @cached_property
    def _mask(self) -> torch.Tensor:
        """0 for what a query sees, minus infinity beyond: [rows, 1, positions * group, until]."""
        slots, stack = self._slots, self._stack
        beyond = torch.arange(self._until, device=self._at.device) > self._places[..., None]
        mask = torch.zeros(beyond.shape, dtype=slots.keys.dtype, device=self._at.device)
        mask = mask.masked_fill_(beyond, -torch.inf).repeat_interleave(stack.group, dim=1)
        return mask.repeat_interleave(slots.keys.shape[2] // stack.kv_heads, dim=0)[:, None]


def reach(lines: Sequence[Prompted], lengths: int = 1) -> int:
    """Positions of a slot that reading these may write, padding included."""
    shared = max((line.prompt.shared for line in lines), default=0)
    own = max((_own(line) for line in lines), default=0)
    return sum(-(-part // lengths) * lengths for part in (shared, own))


def _own(line: Prompted) -> int:
    """Positions of a prompt that are not shared."""
    return line.prompt.embeds.shape[1] - line.prompt.shared
