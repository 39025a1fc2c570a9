"""Static slots on the device: KV cache, counters and codes, one row per slot, and the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum

import torch
import torch.nn.functional as F

from studio.backends.batching.decoder_stack import (
    EAGER_KERNELS,
    AttentionFn,
    KernelSet,
    split_kv,
)
from studio.backends.batching.sampling import SamplingBounds


def to_device(numbers: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy a host tensor to the device without waiting for queued work.

    A copy from ordinary memory would wait for all frames that are queued.
    """
    if device.type == "cuda":
        return numbers.pin_memory().to(device, non_blocking=True)
    return numbers.to(device)


class SlotPhase(IntEnum):
    """The phase of a slot."""

    FREE = 0
    RUNNING = 1
    ENDED = 2
    BOUND = 3


class IntColumn(IntEnum):
    """Columns of a slot's integers; a model's own follow them.

    The first three are what the host reads.
    """

    EPOCH = 0  # which admission this is, so that the status of an earlier one is recognized
    STATE = 1
    FRAME = 2
    LENGTH = 3  # positions in the cache
    LIMIT = 4  # frames
    KEY = 5  # of the line's noise


@dataclass(frozen=True, slots=True, eq=False)
class SlotTensors:
    """Tensors with one row per slot, never reallocated: captured graphs hold their addresses.

    Attributes:
        ints: int64 [slots, those of `IntColumn` and the model's own].
        floats: float32 [slots, settings of the model's sampling].
        hidden: The state that gives the next frame: [slots, hidden].
        seen_codes: First codes so far: bool [slots, vocabulary].
        codes: int64 [slots, max_frames + 1, groups]; the last frame is where rows that don't run
            write.
        kv_cache: Keys and values: [layers, slots, 2, kv_heads, positions, head_dim].
    """

    ints: torch.Tensor
    floats: torch.Tensor
    hidden: torch.Tensor
    seen_codes: torch.Tensor
    codes: torch.Tensor
    kv_cache: torch.Tensor

    @property
    def keys(self) -> torch.Tensor:
        """Keys of the KV cache: [layers, slots, kv_heads, positions, head_dim], a view."""
        return self.kv_cache[:, :, 0]

    @property
    def values(self) -> torch.Tensor:
        return self.kv_cache[:, :, 1]

    @property
    def size_bytes(self) -> int:
        return sum(getattr(self, field.name).nbytes for field in fields(self))

    def column(self, name: int, rows: int) -> torch.Tensor:
        """One integer column of the first rows: int64 [rows], a view."""
        return self.ints[:rows, name]

    def free_slot(self, slot: int) -> None:
        """Mark a slot as free."""
        self.ints[slot] = 0

    def clear_kv(self, slot: int, positions: int) -> None:
        """Zero a slot's cache up to a position: a NaN would outlive its line."""
        self.kv_cache[:, slot, :, :, :positions] = 0

    def copy_slot(self, source: int, target: int, positions: int) -> None:
        """Copy a slot to another, with this many positions of its cache."""
        for rows in self._per_slot():
            rows[target] = rows[source]
        self.kv_cache[:, target, :, :, :positions] = self.kv_cache[:, source, :, :, :positions]

    def read_kv(self, slot: int, positions: int) -> torch.Tensor:
        """Copy a slot's cache: [layers, keys and values, heads, positions, head_dim]."""
        return self.kv_cache[:, slot, :, :, :positions].contiguous()

    def write_kv(self, slot: int, cached: torch.Tensor) -> None:
        """Write the result of `read_kv` to the start of a slot's cache."""
        self.kv_cache[:, slot, :, :, : cached.shape[3]] = cached

    def reset(self) -> None:
        """Reset all slots."""
        self.ints.zero_()
        for kept in (self.hidden, self.kv_cache):
            kept.zero_()

    def _write(
        self, at: Sequence[int], whole: Sequence[Sequence[int]], real: Sequence[Sequence[float]]
    ) -> torch.Tensor:
        """Initialize slots for new lines; returns their indices, on the device."""
        device = self.ints.device
        slots = to_device(torch.tensor(at), device)
        self.seen_codes[slots] = False
        self.floats[slots] = to_device(torch.tensor(real), device)
        self.ints[slots] = to_device(torch.tensor(whole), device)
        return slots

    def _per_slot(self) -> tuple[torch.Tensor, ...]:
        """The tensors of a slot besides its cache, each with one row per slot."""
        return self.ints, self.floats, self.hidden, self.seen_codes, self.codes


@dataclass(frozen=True, slots=True)
class StepShape:
    """What distinguishes two captures of the step; known on the host.

    Attributes:
        rows: Slots from the first on.
        window: Positions of the cache that are looked at; beyond every running line's.
        bounds: Of the choice of codes.
    """

    rows: int
    window: int
    bounds: SamplingBounds = field(default_factory=SamplingBounds)


