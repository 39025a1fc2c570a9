"""Attention of one new position per line over the positions that the line has, in Triton."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

# Flash-decoding: the cache of a line is cut into pieces, which are read side by side, and what they
# come to is put together. Pieces beyond the line's last position read nothing, so a captured graph
# serves lines of any length, and costs what the lines have.
#
# Source: Dao et al., "Flash-Decoding for long-context inference" (2023).

_PIECE = 256  # positions of a program
_BLOCK = 32  # of them that are read at a time


@triton.jit  # type: ignore[untyped-decorator]
def _piece_kernel(  # noqa: PLR0913 - a kernel gets all it knows as arguments
    queries: tl.tensor,
    cache: tl.tensor,
    ends: tl.tensor,
    sums: tl.tensor,
    bests: tl.tensor,
    totals: tl.tensor,
    scale: tl.tensor,
    queries_row: tl.tensor,
    queries_head: tl.tensor,
    cache_row: tl.tensor,
    cache_kind: tl.tensor,
    cache_head: tl.tensor,
    pieces: tl.constexpr,
    group: tl.constexpr,
    width: tl.constexpr,
    piece: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """One piece of one line's key-value head, for each query head of its group."""
    row, head, part = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    heads = tl.num_programs(1)
    length = tl.load(ends + row) + 1
    start = part * piece
    within = tl.arange(0, width)
    for member in tl.static_range(group):
        query = tl.load(queries + row * queries_row + head * queries_head + member * width + within)
        query = query.to(tl.float32) * scale
        best = tl.full((), -float("inf"), tl.float32)
        total = tl.full((), 0.0, tl.float32)
        mixed = tl.zeros((width,), tl.float32)
        for number in range(piece // block):
            first = start + number * block
            if first < length:
                at = first + tl.arange(0, block)
                seen = at < length
                where = row * cache_row + head * cache_head + at[:, None] * width + within[None, :]
                keys = tl.load(cache + where, mask=seen[:, None], other=0.0).to(tl.float32)
                score = tl.where(seen, tl.sum(keys * query[None, :], axis=1), -float("inf"))
                higher = tl.maximum(best, tl.max(score, axis=0))
                weight = tl.exp(score - higher)
                shrunk = tl.exp(best - higher)
                values = tl.load(cache + cache_kind + where, mask=seen[:, None], other=0.0)
                mixed = mixed * shrunk + tl.sum(weight[:, None] * values.to(tl.float32), axis=0)
                total = total * shrunk + tl.sum(weight, axis=0)
                best = higher
        into = ((row * heads + head) * group + member) * pieces + part
        tl.store(bests + into, best)
        tl.store(totals + into, total)
        tl.store(sums + into * width + within, mixed)


@triton.jit  # type: ignore[untyped-decorator]
def _join_kernel(  # noqa: PLR0913 - a kernel gets all it knows as arguments
    sums: tl.tensor,
    bests: tl.tensor,
    totals: tl.tensor,
    mixed: tl.tensor,
    pieces: tl.constexpr,
    width: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """One query head of one line, from all its pieces."""
    head = tl.program_id(0).to(tl.int64)
    part, within = tl.arange(0, block), tl.arange(0, width)
    there = part < pieces
    best = tl.load(bests + head * pieces + part, mask=there, other=-float("inf"))
    weight = tl.exp(best - tl.max(best, axis=0))  # 0 of an empty piece
    total = tl.sum(weight * tl.load(totals + head * pieces + part, mask=there, other=0.0), axis=0)
    at = (head * pieces + part[:, None]) * width + within[None, :]
    parts = tl.load(sums + at, mask=there[:, None], other=0.0)
    tl.store(mixed + head * width + within, tl.sum(parts * weight[:, None], axis=0) / total)


def attend_triton(queries: torch.Tensor, cache: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Mix what each line's new position sees: all up to itself, whatever the window.

    Args:
        queries: [rows, kv_heads, group, head_dim], a view; each group's heads lie end to end.
        cache: Of one layer, the new position included:
            [slots, 2, kv_heads, positions, head_dim], keys and values.
        at: The new position of each line: int64 [rows].

    Returns:
        [rows, kv_heads, group, head_dim].
    """
    rows, heads, group, width = queries.shape
    positions = cache.shape[3]
    assert queries.stride()[2:] == (width, 1)
    assert cache.stride()[3:] == (width, 1)
    pieces = triton.cdiv(positions, _PIECE)
    every = queries.new_empty(rows, heads, group, pieces, width + 2, dtype=torch.float32)
    sums, bests, totals = every.flatten().split(
        [rows * heads * group * pieces * each for each in (width, 1, 1)]
    )
    _piece_kernel[(rows, heads, pieces)](
        *(queries, cache, at, sums, bests, totals, width**-0.5),
        *(queries.stride(0), queries.stride(1), *cache.stride()[:3]),
        pieces=pieces,
        group=group,
        width=width,
        piece=_PIECE,
        block=_BLOCK,
        num_warps=4,
    )
    mixed = queries.new_empty(rows, heads, group, width)
    _join_kernel[(rows * heads * group,)](
        *(sums, bests, totals, mixed),
        pieces=pieces,
        width=width,
        block=triton.next_power_of_2(pieces),
        num_warps=4,
    )
    return mixed
