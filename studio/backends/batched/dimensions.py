"""What of a checkpoint decides how much memory its lines take."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studio.backends.batched.core_contract import Layout
from studio.backends.device import model_dtype


@dataclass(frozen=True, slots=True)
class Dimensions:
    """What of a checkpoint decides how large a slot is; the fields are those of its config.

    Attributes:
        position_numbers: Of the talker's cache at one position, all layers.
        frame_numbers: Of the predictor's heads, all layers and positions of a frame.
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
            frame_numbers=_heads(predictor) * groups,
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


USUAL = Dimensions(2 * 28 * 8 * 128, 2 * 5 * 32 * 128 * 16, 1_024, 3_072, 16)
"""Of the 0.6B model."""


_USUAL_STORED_BYTES = 2_500_000_000


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


def number_bytes(device: str) -> int:
    """Of a number in the caches; on a card that is there, in the precision that suits it."""
    torch = sys.modules.get("torch")
    if device == "cuda" and torch is not None and torch.cuda.is_available():
        return int(model_dtype(device).itemsize)
    return _BYTES[device]


_BYTES = {"cuda": 2, "mps": 4, "cpu": 4}  # of a number in the caches


def _cached(transformer: Mapping[str, Any]) -> int:
    """Numbers of keys and values at one position."""
    layers, heads = transformer["num_hidden_layers"], transformer["num_key_value_heads"]
    return 2 * int(layers) * int(heads) * int(transformer["head_dim"])


def _heads(transformer: Mapping[str, Any]) -> int:
    """The same of all heads, queries too, each kept after rotation and before."""
    shared = int(transformer["num_key_value_heads"])
    each = int(transformer["num_attention_heads"]) // shared + 2
    return _cached(transformer) * each