MixFn = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Takes queries [rows, kv_heads, group, head_dim] and a layer's cache; gives what they see."""


class DecodeStep:
    """The parts of a decode step that all models share, one row per slot."""

    def __init__(self, slots: SlotTensors, kernels: KernelSet = EAGER_KERNELS) -> None:
        self._state = slots
        self._attend_own = kernels.attend
        device = slots.ints.device
        self._rows = torch.arange(len(slots.ints), device=device)
        self._kinds = torch.arange(2, device=device)[:, None]  # keys, values
        self._heads = torch.arange(slots.kv_cache.shape[3], device=device)
        self._positions = torch.arange(slots.kv_cache.shape[4], device=device)

    def _mark_stopped(self, ends: torch.Tensor) -> torch.Tensor:
        """Mark the slots that stop; `ends` says which sampled the end token.

        Returns:
            Which make this frame: bool [rows].
        """
        slots, rows = self._state, len(ends)
        state = slots.column(IntColumn.STATE, rows)
        running = state == SlotPhase.RUNNING
        ends = running & ends
        at_bound = slots.column(IntColumn.FRAME, rows) >= slots.column(IntColumn.LIMIT, rows)
        goes = running & ~ends & ~at_bound
        stopped = torch.where(ends, int(SlotPhase.ENDED), int(SlotPhase.BOUND))
        state.copy_(torch.where(running & ~goes, stopped, state))
        return goes

    def _store_codes(self, codes: torch.Tensor, goes: torch.Tensor) -> None:
        """Write a frame's codes, [rows, groups]; those of stopped lines go to the spare frame."""
        slots, rows = self._state, len(codes)
        aside = slots.codes.shape[1] - 1
        frame = torch.where(goes, slots.column(IntColumn.FRAME, rows), aside)
        slots.codes.index_put_((self._rows[:rows], frame), codes)

    def _store_state(self, first: torch.Tensor, hidden: torch.Tensor, goes: torch.Tensor) -> None:
        """Write the state that a retry after a fault reads; last in a step.

        Args:
            first: Codes that were said: int64 [rows].
            hidden: The states that give the next frame: [rows, hidden].
            goes: From `_mark_stopped`.
        """
        slots, rows = self._state, len(first)
        slots.hidden[:rows] = hidden
        slots.seen_codes[:rows].scatter_(1, first[:, None], True)
        slots.column(IntColumn.FRAME, rows).add_(goes)
        slots.column(IntColumn.LENGTH, rows).add_(goes)

    def _write_positions(self, shape: StepShape) -> torch.Tensor:
        """The next position of each slot: int64 [rows].

        A line that stops at its cache's end has none left; its result is unused.
        """
        return self._state.column(IntColumn.LENGTH, shape.rows).clamp(max=shape.window - 1)

    def _attention(self, at: torch.Tensor, shape: StepShape, group: int) -> AttentionFn:
        """Store one position per slot and attend to all before it.

        A slot may have several rows, one below the other: their heads lie side by side in the
        cache, since all of them are equally far.

        Args:
            at: From `_write_positions`.
            shape: Of the step.
            group: Query heads to a key-value head.
        """
        slots, rows = self._state, shape.rows
        where = (self._rows[:rows, None, None], self._kinds, self._heads, at[:, None, None])
        mix = self._mix_own(at) if self._attend_own else self._mix_window(at, shape, group)

        def attend(index: int, heads: torch.Tensor) -> torch.Tensor:
            cache, each = slots.kv_cache[index], heads.shape[1]
            heads = heads.reshape(2, rows, len(self._heads), group + 2, -1)
            cache.index_put_(where, split_kv(heads))
            mixed = mix(heads[0][:, :, :group], cache)
            own = mixed.unflatten(1, (each // rows, -1))  # heads of each row
            return own.transpose(2, 3).reshape(each, -1)

        return attend

    def _mix_own(self, at: torch.Tensor) -> MixFn:
        """Attention over the positions that each line has."""
        attend_own = self._attend_own
        assert attend_own is not None
        return lambda queries, cache: attend_own(queries, cache, at)

    def _mix_window(self, at: torch.Tensor, shape: StepShape, group: int) -> MixFn:
        """Attention over the window that holds every line, masked behind each one's last."""
        mask = self._mask(at, shape.window).expand(-1, len(self._heads), group, -1)

        def mix(queries: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
            keys, values = cache[: shape.rows, :, :, : shape.window].unbind(1)
            return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)

        return mix

    def _mask(self, at: torch.Tensor, window: int) -> torch.Tensor:
        """The attention mask, 0 or minus infinity: [rows, 1, 1, window]."""
        beyond = self._positions[:window] > at[:, None]
        mask = torch.zeros(beyond.shape, dtype=self._state.kv_cache.dtype, device=at.device)
        return mask.masked_fill_(beyond, -torch.inf)[:, None, None]
