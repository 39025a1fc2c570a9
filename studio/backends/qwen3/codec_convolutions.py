"""The codec's convolutions, each going on from the end of what it read before.

A causal convolution pads its input with zeros at the start; here the zeros are what it remembers
of a line that has not begun. A transposed one reaches beyond its last frame; what spills over is
kept and added to the next frames. So nothing is computed twice, and chunks of any size joined are
the whole line.

Source: `Qwen3TTSTokenizerV2Decoder` and its blocks of qwen-tts-hf 0.1.1.post1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from studio.backends.qwen3.codec_state import Ledger

Part = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Takes a wave [rows, channels, time] and the state; gives the next wave. May write over both."""


def parts_of(decoder: Any, ledger: Ledger) -> list[Part]:
    """All that lies between the transformer and the samples, in order."""
    blocks = [*(block for stage in decoder.upsample for block in stage), *decoder.decoder]
    return [_part(block, ledger) for block in blocks]


def _part(block: Any, ledger: Ledger) -> Part:
    kinds: dict[str, Callable[[Any, Ledger], Part]] = {
        "CausalConvNet": Convolution,
        "CausalTransConvNet": _Stretch,
        "ConvNeXtBlock": _Mixer,
        "DecoderDecoderBlock": _Block,
        "DecoderDecoderResidualUnit": _Unit,
        "SnakeBeta": _Snake,
    }
    return kinds[type(block).__name__.removeprefix("Qwen3TTSTokenizerV2")](block, ledger)


class Convolution:
    """A causal convolution that remembers the end of its input."""

    def __init__(self, block: Any, ledger: Ledger) -> None:
        """Take the package's `CausalConvNet`; it is only read."""
        assert block.stride == 1, "a stride would make what is remembered depend on the place"
        self._conv = block.conv
        channels, self._length = block.conv.in_channels, block.padding
        self._before = ledger.place(channels, self._length) if self._length else None

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """See `Part`."""
        if self._before is not None:
            before = self._before.of(state)
            wave = torch.cat([before, wave], dim=-1)
            before.copy_(wave[..., -self._length :])
        return self._conv(wave)


class _Stretch:
    """A transposed convolution that remembers what reached beyond its output."""

    def __init__(self, block: Any, ledger: Ledger) -> None:
        self._conv = block.conv
        self._length = block.right_pad
        self._bias = block.conv.bias.detach()[:, None]
        channels = block.conv.out_channels
        self._spilled = ledger.place(channels, self._length) if self._length else None

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        out = self._conv(wave)
        if self._spilled is None:
            return out
        spilled = self._spilled.of(state)
        out[..., : self._length] += spilled
        # The bias is added to every output, so to the next frames' once more.
        spilled.copy_(out[..., -self._length :] - self._bias)
        return out[..., : -self._length]


class _Mixer:
    """A ConvNeXt block."""

    def __init__(self, block: Any, ledger: Ledger) -> None:
        self._block = block
        self._depthwise = Convolution(block.dwconv, ledger)

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        block = self._block
        mixed = block.norm(self._depthwise(wave, state).transpose(1, 2))
        mixed = block.pwconv2(block.act(block.pwconv1(mixed)))
        return wave + (block.gamma * mixed).transpose(1, 2)


class _Snake:
    """The activation x + sin(ax)² / b, with one pass of memory for each of its four steps."""

    def __init__(self, block: Any, _ledger: Ledger) -> None:
        self._rate = block.alpha.detach().exp()[:, None]
        self._depth = 1 / (block.beta.detach().exp() + block.no_div_by_zero)[:, None]

    def __call__(self, wave: torch.Tensor, _state: torch.Tensor) -> torch.Tensor:
        bent = (wave * self._rate).sin_().square_()
        return torch.addcmul(wave, bent, self._depth)


class _Unit:
    """A residual unit."""

    def __init__(self, block: Any, ledger: Ledger) -> None:
        self._parts = [
            _part(part, ledger) for part in (block.act1, block.conv1, block.act2, block.conv2)
        ]

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        return passed(self._parts, wave, state).add_(wave)


class _Block:
    """A stretch and what follows it at that rate."""

    def __init__(self, block: Any, ledger: Ledger) -> None:
        self._parts = [_part(part, ledger) for part in block.block]

    def __call__(self, wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        return passed(self._parts, wave, state)


def passed(parts: Iterable[Part], wave: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    """A wave through parts, one after the other."""
    for part in parts:
        wave = part(wave, state)
    return wave
