"""The memory that Qwen3-TTS takes: weights, the talker's slots, and the codec."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from studio.backends.batching.memory_plan import MemoryNeeds, MemoryPlan, plan_memory
from studio.backends.batching.runner_contract import PREFIX_CACHE_BYTES, SlotLayout
from studio.backends.device import model_dtype
from studio.backends.options import BatchOptions
from studio.backends.qwen3.checkpoint import MAX_FRAMES


@dataclass(frozen=True, slots=True)
class TalkerDims:
    """The dimensions of a checkpoint that decide how large a slot is, from its config.

    Attributes:
        position_numbers: Of the talker's cache at one position, all layers.
        frame_numbers: Of the predictor's heads, all layers and positions of a frame.
        vocabulary: First codes.
    """

    position_numbers: int
    frame_numbers: int
    hidden: int
    vocabulary: int
    groups: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> TalkerDims:
        """Read them from a checkpoint's `config.json`."""
        talker = config["talker_config"]
        predictor = talker["code_predictor_config"]
        groups = int(talker["num_code_groups"])
        return cls(
            position_numbers=_kv_numbers(talker),
            frame_numbers=_qkv_numbers(predictor) * groups,
            hidden=int(talker["hidden_size"]),
            vocabulary=int(talker["vocab_size"]),
            groups=groups,
        )

    def prefix_bytes(self, positions: int, device: str) -> int:
        """Memory of a kept beginning: of the cache, so many positions of one line."""
        return self.position_numbers * positions * number_bytes(device)

    def slot_bytes(self, layout: SlotLayout, device: str) -> int:
        """Memory of one slot."""
        frames = layout.max_frames + 1
        numbers = self.position_numbers * layout.positions + self.frame_numbers
        numbers += self.hidden * (frames + 1)  # the text of each frame, and the last state
        return numbers * number_bytes(device) + self.vocabulary + frames * self.groups * 8


RELEASED_DIMS = TalkerDims(2 * 28 * 8 * 128, 2 * 5 * 32 * 128 * 16, 1_024, 3_072, 16)
"""Dimensions of the 0.6B model."""


_RELEASED_STORED_BYTES = 2_500_000_000


def read_dims(folder: Path) -> TalkerDims:
    """Dimensions of the checkpoint in a folder, which was read before."""
    return TalkerDims.of(json.loads((folder / "config.json").read_text("utf-8")))


def count_weights_bytes(folder: Path | None, device: str) -> int:
    """Memory of the weights on a device; of the 0.6B model's where there is no folder."""
    stored = _RELEASED_STORED_BYTES
    if folder is not None:
        stored = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    return stored * number_bytes(device) // 2


def number_bytes(device: str) -> int:
    """Bytes of a number in the caches, in the precision that suits the card that is there."""
    torch = sys.modules.get("torch")
    if device == "cuda" and torch is not None and torch.cuda.is_available():
        return int(model_dtype(device).itemsize)
    return _BYTES[device]


_BYTES = {"cuda": 2, "mps": 4, "cpu": 4}  # of a number in the caches


def _kv_numbers(transformer: Mapping[str, Any]) -> int:
    """Numbers of keys and values at one position."""
    layers, heads = transformer["num_hidden_layers"], transformer["num_key_value_heads"]
    return 2 * int(layers) * int(heads) * int(transformer["head_dim"])


def _qkv_numbers(transformer: Mapping[str, Any]) -> int:
    """Numbers of all heads, queries too, each kept after rotation and before."""
    shared = int(transformer["num_key_value_heads"])
    each = int(transformer["num_attention_heads"]) // shared + 2
    return _kv_numbers(transformer) * each


CODEC_FRAMES = {"cuda": (64, 512), "mps": (64, 512), "cpu": (32, 32)}
"""Frames of finished lines in the codec at once, at least and at most. More are no faster, and who
listens waits for them; a CPU's caches hold no more."""

CODEC_ROW_FRAMES = 8
"""Frames of one line at once. Half of it is padded on average, at the line's end."""

STREAM_CHUNK_FRAMES = (1, 2, 4, 8, 16)
"""Frames of a streamed line's pieces; any chunk is a sum of these."""

MAX_STREAMED_LINES = 2
"""Streamed lines that are decoded in one go: at the play-head, and after."""

MAX_CACHED_SAMPLES = 16
"""Voices of which the codec keeps what their sample comes to."""

CODEC_FRAME_BYTES = 4_000_000
"""3.4 MB of tensors live at once, and a library's workspace. On CUDA the allocator holds 1.75 to
1.85 times as much (4.6 to 4.9 GB for 512 frames on an H100), which the plan's reserve bears."""

_CODEC_STATE_BYTES = 5_300_000  # a row's, and its codes and samples
_CODEC_TABLES_BYTES = 34_000_000
_CODEC_PACKED_BYTES = {"cpu": 300_000_000}  # a second copy of weights, in another order


def codec_bytes(frames: int, device: str) -> int:
    """Memory of the codec for so many frames at once.

    That is its state, what its graphs compute with (those of finished lines take turns, so the
    largest counts, and those of chunks too), its tables, and what it keeps of samples.
    """
    rows = frames // CODEC_ROW_FRAMES + MAX_STREAMED_LINES
    kept = (rows + MAX_CACHED_SAMPLES) * _CODEC_STATE_BYTES
    streamed = MAX_STREAMED_LINES * max(STREAM_CHUNK_FRAMES)
    packed = _CODEC_PACKED_BYTES.get(device, 0)
    return (frames + streamed) * CODEC_FRAME_BYTES + kept + _CODEC_TABLES_BYTES + packed


def plan_codec(budget_bytes: int, device: str) -> tuple[int, int]:
    """The codec's frames at once, and the bytes they take; at least the device's fewest."""
    least, most = CODEC_FRAMES[device]
    rows = budget_bytes // CODEC_FRAME_BYTES // CODEC_ROW_FRAMES
    frames = min(most, max(least, rows * CODEC_ROW_FRAMES))
    return frames, codec_bytes(frames, device)


def plan_talker_memory(
    dimensions: TalkerDims, free_bytes: int, device: str, batch: BatchOptions
) -> MemoryPlan:
    """Choose slots and positions; see `plan_memory`."""
    needs = MemoryNeeds(
        max_frames=MAX_FRAMES,
        plan_sound=partial(plan_codec, device=device),
        kept_bytes=PREFIX_CACHE_BYTES[device],
    )
    return plan_memory(dimensions, free_bytes, device, batch, needs)
