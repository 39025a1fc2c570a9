"""The codec's convolutions for a CUDA card, with one Triton kernel between two of them."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from studio.backends.qwen3.codec import (
    CodecLayer,
    StateLayout,
    WaveDecoder,
    apply_layers,
    build_layer,
    codec_blocks,
    layer_kind,
    read_snake,
)

# A wave is longest where it is nearly sound: there an activation in four steps, a bias, what is
# remembered and what is added back are nine passes over memory, which take as long as the
# convolutions between them once those multiply in TF32. Here they are three.

_BLOCK = 1_024  # values of a channel that one program makes


@triton.jit  # type: ignore[untyped-decorator]
def _snake_kernel(  # noqa: PLR0913 - a kernel gets all it knows as arguments
    wave: tl.tensor,
    bias: tl.tensor,
    rate: tl.tensor,
    depth: tl.tensor,
    before: tl.tensor,
    into: tl.tensor,
    channels: tl.tensor,
    time: tl.tensor,
    wave_row: tl.tensor,
    wave_channel: tl.tensor,
    before_row: tl.tensor,
    has_bias: tl.constexpr,
    kept: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """One block of one channel: what is remembered, then the activation of what is new."""
    line = tl.program_id(0).to(tl.int64)
    row, channel = line // channels, line % channels
    at = tl.program_id(1) * block + tl.arange(0, block)
    inside, is_new = at < kept + time, at >= kept
    start = wave + row * wave_row + channel * wave_channel - kept
    new = tl.load(start + at, mask=inside & is_new, other=0.0)
    if has_bias:
        new += tl.load(bias + channel)
    bent = tl.sin(new * tl.load(rate + channel))
    made = new + bent * bent * tl.load(depth + channel)
    if kept:
        old = tl.load(before + row * before_row + channel * kept + at, mask=at < kept, other=0.0)
        made = tl.where(is_new, made, old)
    tl.store(into + line * (kept + time) + at, made, mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _add_kernel(  # noqa: PLR0913 - a kernel gets all it knows as arguments
    made: tl.tensor,
    bias: tl.tensor,
    wave: tl.tensor,
    channels: tl.tensor,
    time: tl.tensor,
    wave_row: tl.tensor,
    wave_channel: tl.tensor,
    block: tl.constexpr,
) -> None:
    """One block of one channel: a convolution's bias and what it was made of, added to it."""
    line = tl.program_id(0).to(tl.int64)
    row, channel = line // channels, line % channels
    at = tl.program_id(1) * block + tl.arange(0, block)
    inside = at < time
    added = tl.load(wave + row * wave_row + channel * wave_channel + at, mask=inside)
    place = made + line * time + at
    tl.store(place, tl.load(place, mask=inside) + tl.load(bias + channel) + added, mask=inside)


class _FusedSnake:
    """The activation of `codec._SnakeBeta` in one pass."""

    def __init__(self, block: Any, _ledger: StateLayout) -> None:
        self._rate, self._depth = (one.contiguous() for one in read_snake(block))

    def __call__(
        self,
        wave: torch.Tensor,
        _state: torch.Tensor,
        *,
        bias: torch.Tensor | None = None,
        before: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Activate a wave behind what was before.

        Args:
            wave: [rows, channels, time], a view of waves that lie end to end.
            _state: None is kept.
            bias: That the wave lacks yet: [channels].
            before: [rows, channels, kept], which is only copied.

        Returns:
            [rows, channels, kept + time].
        """
        rows, channels, time = wave.shape
        kept = 0 if before is None else before.shape[2]
        made = wave.new_empty(rows, channels, kept + time)
        old = wave if before is None else before
        assert wave.stride(2) == old.stride(2) == 1
        _snake_kernel[rows * channels, triton.cdiv(kept + time, _BLOCK)](
            *(wave, self._rate if bias is None else bias, self._rate, self._depth, old, made),
            *(channels, time, wave.stride(0), wave.stride(1), old.stride(0)),
            has_bias=bias is not None,
            kept=kept,
            block=_BLOCK,
        )
        return made


class _FusedResidualUnit:
    """A residual unit."""

    def __init__(self, block: Any, ledger: StateLayout) -> None:
        self._first, self._second = (_FusedSnake(act, ledger) for act in (block.act1, block.act2))
        self._wide, self._narrow = block.conv1.conv, block.conv2.conv
        assert block.conv1.stride == block.conv2.stride == 1
        assert block.conv2.padding == 0
        self._length = block.conv1.padding
        self._before = ledger.place(self._wide.in_channels, self._length)

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """See `CodecLayer`."""
        before = self._before.of(state)
        mixed = self._first(wave, state, before=before)
        before.copy_(mixed[..., -self._length :])
        mixed = F.conv1d(mixed, self._wide.weight, dilation=self._wide.dilation)
        mixed = self._second(mixed, state, bias=self._wide.bias)
        made = F.conv1d(mixed, self._narrow.weight)
        rows, channels, time = made.shape
        assert made.is_contiguous()
        _add_kernel[rows * channels, triton.cdiv(time, _BLOCK)](
            *(made, self._narrow.bias, wave, channels, time, wave.stride(0), wave.stride(1)),
            block=_BLOCK,
        )
        return made


class FusedWaveDecoder(WaveDecoder):
    """The same with fewer passes over memory; the state is laid out alike."""

    def __init__(self, decoder: Any, ledger: StateLayout) -> None:
        self._parts = [_build_fused(block, ledger) for block in codec_blocks(decoder)]


def _build_fused(block: Any, ledger: StateLayout) -> CodecLayer:
    match layer_kind(block):
        case "DecoderDecoderBlock":
            parts = [_build_fused(part, ledger) for part in block.block]
            return lambda wave, state: apply_layers(parts, wave, state)
        case "DecoderDecoderResidualUnit":
            return _FusedResidualUnit(block, ledger)
        case "SnakeBeta":
            return _FusedSnake(block, ledger)
        case _:
            return build_layer(block, ledger)
