"""One pass through a stack of layers, whatever it attends to.

Norms and rotation are rounded less often than in the reference, which in 16 bits brings the states
nearer to those of float32, and in float32 changes none of the codes.

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
            [rows, group * kv_heads * head_dim], as attention leaves them.
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
    parts, layers = stack.parts, stack.layers
    turned, plain = parts.heads(x, layers[0], turn)
    for index, layer in enumerate(layers):
        mixed = attend(index, turned, plain)
        if index + 1 < len(layers):
            x, turned, plain = parts.between(x, mixed, layer, layers[index + 1], turn)
        else:
            x = parts.fed(x, mixed, layer)
    return normed(x, stack.norm, layers[-1].eps)


def heads(x: torch.Tensor, layer: Layer, turn: Turn) -> tuple[torch.Tensor, torch.Tensor]:
    """What a layer attends with: its heads after norm and rotation, and before.

    Args:
        x: [rows, hidden].
        layer: Whose.
        turn: As for `run`.

    Returns:
        [rows, kv_heads, group + 2, head_dim] each.
    """
    cos, sin = (table[:, None, None] for table in turn)  # [rows or 1, 1, 1, head_dim]
    plain = times(normed(x, layer.before, layer.eps), layer.heads).unflatten(1, layer.shape)
    scaled = plain
    if layer.head_scale is not None:
        scaled = F.rms_norm(plain, plain.shape[-1:], None, layer.eps) * layer.head_scale
    turned = torch.addcmul(scaled * cos, scaled.roll(plain.shape[-1] // 2, dims=-1), sin)
    return turned, plain


def fed(x: torch.Tensor, mixed: torch.Tensor, layer: Layer) -> torch.Tensor:
    """Add to x what was attended to, and what the layer makes of both; x may be overwritten."""
    x = plus_times(x, mixed, layer.out)
    gate, up = times(normed(x, layer.between, layer.eps), layer.gate_up).chunk(2, dim=1)
    return plus_times(x, F.silu(gate) * up, layer.down)


def between(
    x: torch.Tensor, mixed: torch.Tensor, layer: Layer, following: Layer, turn: Turn
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`fed` of a layer, and then `heads` of the one that follows."""
    x = fed(x, mixed, layer)
    return x, *heads(x, following, turn)


def normed(x: torch.Tensor, scale: torch.Tensor, eps: float) -> torch.Tensor:
    """Root-mean-square norm over the last dimension."""
    return F.rms_norm(x, x.shape[-1:], scale, eps)


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
    """The same of y, added to x in one go; x is overwritten, unless a compiler adds."""
    if torch.compiler.is_compiling():
        return x + times(y, weight)  # as part of what comes next
    return _enough(x).addmm_(_enough(y), weight.t())[: len(x)]


def _enough(x: torch.Tensor) -> torch.Tensor:
    """Rows as they are, or on a CPU with rows of zeros below them."""
    lacking = _LEAST_ROWS - len(x)
    return x if lacking <= 0 or x.is_cuda else F.pad(x, (0, 0, 0, lacking))
