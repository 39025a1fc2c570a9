"""The codec alone, in float32 and in TF32, and how far the second is from the first."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from benchmarks.metrics import EngineMetrics, track_memory
from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.backends.device import prepare
from studio.backends.qwen3.batched_codec import BatchedCodec, CodecInput
from studio.backends.qwen3.qwen3_memory import CODEC_ROW_FRAMES
from studio.backends.qwen3.qwen3_model import load_model

_LINE_FRAMES = 4 * CODEC_ROW_FRAMES
_CODES = 2_048
_DROPPED_BITS = 13  # of float32's 23 bits of mantissa TF32 keeps 10


def measure_codec(folder: Path, device: str, slots: int, *, tf32: bool) -> EngineMetrics:
    """Decode as many lines of 2.6 s as there are slots.

    With `tf32` the notes hold the ratio of signal to noise against float32, in dB. Where the device
    has no TF32 the operands are rounded to it, which gives the ratio and not the speed.
    """
    decoder = load_model(folder, device, graphs=False).codec_decoder
    lines = _random_lines(slots, int(decoder.config.num_quantizers))
    with _rounding(device, tf32=False):
        expected = _decode(decoder, lines) if tf32 else None
    with _rounding(device, tf32=tf32), track_memory(device) as memory:
        began_s, cpu_s = 0.0, 0.0

        def start() -> None:
            nonlocal began_s, cpu_s
            began_s, cpu_s = time.perf_counter(), time.process_time()

        waves = _decode(decoder, lines, then=start)
        wall_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    name = f"codec alone, {slots} lines, {'TF32' if tf32 else 'float32'}"
    frames = slots * _LINE_FRAMES
    return EngineMetrics(
        name + (" imitated" if tf32 and device != "cuda" else ""),
        sum(map(len, waves)) / STUDIO_RATE_HZ,
        wall_s,
        (),
        memory(),
        frame_s=wall_s / frames,
        lines=slots,
        cpu_s=cpu_s,
        notes="" if expected is None else f"SNR {signal_to_noise_db(expected, waves):.1f} dB",
    )


def signal_to_noise_db(expected: Sequence[Samples], made: Sequence[Samples]) -> float:
    """Power of what is expected to that of the difference; infinite where there is none."""
    signal = sum(float(np.square(one, dtype=np.float64).sum()) for one in expected)
    differences = (
        one.astype(np.float64) - other for one, other in zip(made, expected, strict=True)
    )
    noise = sum(float(np.square(one).sum()) for one in differences)
    return 10 * math.log10(signal / noise) if noise else math.inf


def _random_lines(count: int, groups: int) -> list[CodecInput]:
    chance = torch.Generator().manual_seed(count)
    codes = torch.randint(0, _CODES, (count, _LINE_FRAMES, groups), generator=chance)
    return [CodecInput(one) for one in codes]


def _decode(
    decoder: Any, lines: Sequence[CodecInput], *, then: Callable[[], None] = lambda: None
) -> list[Samples]:
    """Decode lines twice, the second time after `then`; returns their waves."""
    codec = BatchedCodec(decoder, convolved_at_once=len(lines) * CODEC_ROW_FRAMES)
    try:
        codec.prepare()
        codec.decode(lines)
        then()
        return codec.decode(lines)
    finally:
        codec.close()


@contextmanager
def _rounding(device: str, *, tf32: bool) -> Iterator[None]:
    """Convolutions in TF32 as the device has it, imitated where it has none, or in float32."""
    imitates = tf32 and device != "cuda"
    imitated: AbstractContextManager[Any] = ImitatedTf32() if imitates else nullcontext()
    prepare(device, tf32=tf32)
    try:
        with imitated:
            yield
    finally:
        prepare(device, tf32=True)


class ImitatedTf32(TorchFunctionMode):  # type: ignore[misc]
    """Rounds what convolutions multiply to TF32's 10 bits of mantissa; sums stay in float32."""

    _MULTIPLYING = (torch.conv1d, torch.conv_transpose1d, F.conv1d, F.conv_transpose1d)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Round the first two operands of a multiplication; a bias is only added."""
        if func in self._MULTIPLYING:
            args = (*map(round_to_tf32, args[:2]), *args[2:])
        return func(*args, **(kwargs or {}))


def round_to_tf32(x: torch.Tensor) -> torch.Tensor:
    """The nearest numbers of 10 bits of mantissa, halves to the even one: float32."""
    bits = x.contiguous().view(torch.int32)
    half = (1 << (_DROPPED_BITS - 1)) - 1
    bits = bits + half + ((bits >> _DROPPED_BITS) & 1)
    return ((bits >> _DROPPED_BITS) << _DROPPED_BITS).view(torch.float32)
