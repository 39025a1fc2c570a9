"""The memory plan: how many slots fit beside the weights, and how long their lines may become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import psutil

from studio.backends.batching.runner_contract import BUCKETS, BatchingUnavailable, SlotLayout
from studio.backends.options import BatchOptions

MAX_SLOTS = {"cuda": 64, "mps": 8, "cpu": 8}
"""Beyond these a frame takes longer by as much as it makes more."""

FULL_POSITIONS = 2_048
"""Positions of a slot: the longest sample and the longest line together."""

SHORT_POSITIONS = 1_024
"""Positions where memory is small: a sample of 15 s and a line of a minute."""

ENOUGH_SLOTS = 8
"""With fewer than these, shorter slots are better than few: more lines at once matter more than the
rare long one."""

_POSITION_MULTIPLE = 64  # of positions
_RESERVE_BYTES = {"cuda": 2_000_000_000, "mps": 1_000_000_000, "cpu": 500_000_000}
"""For prompts while they are read, what the frames' graphs compute with, the nodes of all graphs,
which are at most `MAX_GRAPHS` of a step, and a library's workspace of each thread and stream: 32 MB
each on Hopper."""

_USED_SHARE = 0.9
_SOUND_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Slots and codec frames that fit into memory.

    Attributes:
        codec_frames: Frames of finished lines that go through the codec at once; 0 where the
            model's codec has no such number.
        sound_bytes: What turning frames into sound takes, graphs and kept samples included.
        kept_bytes: What is kept of the voices, besides the slots.
    """

    layout: SlotLayout
    codec_frames: int
    slots_bytes: int
    sound_bytes: int
    kept_bytes: int

    def smaller(self) -> MemoryPlan | None:
        """The next smaller plan, for when this one ran out of memory; None if there is none.

        The memory that is free is an estimate of what can be allocated.
        """
        slots = max((size for size in BUCKETS if size < self.layout.slots), default=None)
        if slots is None:
            return None
        each_bytes = self.slots_bytes // self.layout.slots
        return replace(
            self, layout=replace(self.layout, slots=slots), slots_bytes=slots * each_bytes
        )


class ModelDims(Protocol):
    """The dimensions that determine a slot's size."""

    def slot_bytes(self, layout: SlotLayout, device: str) -> int:
        """Bytes of one slot."""


@dataclass(frozen=True, slots=True)
class MemoryNeeds:
    """A model's needs, apart from the size of a slot.

    Attributes:
        plan_sound: For the bytes that may go to sound, the codec's frames at once (see
            `MemoryPlan`) and the bytes that decoding them to audio takes.
        kept_bytes: What is kept of the voices, when as many are kept as ever are.
        lengths: Positions of a slot to choose from, falling.
    """

    max_frames: int
    plan_sound: Callable[[int], tuple[int, int]]
    kept_bytes: int = 0
    lengths: Sequence[int] = (FULL_POSITIONS, SHORT_POSITIONS)


def plan_memory(
    dimensions: ModelDims, free_bytes: int, device: str, wanted: BatchOptions, needs: MemoryNeeds
) -> MemoryPlan:
    """Choose slots and positions for the memory that the weights leave free.

    What is set is kept; what isn't is chosen: as many slots as pay on the device, of full length
    where at least `ENOUGH_SLOTS` of those fit.

    Raises:
        BatchingUnavailable: Not even the smallest choice fits, or what is set doesn't.
    """
    spare = free_bytes * _USED_SHARE - _RESERVE_BYTES[device]
    codec_frames, sound = needs.plan_sound(int(spare * _SOUND_SHARE))
    budget = spare - sound - needs.kept_bytes
    layouts = [
        _slot_layout(positions, needs.max_frames)
        for positions in (needs.lengths if wanted.positions is None else (wanted.positions,))
    ]
    rooms = [
        MemoryPlan(
            replace(layout, slots=slots), codec_frames, slots * each, sound, needs.kept_bytes
        )
        for layout in layouts
        for each in [dimensions.slot_bytes(layout, device)]
        for slots in _slot_counts(wanted, device)
        if slots * each <= budget
    ]
    if not rooms:
        each = dimensions.slot_bytes(layouts[-1], device)
        raise BatchingUnavailable(
            _shortage_message(min(_slot_counts(wanted, device)) * each, budget)
        )
    enough = min(ENOUGH_SLOTS, MAX_SLOTS[device])
    fitting = [room for room in rooms if room.layout.slots >= enough]
    long = [room for room in fitting if room.layout.positions == layouts[0].positions]
    return max(long or fitting or rooms, key=lambda room: room.layout.slots)


def measure_free_bytes(device: str) -> int:
    """Free memory in bytes; imports torch for an accelerator."""
    if device == "cuda":
        import torch

        return int(torch.cuda.mem_get_info()[0])
    return int(psutil.virtual_memory().available)


def _slot_layout(positions: int, max_frames: int) -> SlotLayout:
    rounded = -(-positions // _POSITION_MULTIPLE) * _POSITION_MULTIPLE
    return SlotLayout(slots=1, positions=rounded, max_frames=min(max_frames, rounded))


def _slot_counts(wanted: BatchOptions, device: str) -> tuple[int, ...]:
    if wanted.slots is not None:
        return (wanted.slots,)
    return tuple(size for size in BUCKETS if size <= MAX_SLOTS[device])


def _shortage_message(needed_bytes: int, budget_bytes: float) -> str:
    return (
        f"There is too little memory to decode lines together: {needed_bytes / 1e9:.1f} GB are "
        f"needed beside the weights, and {max(0.0, budget_bytes) / 1e9:.1f} GB can be had. Unload "
        "other models, or set TTS_BATCH_SIZE or TTS_BATCH_POSITIONS to a smaller number."
    )
