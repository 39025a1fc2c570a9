"""The codec's convolutions for an x86 CPU: channels last, weights as oneDNN keeps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from studio.backends.batching.kernel_set import can_run_triton
from studio.backends.qwen3.codec import (
    CodecLayer,
    LinearFn,
    StateLayout,
    WaveDecoder,
    apply_layers,
    codec_blocks,
    read_snake,
)

# torch keeps a wave as [rows, channels, time]. There its convolutions copy their weights into
# oneDNN's order at each call, which takes longer than a short chunk itself; those of one tap go to
# another library, which is slow on some processors; and what a transposed one makes has to be put
# in order. As [rows, time, channels] all of them are oneDNN's, and nothing is put in order: one of
# one tap is a matrix, and a transposed one is a plain one with output channels for each place.
#
# Source: `mkldnn/Conv.cpp` and `Linear.cpp` of torch 2.11; its own compiler calls these operations.

ConvFn = Callable[[torch.Tensor], torch.Tensor]
"""Takes [rows, time, channels in] to [rows, fewer by the taps' reach, channels out]."""

MakeConvFn = Callable[[torch.Tensor, "torch.Tensor | None", int, int], ConvFn]
"""Makes a convolution of a weight, [out, in a group, taps], a bias, a dilation and groups."""


def can_pack(device: torch.device) -> bool:
    """Whether a device has these kernels at their speed: an x86 CPU with AVX2."""
    capability = torch.backends.cpu.get_cpu_capability()
    return (
        device.type == "cpu"
        and torch.backends.mkldnn.is_available()
        and capability in ("AVX2", "AVX512")
    )


def choose_waves(device: torch.device) -> type[WaveDecoder]:
    """What suits a device."""
    if device.type == "cuda" and can_run_triton():
        from studio.backends.qwen3.triton_codec import FusedWaveDecoder

        return FusedWaveDecoder
    return PackedWaveDecoder if can_pack(device) else WaveDecoder


def pack_conv(
    weight: torch.Tensor, bias: torch.Tensor | None, dilation: int = 1, groups: int = 1
) -> ConvFn:
    """A convolution whose weight is in oneDNN's order."""
    if weight.shape[2] == groups == 1:
        return _pack_matrix(weight[:, :, 0], bias)
    shape = [0, 0], [1, 1], [1, dilation], groups  # padding, stride, dilation
    flat = weight.detach().float()[:, :, None].contiguous(memory_format=torch.channels_last)
    like = [1, flat.shape[1] * groups, 1, _USUAL]
    packed = torch.ops.mkldnn._reorder_convolution_weight(flat, *shape, like)
    operation = torch.ops.mkldnn._convolution_pointwise

    def convolve(wave: torch.Tensor) -> torch.Tensor:
        image = wave[:, None].permute(0, 3, 1, 2)  # [rows, channels, 1, time], the same memory
        made: torch.Tensor = operation(image, packed, bias, *shape, "none", [], "")
        return made.permute(0, 2, 3, 1)[:, 0]

    return convolve


def _pack_matrix(weight: torch.Tensor, bias: torch.Tensor | None) -> ConvFn:
    """A convolution of one tap: oneDNN's own kernels for those are slow for all but one length."""
    packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().float().contiguous(), _USUAL)
    operation = torch.ops.mkldnn._linear_pointwise

    def multiply(wave: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = operation(wave.flatten(0, 1), packed, bias, "none", [], "")
        return made.unflatten(0, wave.shape[:2])

    return multiply


_USUAL = 256  # positions; the order of a weight depends a little on them, the result doesn't


class PackedWaveDecoder(WaveDecoder):
    """The same with weights in oneDNN's order, and another state.

    A row is the same whatever other rows are decoded with it: to the last bit where the processor
    has AVX-512, elsewhere to 4e-7.
    """

    @staticmethod
    def make_conv(
        weight: torch.Tensor, bias: torch.Tensor | None, dilation: int, groups: int
    ) -> ConvFn:
        """A convolution, as `pack_conv` makes it."""
        return pack_conv(weight, bias, dilation, groups)

    @classmethod
    def pack_linear(cls, module: Any) -> LinearFn:
        """A convolution of one tap, which is the same."""
        return cls.make_conv(module.weight[:, :, None], module.bias, 1, 1)

    @classmethod
    def pack_books(cls, conv: Any) -> LinearFn:
        """Its one tap."""
        return cls.make_conv(conv.weight, conv.bias, 1, 1)

    @classmethod
    def pack_first(cls, block: Any, ledger: StateLayout) -> CodecLayer:
        """With its weight in oneDNN's order."""
        return _PackedCausalConv.of(block, ledger, cls.make_conv)

    def __init__(self, decoder: Any, ledger: StateLayout) -> None:
        make = self.make_conv
        self._parts = [_build_layer(block, ledger, make) for block in codec_blocks(decoder)]

    def __call__(self, latents: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Decode the next frames: [rows, frames, width] to [rows, samples]."""
        return apply_layers(self._parts, latents, state)[:, :, 0]


def _build_layer(block: Any, ledger: StateLayout, make_conv: MakeConvFn) -> CodecLayer:
    kinds: dict[str, Callable[[Any, StateLayout, MakeConvFn], CodecLayer]] = {
        "CausalConvNet": _PackedCausalConv.of,
        "CausalTransConvNet": _PackedTransposedConv,
        "ConvNeXtBlock": _PackedConvNeXtBlock,
        "DecoderDecoderBlock": _PackedUpsampleBlock,
        "DecoderDecoderResidualUnit": _PackedResidualUnit,
        "SnakeBeta": _PackedSnakeBeta,
    }
    name = type(block).__name__.removeprefix("Qwen3TTSTokenizerV2")
    return kinds[name](block, ledger, make_conv)


class _PackedCausalConv:
    """A causal convolution that keeps the end of its input for the next call."""

    def __init__(self, conv: ConvFn, before: int, channels: int, ledger: StateLayout) -> None:
        self._conv = conv
        self._length = before
        self._before = ledger.place(before, channels) if before else None

    @classmethod
    def of(cls, block: Any, ledger: StateLayout, make_conv: MakeConvFn) -> _PackedCausalConv:
        """Of the package's `CausalConvNet`."""
        assert block.stride == 1, "a stride would make what is remembered depend on the place"
        conv = block.conv
        made = make_conv(conv.weight, conv.bias, conv.dilation[0], conv.groups)
        return cls(made, block.padding, conv.in_channels, ledger)

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        if self._before is not None:
            before = self._before.of(state)
            wave = torch.cat([before, wave], dim=1)
            before.copy_(wave[:, -self._length :])
        return self._conv(wave)


class _PackedTransposedConv:
    """A transposed convolution: each input makes `stride` outputs, with those before it."""

    def __init__(self, block: Any, ledger: StateLayout, make_conv: MakeConvFn) -> None:
        conv, stride = block.conv, block.conv.stride[0]
        channels, out, taps = conv.weight.shape
        assert taps % stride == 0, "an output would be made of different numbers of inputs"
        assert block.right_pad == taps - stride, "what reaches beyond the input is cut off"
        before = taps // stride - 1
        by_place = conv.weight.detach().view(channels, out, before + 1, stride)
        weight = by_place.permute(3, 1, 0, 2).flip(-1).flatten(0, 1)
        made = make_conv(weight, conv.bias.detach().repeat(stride), 1, 1)
        self._conv = _PackedCausalConv(made, before, channels, ledger)
        self._shape = stride, out

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        return self._conv(wave, state).unflatten(2, self._shape).flatten(1, 2)


class _PackedConvNeXtBlock:
    """A ConvNeXt block."""

    def __init__(self, block: Any, ledger: StateLayout, make_conv: MakeConvFn) -> None:
        self._block = block
        self._depthwise = _PackedCausalConv.of(block.dwconv, ledger, make_conv)
        self._wider, self._narrower = (
            make_conv(linear.weight[:, :, None], linear.bias, 1, 1)
            for linear in (block.pwconv1, block.pwconv2)
        )

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        mixed = self._wider(self._block.norm(self._depthwise(wave, state)))
        return torch.addcmul(wave, self._block.gamma, self._narrower(self._block.act(mixed)))


class _PackedSnakeBeta:
    """The activation x + sin(ax)² / b."""

    def __init__(self, block: Any, _ledger: StateLayout, _make_conv: MakeConvFn) -> None:
        self._rate, self._depth = read_snake(block)

    def __call__(self, wave: torch.Tensor, _state: torch.Tensor) -> torch.Tensor:
        bent = (wave * self._rate).sin_().square_()
        return torch.addcmul(wave, bent, self._depth)


class _PackedUpsampleBlock:
    """An upsampling convolution and the layers that follow at its rate."""

    def __init__(self, block: Any, ledger: StateLayout, make_conv: MakeConvFn) -> None:
        self._parts = [_build_layer(part, ledger, make_conv) for part in block.block]

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        return apply_layers(self._parts, wave, state)


class _PackedResidualUnit:
    """A residual unit."""

    def __init__(self, block: Any, ledger: StateLayout, make_conv: MakeConvFn) -> None:
        parts = block.act1, block.conv1, block.act2, block.conv2
        self._parts = [_build_layer(part, ledger, make_conv) for part in parts]

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        return apply_layers(self._parts, wave, state).add_(wave)
