"""One pass through a stack of layers, whatever it attends to.

Rounding follows the reference: norms in float32, rounded before their scale; rotation in the
weights' precision.

Source: `Qwen3TTSTalkerDecoderLayer` of qwen-tts-hf 0.1.1.post1.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, Protocol

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from studio.backends.batched.weights import Layer, Stack

_LEAST_ROWS = 4
"""Below it, a CPU's matrix library takes another way of adding, and a line alone would differ in
its last bits from the same line among others. Full-size weights are read from memory either way,
so that the rows added cost little."""


class Attention(Protocol):
    """Where keys and values are kept, and who sees which."""

    def __call__(self, index: int, turned: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
        """Keep a layer's keys and values, and mix what its queries see.

        Args:
            index: Of the layer.
            turned: Heads after norm and rotation: [rows, kv_heads, group + 2, head_dim].
            plain: The same before; its last one of each group is the value.

        Returns:
            [rows, kv_heads * group * head_dim].
        """
        ...


class Backbone(Protocol):
    """A transformer whose layers are packed, whatever its kind."""

    @property
    def kv_heads(self) -> int:
        """Heads that have a key and a value."""
        ...

    @property
    def group(self) -> int:
        """Query heads to each of them."""
        ...

    @property
    def head_dim(self) -> int:
        """Width of a head."""
        ...

    @property
    def layers(self) -> Sized:
        """As many as there are."""
        ...

    def read(self, x: torch.Tensor, at: torch.Tensor, attend: Attention) -> torch.Tensor:
        """Pass rows through all layers and the last norm.

        Args:
            x: [rows, hidden]; may be overwritten.
            at: Position of each row: int64 [rows].
            attend: Called once a layer.

        Returns:
            [rows, hidden].
        """
        ...


Turn = tuple[torch.Tensor, torch.Tensor]
"""Cosines and signed sines of positions, as rows of `Stack.cos` and `Stack.sin`."""


def run(stack: Stack, x: torch.Tensor, turn: Turn, attend: Attention) -> torch.Tensor:
    """Pass rows through all layers and the last norm.

    Args:
        stack: Whose layers.
        x: [rows, hidden]; is overwritten.
        turn: Of each row's position, or of all: [rows or 1, head_dim] each.
        attend: Called once a layer.

    Returns:
        [rows, hidden].
    """
    cos, sin = (table[:, None, None] for table in turn)  # [rows, 1, 1, head_dim]
    heads_shape = (-1, stack.kv_heads, stack.group + 2, stack.head_dim)
    for index, layer in enumerate(stack.layers):
        plain = times(normed(x, layer.before, stack.eps), layer.heads).view(heads_shape)
        scaled = _head_normed(plain, layer, stack.eps)
        turned = scaled * cos + scaled.roll(stack.head_dim // 2, dims=-1) * sin
        x = plus_times(x, attend(index, turned, plain), layer.out)
        x = plus_times(x, _fed(layer, normed(x, layer.between, stack.eps)), layer.down)
    return normed(x, stack.norm, stack.eps)


def normed(x: torch.Tensor, scale: torch.Tensor, eps: float) -> torch.Tensor:
    """Root-mean-square norm over the last dimension."""
    return F.rms_norm(x, x.shape[-1:], None, eps) * scale


def _head_normed(plain: torch.Tensor, layer: Layer, eps: float) -> torch.Tensor:
    return plain if layer.head_scale is None else normed(plain, layer.head_scale, eps)


def times(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Rows times a matrix, each row to the bit the same in any company.

    Args:
        x: [rows, in].
        weight: [out, in].
        bias: [out].

    Returns:
        [rows, out].
    """
    return F.linear(_enough(x), weight, bias)[: len(x)]


def plus_times(x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The same of y, added to x in one go; x is overwritten."""
    return _enough(x).addmm_(_enough(y), weight.t())[: len(x)]


def _enough(x: torch.Tensor) -> torch.Tensor:
    """Rows as they are, or on a CPU with rows of zeros below them."""
    lacking = _LEAST_ROWS - len(x)
    return x if lacking <= 0 or x.is_cuda else F.pad(x, (0, 0, 0, lacking))


def _fed(layer: Layer, x: torch.Tensor) -> torch.Tensor:
    gate, up = times(x, layer.gate_up).chunk(2, dim=1)
    return F.silu(gate) * up
