"""The memory that Chatterbox needs: weights, T3's slots, S3Gen, and cached voices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from studio.backends.batching.memory_plan import MemoryNeeds, MemoryPlan, plan_memory
from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.chatterbox.variants import MAX_TOKENS, ChatterboxVariant
from studio.backends.hub.weights import needed_files
from studio.backends.options import BatchOptions

T3_POSITIONS = {
    "chatterbox": (1_408, 1_088),
    "chatterbox-multilingual": (2_240, 1_088),
    "chatterbox-turbo": (1_728, 1_280),
}
"""Positions of a slot: the longest line with its prompt, up to its bound; and where memory is
small, any line that the backend takes, at a pace of 11 characters a second (4 of Chinese). Below
that there are fewer slots, as the longest line has to fit.

A Chinese character is up to 6 tokens of text, one of another script at most 3; a piece has at most
80 Chinese ones.
"""

MAX_CACHED_PREFIXES = 8
"""Voices whose part of the cache is kept."""

PREFIX_POSITIONS = {"chatterbox": 34, "chatterbox-multilingual": 34, "chatterbox-turbo": 376}
"""Positions of a voice's part in the released models: 74 MB in turbo, 17 MB in English."""

_PARTS_BYTES = 200_000_000  # of prompts: 128 voices at most, a megabyte and a half each
_LINE_SOUND_BYTES = {
    "chatterbox": 500_000_000,
    "chatterbox-multilingual": 500_000_000,
    "chatterbox-turbo": 250_000_000,
}
"""For a line of 10 s behind a sample of 10 s, in S3Gen: attention makes it grow with the square.
Guidance doubles it. Where it doesn't suffice, lines are sounded one by one."""

_MAX_BATCH_LINES = {"cuda": 8, "mps": 1, "cpu": 1}
_STORED_BYTES = {
    "chatterbox": 3_200_000_000,
    "chatterbox-multilingual": 3_200_000_000,
    "chatterbox-turbo": 3_000_000_000,
}
_NUMBER_BYTES = 4
_HALF_BYTES = 2


@dataclass(frozen=True, slots=True)
class T3Dims:
    """The dimensions of a T3 that decide how large a slot is.

    Attributes:
        position_numbers: Of its cache at one position: all layers, all rows of a line.
    """

    position_numbers: int
    vocabulary: int
    number_bytes: int = _NUMBER_BYTES

    @classmethod
    def of(cls, t3: Any, *, half: bool) -> T3Dims:
        """Dimensions of the package's loaded T3; `half` where its cache is in 16 bits."""
        rows = 1 if t3.is_gpt else 2
        config = t3.cfg
        width = config.hidden_size if t3.is_gpt else config.num_key_value_heads * config.head_dim
        cached = 2 * rows * config.num_hidden_layers * width
        size = _HALF_BYTES if half else _NUMBER_BYTES
        return cls(cached, t3.speech_head.weight.shape[0], size)

    def prefix_bytes(self, positions: int) -> int:
        """Bytes of a cached prefix: the KV cache of one line, for this many positions."""
        return self.position_numbers * positions * self.number_bytes

    def slot_bytes(self, layout: SlotLayout, _device: str) -> int:
        """Bytes of one slot."""
        kept = self.position_numbers * layout.positions * self.number_bytes
        return kept + self.vocabulary + layout.max_frames * 8


RELEASED_T3_DIMS = {
    "chatterbox": T3Dims(2 * 2 * 30 * 1_024, 8_194),
    "chatterbox-multilingual": T3Dims(2 * 2 * 30 * 1_024, 8_194),
    "chatterbox-turbo": T3Dims(2 * 24 * 1_024, 6_563),
}
"""The released models' own."""


def plan_t3_memory(
    variant: ChatterboxVariant,
    dimensions: T3Dims,
    free_bytes: int,
    device: str,
    batch: BatchOptions,
) -> MemoryPlan:
    """Choose slots and positions; see `plan_memory`."""
    line_bytes = _LINE_SOUND_BYTES[variant.name]
    beginnings = count_prefix_bytes(variant, dimensions)
    most_bytes = _MAX_BATCH_LINES[device] * line_bytes
    needs = MemoryNeeds(
        max_frames=MAX_TOKENS,
        plan_sound=lambda share_bytes: (0, min(most_bytes, max(line_bytes, share_bytes))),
        kept_bytes=beginnings + _PARTS_BYTES,
        lengths=T3_POSITIONS[variant.name],
    )
    room = plan_memory(dimensions, free_bytes, device, batch, needs)
    return replace(room, layout=replace(room.layout, kept_bytes=beginnings))


def count_prefix_bytes(variant: ChatterboxVariant, dimensions: T3Dims) -> int:
    """Bytes of the prefix cache when it is full."""
    return MAX_CACHED_PREFIXES * dimensions.prefix_bytes(PREFIX_POSITIONS[variant.name])


def count_stored_bytes(variant: ChatterboxVariant, folder: Path | None) -> int:
    """Bytes of a variant's weights, which keep their stored dtype."""
    if folder is None:
        return _STORED_BYTES[variant.name]
    return sum(path.stat().st_size for path in needed_files(folder, variant.needs))
