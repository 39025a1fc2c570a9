"""How many lines fit into the memory there is, and how long they may become."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import psutil

from studio.backends.batched.core_contract import Layout
from studio.backends.device import model_dtype
from studio.backends.options import BatchOptions
from studio.backends.qwen3.request import MAX_FRAMES
from studio.errors import ModelUnavailable

SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64)
"""Slots that are chosen by themselves."""

MOST_SLOTS = {"cuda": 64, "mps": 8, "cpu": 8}
"""Beyond these a frame takes longer by as much as it makes more."""

POSITIONS = 2_048
"""Of a slot: the longest sample and the longest line together."""

FEWER_POSITIONS = 1_024
"""Where memory is small: a sample of 15 s and a line of a minute."""

ENOUGH_SLOTS = 8
"""With fewer than these, shorter slots are better than few."""

_STEP = 64  # of positions
_BYTES = {"cuda": 2, "mps": 4, "cpu": 4}  # of a number in the caches
_RESERVE_BYTES = {"cuda": 2_000_000_000, "mps": 1_000_000_000, "cpu": 500_000_000}
"""For prompts while they are read, what the frames' graphs compute with, the nodes of all graphs,
and a library's workspace of each thread and stream: 32 MB each on Hopper."""

_USED_SHARE = 0.9
CODEC_FRAMES = {"cuda": (64, 512), "mps": (64, 512), "cpu": (64, 128)}
"""Of finished lines through the codec at once, at least and at most. More are no faster, and who
listens waits for them."""

CODEC_ROW_FRAMES = 8
"""Of one line at once. Half of it is padded on average, at the line's end."""

STREAM_FRAMES = (1, 2, 4, 8, 16)
"""Of a line that is heard while it is made; any chunk is a sum of these."""

KEPT_SAMPLES = 16
"""Voices of which the codec keeps what their sample comes to."""

_CODEC_FRAME_BYTES = 4_000_000  # 3.4 MB of tensors live at once, and a library's workspace
_CODEC_STATE_BYTES = 5_300_000  # a row's, and its codes and samples
_CODEC_TABLES_BYTES = 34_000_000
_SOUND_SHARE = 0.15


@dataclass(frozen=True, slots=True)
class Dimensions:
    """What of a checkpoint decides how large a slot is; the fields are those of its config.

    Attributes:
        position_numbers: Of the talker's cache at one position, all layers.
        frame_numbers: Of the predictor's cache, all layers and positions.
        hidden: Width of the talker.
        vocabulary: First codes.
        groups: Codes of a frame.
    """

    position_numbers: int
    frame_numbers: int
    hidden: int
    vocabulary: int
    groups: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Dimensions:
        """Read them from a checkpoint's `config.json`."""
        talker = config["talker_config"]
        predictor = talker["code_predictor_config"]
        groups = int(talker["num_code_groups"])
        return cls(
            position_numbers=_cached(talker),
            frame_numbers=_cached(predictor) * groups,
            hidden=int(talker["hidden_size"]),
            vocabulary=int(talker["vocab_size"]),
            groups=groups,
        )

    def beginning_bytes(self, positions: int, device: str) -> int:
        """Memory of a kept beginning: of the cache, so many positions of one line."""
        return self.position_numbers * positions * number_bytes(device)

    def slot_bytes(self, layout: Layout, device: str) -> int:
        """Memory of one slot."""
        frames = layout.max_frames + 1
        numbers = self.position_numbers * layout.positions + self.frame_numbers
        numbers += self.hidden * (frames + 1)  # the text of each frame, and the last state
        return numbers * number_bytes(device) + self.vocabulary + frames * self.groups * 8


USUAL = Dimensions(2 * 28 * 8 * 128, 2 * 5 * 8 * 128 * 16, 1_024, 3_072, 16)
"""Of the 0.6B model."""

_USUAL_STORED_BYTES = 2_500_000_000


@dataclass(frozen=True, slots=True)
class Room:
    """What fits.

    Attributes:
        layout: Slots of the core.
        codec_frames: Frames of finished lines that go through the codec at once.
        slots_bytes: Memory of all slots.
        sound_bytes: What turning frames into sound takes, graphs and kept samples included.
        kept_bytes: What is kept of the voices beside the slots.
    """

    layout: Layout
    codec_frames: int
    slots_bytes: int
    sound_bytes: int
    kept_bytes: int

    @property
    def total_bytes(self) -> int:
        """Memory of all that is reckoned beside the weights."""
        return self.slots_bytes + self.sound_bytes + self.kept_bytes

    def smaller(self) -> Room | None:
        """What to try when it doesn't fit after all; None when there is nothing smaller."""
        slots = max((size for size in SIZES if size < self.layout.slots), default=None)
        if slots is None:
            return None
        each_bytes = self.slots_bytes // self.layout.slots
        return replace(
            self, layout=replace(self.layout, slots=slots), slots_bytes=slots * each_bytes
        )


class TakesMemory(Protocol):
    """A model whose slots have a size."""

    def slot_bytes(self, layout: Layout, device: str) -> int:
        """Memory of one slot."""
        ...


@dataclass(frozen=True, slots=True)
class Beside:
    """What needs memory beside weights and slots.

    Attributes:
        kept_bytes: What is kept of the voices, when as many are kept as ever are.
        sound_bytes: What turning frames into sound takes, at least and at most; None for
            Qwen3-TTS's codec, whose frames at once are chosen.
    """

    kept_bytes: int = 0
    sound_bytes: tuple[int, int] | None = None


