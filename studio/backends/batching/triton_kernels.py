"""The operations between two matrix multiplications as one Triton kernel each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from studio.backends.batching.decoder_stack import DecoderLayer

_GATE_BLOCK = 1_024  # values of a row that one program gates


@triton.jit  # type: ignore[untyped-decorator]
def _norm_rope_kernel(  # noqa: PLR0913 - a kernel gets all it knows as arguments
    plain: tl.tensor,
    turn: tl.tensor,
    into: tl.tensor,
    rows_of_block: tl.tensor,
    eps: tl.tensor,
    heads: tl.constexpr,
    kinds: tl.constexpr,
    turned: tl.constexpr,
    half: tl.constexpr,
    norms: tl.constexpr,
) -> None:
    """One head of one row; the last head of each group is the value, which isn't rotated."""
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    kind = head % kinds
    if kind < kinds - 1:
        within = tl.arange(0, half)
        start = (row * heads + head) * 2 * half + within
        low = tl.load(plain + start).to(tl.float32)
        high = tl.load(plain + start + half).to(tl.float32)
        if norms:
            mean = (tl.sum(low * low) + tl.sum(high * high)) / (2 * half)
            low, high = low * tl.rsqrt(mean + eps), high * tl.rsqrt(mean + eps)
        at = ((row // rows_of_block) * turned + kind % turned) * 4 * half + within
        low_low, low_high = tl.load(turn + at), tl.load(turn + at + half)
        high_low, high_high = tl.load(turn + at + 2 * half), tl.load(turn + at + 3 * half)
        tl.store(into + start, low * low_low + high * low_high)
        tl.store(into + start + half, low * high_low + high * high_high)


@triton.jit  # type: ignore[untyped-decorator]
def _silu_and_mul_kernel(
    gate_up: tl.tensor, into: tl.tensor, width: tl.tensor, block: tl.constexpr
) -> None:
    """One block of one row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * block + tl.arange(0, block)
    inside = at < width
    gate = tl.load(gate_up + row * 2 * width + at, mask=inside).to(tl.float32)
    up = tl.load(gate_up + row * 2 * width + width + at, mask=inside).to(tl.float32)
    tl.store(into + row * width + at, gate * tl.sigmoid(gate) * up, mask=inside)


def norm_rope_triton(
    layer: DecoderLayer, plain: torch.Tensor, turn: torch.Tensor, into: torch.Tensor
) -> None:
    """As `decoder_stack.norm_rope`; the value heads stay unchanged."""
    kv_heads, kinds, head_dim = layer.shape
    heads = kv_heads * kinds
    _norm_rope_kernel[len(plain), heads](
        plain,
        turn.contiguous(),
        into,
        len(plain) // len(turn),
        layer.eps,
        heads=heads,
        kinds=kinds,
        turned=turn.shape[3],
        half=head_dim // 2,
        norms=layer.norms_heads,
        num_warps=1,
    )


def silu_and_mul_triton(gate_up: torch.Tensor) -> torch.Tensor:
    """As `decoder_stack.silu_and_mul`."""
    rows, width = gate_up.shape[0], gate_up.shape[1] // 2
    into = gate_up.new_empty(rows, width)
    _silu_and_mul_kernel[rows, triton.cdiv(width, _GATE_BLOCK)](
        gate_up, into, width, block=_GATE_BLOCK
    )
    return into
