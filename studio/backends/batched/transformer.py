"""One pass through a stack of layers, whatever it attends to.

Norms and rotation are rounded less often than in the reference, which in 16 bits brings the states
nearer to those of float32, and in float32 changes none of the codes.

Source: `Qwen3TTSTalkerDecoderLayer` of qwen-tts-hf 0.1.1.post1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
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

    def __call__(self, index: int, heads: torch.Tensor, /) -> torch.Tensor:
        """Keep a layer's keys and values, and mix what its queries see.

        Args:
            index: Of the layer.
            heads: After norm and rotation, and before: [2, rows, kv_heads, group + 2, head_dim].
                The queries and the key are of the first kind, the value of the second.

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


def keys_and_values(heads: torch.Tensor) -> torch.Tensor:
    """Of heads as `Attention` gets them, whatever stands between rows and the last two dimensions.

    Args:
        heads: [2, rows, ..., group + 2, head_dim].

    Returns:
        [rows, 2, ..., head_dim], a view.
    """
    both = heads[..., -2:, :].diagonal(dim1=0, dim2=-2)  # [rows, ..., head_dim, 2]
    return both.movedim(-1, 1)


Turns = Sequence[torch.Tensor]
"""For each layer what rotates its heads, their norm's scale included: [blocks, 1, 1, group + 2 or
1, 2, 2, head_dim / 2], by the half that is made and the half that is read. Rows are so many equal
blocks, one after the other, and those of a block are at the same position."""


class Into(Protocol):
    """Where a layer's heads go."""

    def __call__(self, index: int) -> torch.Tensor:
        """A layer's place: [2, rows, kv_heads * (group + 2) * head_dim]."""
        ...


def run(stack: Stack, x: torch.Tensor, turns: Turns, attend: Attention, into: Into) -> torch.Tensor:
    """Pass rows through all layers and the last norm.

    Args:
        stack: Whose layers.
        x: [rows, hidden]; is overwritten.
        turns: Of the rows' positions.
        attend: Called once a layer.
        into: As often; what it gives is written over.

    Returns:
        [rows, hidden].
    """
    parts, layers = stack.parts, stack.layers
    to = Heads(layers[0], turns[0], into(0))
    parts.heads(x, to)
    for index, following in enumerate(layers[1:], start=1):
        mixed = attend(index - 1, to.into.unflatten(2, to.layer.shape))
        layer, to = to.layer, Heads(following, turns[index], into(index))
        x = parts.between(x, mixed, layer, to)
    mixed = attend(len(layers) - 1, to.into.unflatten(2, to.layer.shape))
    return normed(parts.fed(x, mixed, to.layer), stack.norm, to.layer.eps)


Rotate = Callable[["Layer", torch.Tensor, torch.Tensor, torch.Tensor], None]
"""See `rotated`."""

Gate = Callable[[torch.Tensor], torch.Tensor]
"""See `gated`."""


def rotated(layer: Layer, plain: torch.Tensor, turn: torch.Tensor, into: torch.Tensor) -> None:
    """Norm of a layer's heads, and their rotation.

    Args:
        layer: Whose.
        plain: [rows, kv_heads * (group + 2) * head_dim]. The values among them are of no use.
        turn: One of `Turns`.
        into: As `plain`; is overwritten.
    """
    scaled = plain.unflatten(1, layer.shape)
    if layer.norms_heads:
        scaled = F.rms_norm(scaled, scaled.shape[-1:], None, layer.eps)
    halves = scaled.view(len(turn), -1, *layer.shape[:2], 1, 2, layer.shape[2] // 2)
    summed_into(into.view(*halves.shape[:4], 2, -1), halves * turn)


def gated(gate_up: torch.Tensor) -> torch.Tensor:
    """What the feed-forward lets through: [rows, 2 * width] to [rows, width]."""
    gate, up = gate_up.chunk(2, dim=1)
    return F.silu(gate) * up


@dataclass(frozen=True, slots=True)
class Chains:
    """What stands between two multiplications, as it is or as one kernel.

    Attributes:
        rotate: In place of `rotated`.
        gate: In place of `gated`.
    """

    rotate: Rotate = rotated
    gate: Gate = gated


APART = Chains()


@dataclass(frozen=True, slots=True, eq=False)
class Heads:
    """The heads of a layer that are to be made.

    Attributes:
        layer: Whose.
        turn: One of `Turns`.
        into: From `Into`.
    """

    layer: Layer
    turn: torch.Tensor
    into: torch.Tensor


def heads(x: torch.Tensor, to: Heads, *, chains: Chains = APART) -> None:
    """Make what a layer attends with: its heads after norm and rotation, and before.

    Args:
        x: [rows, hidden].
        to: What is overwritten.
        chains: How.
    """
    turned, plain = to.into
    times_into(plain, normed(x, to.layer.before, to.layer.eps), to.layer.heads)
    chains.rotate(to.layer, plain, to.turn, turned)


def fed(
    x: torch.Tensor, mixed: torch.Tensor, layer: Layer, *, chains: Chains = APART
) -> torch.Tensor:
    """Add to x what was attended to, and what the layer makes of both; x may be overwritten."""
    x = plus_times(x, mixed, layer.out)
    gate_up = times(normed(x, layer.between, layer.eps), layer.gate_up)
    return plus_times(x, chains.gate(gate_up), layer.down)


def between(
    x: torch.Tensor, mixed: torch.Tensor, layer: Layer, to: Heads, *, chains: Chains = APART
) -> torch.Tensor:
    """`fed` of a layer, and then `heads` of the one that follows."""
    x = fed(x, mixed, layer, chains=chains)
    heads(x, to, chains=chains)
    return x


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


def times_into(into: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> None:
    """The same without a copy, where none is needed: [rows, out] is overwritten."""
    if torch.compiler.is_compiling() or len(_enough(x)) > len(x):
        into.copy_(times(x, weight))
    else:
        torch.mm(x, weight.t(), out=into)


def summed_into(into: torch.Tensor, parts: torch.Tensor) -> None:
    """Sum over the last dimension but one; what is written to is overwritten."""
    if torch.compiler.is_compiling():
        into.copy_(parts.sum(dim=-2))  # a compiler writes it there at once
    else:
        torch.sum(parts, dim=-2, out=into)


def plus_times(x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The same of y, added to x in one go; x is overwritten, unless a compiler adds."""
    if torch.compiler.is_compiling():
        return x + times(y, weight)  # as part of what comes next
    return _enough(x).addmm_(_enough(y), weight.t())[: len(x)]


def _enough(x: torch.Tensor) -> torch.Tensor:
    """Rows as they are, or on a CPU with rows of zeros below them."""
    lacking = _LEAST_ROWS - len(x)
    return x if lacking <= 0 or x.is_cuda else F.pad(x, (0, 0, 0, lacking))
