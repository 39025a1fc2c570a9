"""What a step of any model does with its slots, without asking the host."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from studio.backends.batched.choice import Breadth
from studio.backends.batched.state import SlotState, State, Whole
from studio.backends.batched.transformer import Attention, keys_and_values


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


class SlotStep:
    """Marks, keeps and attends, a row a slot."""

    def __init__(self, slots: SlotState) -> None:
        """Hold the constants that a step needs; the slots are used, not copied."""
        self._state = slots
        device = slots.whole.device
        self._rows = torch.arange(len(slots.whole), device=device)
        self._kinds = torch.arange(2, device=device)[:, None]  # keys, values
        self._heads = torch.arange(slots.cache.shape[3], device=device)
        self._positions = torch.arange(slots.cache.shape[4], device=device)

    def _decided(self, ends: torch.Tensor) -> torch.Tensor:
        """Mark the slots that stop.

        Args:
            ends: Whose choice was the end, if they run: bool [rows].

        Returns:
            Which make this frame: bool [rows].
        """
        slots, rows = self._state, len(ends)
        state = slots.column(Whole.STATE, rows)
        running = state == State.RUNNING
        ends = running & ends
        at_bound = slots.column(Whole.FRAME, rows) >= slots.column(Whole.LIMIT, rows)
        goes = running & ~ends & ~at_bound
        stopped = torch.where(ends, int(State.ENDED), int(State.BOUND))
        state.copy_(torch.where(running & ~goes, stopped, state))
        return goes

    def _keep(self, codes: torch.Tensor, goes: torch.Tensor) -> None:
        """Write a frame's codes where the line goes on, and aside where it doesn't.

        Args:
            codes: int64 [rows, groups].
            goes: From `_decided`.
        """
        slots, rows = self._state, len(codes)
        aside = slots.codes.shape[1] - 1
        frame = torch.where(goes, slots.column(Whole.FRAME, rows), aside)
        slots.codes.index_put_((self._rows[:rows], frame), codes)

    def _finish(self, first: torch.Tensor, hidden: torch.Tensor, goes: torch.Tensor) -> None:
        """Write what a second try after a fault would read; the last thing a step does.

        Args:
            first: Codes that were said: int64 [rows].
            hidden: The states that give the next frame: [rows, hidden].
            goes: From `_decided`.
        """
        slots, rows = self._state, len(first)
        slots.hidden[:rows] = hidden
        slots.said[:rows].scatter_(1, first[:, None], True)
        slots.column(Whole.FRAME, rows).add_(goes)
        slots.column(Whole.LENGTH, rows).add_(goes)

    def _places(self, shape: Shape) -> torch.Tensor:
        """Where each slot's next position is: int64 [rows].

        A line that stops at its cache's end has none left; what it reads is of no use.
        """
        return self._state.column(Whole.LENGTH, shape.rows).clamp(max=shape.window - 1)

    def _attention(self, at: torch.Tensor, shape: Shape, group: int) -> Attention:
        """Keep one position a slot, and let it see all before it.

        A slot may have several rows, one below the other: their heads lie side by side in the
        cache, since all of them are equally far.

        Args:
            at: From `_places`.
            shape: Of the step.
            group: Query heads to a key-value head.
        """
        slots, rows = self._state, shape.rows
        where = (self._rows[:rows, None, None], self._kinds, self._heads, at[:, None, None])
        mask = self._mask(at, shape.window).expand(-1, len(self._heads), group, -1)

        def attend(index: int, heads: torch.Tensor) -> torch.Tensor:
            cache, each = slots.cache[index], heads.shape[1]
            heads = heads.reshape(2, rows, len(self._heads), group + 2, -1)
            cache.index_put_(where, keys_and_values(heads))
            keys, values = cache[:rows, :, :, : shape.window].unbind(1)
            mixed = F.scaled_dot_product_attention(
                heads[0][:, :, :group], keys, values, attn_mask=mask
            )
            own = mixed.unflatten(1, (each // rows, -1))  # heads of each row
            return own.transpose(2, 3).reshape(each, -1)

        return attend

    def _mask(self, at: torch.Tensor, window: int) -> torch.Tensor:
        """0 for what a row may see, minus infinity beyond: [rows, 1, 1, window]."""
        beyond = self._positions[:window] > at[:, None]
        mask = torch.zeros(beyond.shape, dtype=self._state.cache.dtype, device=at.device)
        return mask.masked_fill_(beyond, -torch.inf)[:, None, None]
