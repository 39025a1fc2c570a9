"""The time below which no frame can be made: everything it needs, read once from memory."""

from __future__ import annotations

import time
from typing import Any

import torch

from studio.backends.batched.dimensions import Dimensions

_COPIED_BYTES = 256_000_000
_COPIES = 8


def ideal_frame_s(
    talker: Any, dimensions: Dimensions, device: str, slots: int, mean_frames: float
) -> float:
    """Seconds that reading weights and caches takes at the speed of a copy on this device.

    Args:
        talker: The package's `Qwen3TTSTalkerForConditionalGeneration`, with all its layers.
        dimensions: Of the same checkpoint.
        device: Where it is.
        slots: Lines decoded together.
        mean_frames: Of a line; on average half of them are in the cache.
    """
    number_bytes = talker.codec_head.weight.element_size()
    cached = dimensions.position_numbers * slots * mean_frames / 2
    moved_bytes = _weights_bytes(talker) + cached * number_bytes
    return moved_bytes / copied_bytes_per_s(device)


def copied_bytes_per_s(device: str) -> float:
    """Bytes that this device reads and writes a second when it copies: the best of some copies."""
    source = torch.ones(_COPIED_BYTES, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    best_s = min(_seconds(source, target, device) for _ in range(_COPIES))
    return 2 * _COPIED_BYTES / best_s


def _seconds(source: torch.Tensor, target: torch.Tensor, device: str) -> float:
    _settle(device)
    began_s = time.perf_counter()
    target.copy_(source)
    _settle(device)
    return time.perf_counter() - began_s


def _settle(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _weights_bytes(talker: Any) -> int:
    """What a frame reads: the talker once, the predictor's layers once a code, each head once."""
    predictor = talker.code_predictor
    rest = _bytes(predictor.model.layers) * len(predictor.lm_head) + _bytes(predictor.lm_head)
    return _bytes(talker.model.layers) + _bytes(talker.codec_head) + rest


def _bytes(module: Any) -> int:
    return sum(parameter.nbytes for parameter in module.parameters())
