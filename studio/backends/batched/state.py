"""The state that lines of any model have in their slots: counters, cache, what was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

import torch

from studio.backends.batched.sending import sent


class State(IntEnum):
    """What a slot does."""

    FREE = 0
    RUNNING = 1
    ENDED = 2
    BOUND = 3


class Whole(IntEnum):
    """Columns of a slot's whole numbers; the first three are what the host reads."""

    TURN = 0  # which admission this is, so that news of an earlier one is known as such
    STATE = 1
    FRAME = 2
    LENGTH = 3  # positions in the cache
    LIMIT = 4  # frames
    TEXT = 5  # frames that have text of their own
    KEY = 6
    LAST = 7
    REST_LAST = 8
    GREEDY = 9
    REST_GREEDY = 10


@dataclass(frozen=True, slots=True, eq=False)
class SlotState:
    """Tensors with a row a slot; they stay where they are, as captured graphs hold their addresses.

    Attributes:
        whole: int64 [slots, len(Whole)].
        real: float32 [slots, settings of the model's sampling].
        hidden: The state that gives the next frame: [slots, hidden].
        said: First codes so far: bool [slots, vocabulary].
        codes: int64 [slots, max_frames + 1, groups]; the last frame is where rows that don't run
            write.
        cache: Keys and values: [layers, slots, 2, kv_heads, positions, head_dim].
    """

    whole: torch.Tensor
    real: torch.Tensor
    hidden: torch.Tensor
    said: torch.Tensor
    codes: torch.Tensor
    cache: torch.Tensor

    @property
    def keys(self) -> torch.Tensor:
        """Of the cache: [layers, slots, kv_heads, positions, head_dim], a view."""
        return self.cache[:, :, 0]

    @property
    def values(self) -> torch.Tensor:
        """The same."""
        return self.cache[:, :, 1]

    @property
    def size_bytes(self) -> int:
        """Memory of all of them."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))

    def column(self, name: Whole, rows: int) -> torch.Tensor:
        """A whole number of the first rows: int64 [rows], a view."""
        return self.whole[:rows, name]

    def free(self, slot: int) -> None:
        """Let a slot rest."""
        self.whole[slot] = 0

    def wipe(self, slot: int, positions: int) -> None:
        """Clear a slot's cache up to a position: a number that is none would outlive its line."""
        self.cache[:, slot, :, :, :positions] = 0

    def copy(self, source: int, target: int, positions: int) -> None:
        """Make one slot like another.

        Args:
            source: Which.
            target: Where.
            positions: How many of its cache matter.
        """
        for rows in self._rows():
            rows[target] = rows[source]
        self.cache[:, target, :, :, :positions] = self.cache[:, source, :, :, :positions]

    def cached(self, slot: int, positions: int) -> torch.Tensor:
        """A copy of a slot's cache: [layers, keys and values, heads, positions, head_dim]."""
        return self.cache[:, slot, :, :, :positions].contiguous()

    def begin(self, slot: int, cached: torch.Tensor) -> None:
        """Write what `cached` gave to the start of a slot's cache."""
        self.cache[:, slot, :, :, : cached.shape[3]] = cached

    def reset(self) -> None:
        """Forget everything."""
        self.whole.zero_()
        for kept in (self.hidden, self.cache):
            kept.zero_()

    def _write(
        self, at: Sequence[int], whole: Sequence[Sequence[int]], real: Sequence[Sequence[float]]
    ) -> torch.Tensor:
        """Begin lines of which nothing was said yet; their slots, on the device."""
        device = self.whole.device
        slots = sent(torch.tensor(at), device)
        self.said[slots] = False
        self.real[slots] = sent(torch.tensor(real), device)
        self.whole[slots] = sent(torch.tensor(whole), device)
        return slots

    def _rows(self) -> tuple[torch.Tensor, ...]:
        """What belongs to a slot beside its cache, each with a row a slot."""
        return self.whole, self.real, self.hidden, self.said, self.codes