ONLY_THE_CODEC = Beside()


def codec_bytes(frames: int) -> int:
    """What the codec takes for so many frames at once.

    That is its state, what its graphs compute with (they take turns, so the largest counts), its
    tables, and what it keeps of samples.
    """
    rows = frames // CODEC_ROW_FRAMES + 1
    kept = (rows + KEPT_SAMPLES) * _CODEC_STATE_BYTES
    return frames * _CODEC_FRAME_BYTES + kept + _CODEC_TABLES_BYTES


def room_for(
    dimensions: TakesMemory,
    free_bytes: int,
    device: str,
    wanted: BatchOptions,
    *,
    lengths: Sequence[int] = (POSITIONS, FEWER_POSITIONS),
    beside: Beside = ONLY_THE_CODEC,
) -> Room:
    """Choose slots and positions for the memory that is free beside the weights.

    What is set is kept; what isn't is chosen: as many slots as pay on the device, of full length
    where at least `ENOUGH_SLOTS` of those fit.

    Args:
        dimensions: How large a slot is.
        free_bytes: Beside the weights.
        device: Where.
        wanted: What is set.
        lengths: Positions to choose from, falling.
        beside: What else needs memory.

    Raises:
        ModelUnavailable: Not even the smallest choice fits, or what is set doesn't.
    """
    spare = free_bytes * _USED_SHARE - _RESERVE_BYTES[device]
    codec_frames, sound = _sound(spare, device, beside.sound_bytes)
    budget = spare - sound - beside.kept_bytes
    layouts = [
        _layout(positions)
        for positions in (lengths if wanted.positions is None else (wanted.positions,))
    ]
    rooms = [
        Room(replace(layout, slots=slots), codec_frames, slots * each, sound, beside.kept_bytes)
        for layout in layouts
        for each in [dimensions.slot_bytes(layout, device)]
        for slots in _counts(wanted, device)
        if slots * each <= budget
    ]
    if not rooms:
        each = dimensions.slot_bytes(layouts[-1], device)
        raise ModelUnavailable(_too_little(min(_counts(wanted, device)) * each, budget))
    enough = min(ENOUGH_SLOTS, MOST_SLOTS[device])
    fitting = [room for room in rooms if room.layout.slots >= enough]
    long = [room for room in fitting if room.layout.positions == layouts[0].positions]
    return max(long or fitting or rooms, key=lambda room: room.layout.slots)


def number_bytes(device: str) -> int:
    """Of a number in the caches; on a card that is there, in the precision that suits it."""
    torch = sys.modules.get("torch")
    if device == "cuda" and torch is not None and torch.cuda.is_available():
        return int(model_dtype(device).itemsize)
    return _BYTES[device]


def free_memory_bytes(device: str) -> int:
    """Memory that nobody uses now; imports torch for an accelerator."""
    if device == "cuda":
        import torch

        return int(torch.cuda.mem_get_info()[0])
    return int(psutil.virtual_memory().available)


def dimensions_in(folder: Path) -> Dimensions:
    """Of the checkpoint in a folder; it was read before, so it can be."""
    return Dimensions.of(json.loads((folder / "config.json").read_text("utf-8")))


def weights_bytes(folder: Path | None, device: str) -> int:
    """What a checkpoint's weights take on a device; they are kept in two bytes a number.

    Args:
        folder: None for the 0.6B model, which isn't here.
        device: Where they would be.
    """
    stored = _USUAL_STORED_BYTES
    if folder is not None:
        stored = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    return stored * number_bytes(device) // 2


def _cached(transformer: Mapping[str, Any]) -> int:
    """Numbers of keys and values at one position."""
    layers, heads = transformer["num_hidden_layers"], transformer["num_key_value_heads"]
    return 2 * int(layers) * int(heads) * int(transformer["head_dim"])


def _sound(spare_bytes: float, device: str, bounds: tuple[int, int] | None) -> tuple[int, int]:
    """The codec's frames at once, and the bytes that sounding takes."""
    least, most = CODEC_FRAMES[device]
    share = int(spare_bytes * _SOUND_SHARE)
    if bounds is not None:
        return most, min(bounds[1], max(bounds[0], share))
    rows = share // _CODEC_FRAME_BYTES // CODEC_ROW_FRAMES
    frames = min(most, max(least, rows * CODEC_ROW_FRAMES))
    return frames, codec_bytes(frames)


def _layout(positions: int) -> Layout:
    rounded = -(-positions // _STEP) * _STEP
    return Layout(slots=1, positions=rounded, max_frames=min(MAX_FRAMES, rounded))


def _counts(wanted: BatchOptions, device: str) -> tuple[int, ...]:
    if wanted.slots is not None:
        return (wanted.slots,)
    return tuple(size for size in SIZES if size <= MOST_SLOTS[device])


def _too_little(needed_bytes: int, budget_bytes: float) -> str:
    return (
        f"There is too little memory to decode lines together: {needed_bytes / 1e9:.1f} GB are "
        f"needed beside the weights, and {max(0.0, budget_bytes) / 1e9:.1f} GB can be had. Unload "
        "other models, set TTS_BATCH_SIZE or TTS_BATCH_POSITIONS to a smaller number, or choose "
        "a backend that makes one line at a time."
    )
