"""One code sampled per row by one Triton kernel: top-k, top-p and greedy lines alike."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from studio.backends.batching.sampling import SamplingBounds, SamplingTensors

# What may be sampled is what reaches a score. That score is found without sorting: scores become
# whole numbers of the same order, and the largest number that enough candidates reach is built two
# bits at a time, from the highest on. For top-k "enough" is a count, for top-p a share of
# likelihood.


@triton.jit  # type: ignore[untyped-decorator]
def _largest_reached(
    order: tl.tensor, weight: tl.tensor, wanted: tl.tensor, bits: tl.constexpr
) -> tl.tensor:
    """The largest number that candidates of the wanted weight reach; 0 where they all lack it.

    Args:
        order: What is compared, from 0 to below 2^32: int64 [block].
        weight: Of each candidate: float32 [block].
        wanted: The least sum of weights.
        bits: The leading ones that matter, an even number; the others are 0 in the result.
    """
    found = tl.full((), 0, tl.int64)
    for place in tl.static_range(0, bits // 2):
        shift = 30 - 2 * place
        step = tl.full((), 1, tl.int64) << shift
        one = tl.sum(tl.where(order >= found + step, weight, 0.0), axis=0) >= wanted
        two = tl.sum(tl.where(order >= found + 2 * step, weight, 0.0), axis=0) >= wanted
        three = tl.sum(tl.where(order >= found + 3 * step, weight, 0.0), axis=0) >= wanted
        found += step * (one.to(tl.int64) + two.to(tl.int64) + three.to(tl.int64))
    return found


@triton.jit  # type: ignore[untyped-decorator]
def _sample_kernel(  # noqa: PLR0913 - a kernel gets all it knows as arguments
    scores: tl.tensor,
    noise: tl.tensor,
    temperature: tl.tensor,
    top_p: tl.tensor,
    last: tl.tensor,
    greedy: tl.tensor,
    codes: tl.tensor,
    count: tl.tensor,
    scores_row: tl.tensor,
    noise_row: tl.tensor,
    floats_row: tl.tensor,
    ints_row: tl.tensor,
    bits: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """Sample the code of one row."""
    row = tl.program_id(0).to(tl.int64)
    code = tl.arange(0, block)
    inside = code < count
    score = tl.load(scores + row * scores_row + code, mask=inside, other=-float("inf"))
    score = score.to(tl.float32)
    raw = score.to(tl.int32, bitcast=True)
    # Ascending as whole numbers: of negative ones all bits are turned round, of others the first.
    order = (raw ^ ((raw >> 31) | -2147483648)).to(tl.int64) & 0xFFFFFFFF
    order = tl.where(inside, order, -1)
    wanted = (tl.load(last + row * ints_row) + 1).to(tl.float32)
    least = _largest_reached(order, tl.where(inside, 1.0, 0.0), wanted, bits)
    heat = tl.load(temperature + row * floats_row)
    share = tl.load(top_p + row * floats_row)
    if share < 1:
        best = tl.max(score, axis=0)
        likelihood = tl.where(order >= least, tl.exp((score - best) / heat), 0.0)
        of_all = share * tl.sum(likelihood, axis=0)
        least = tl.maximum(least, _largest_reached(order, likelihood, of_all, bits))
    drawn = tl.load(noise + row * noise_row + code, mask=inside, other=float("inf"))
    race = tl.where(order >= least, drawn - tl.div_rn(score, heat), float("inf"))
    race = tl.where(tl.load(greedy + row * ints_row) != 0, -score, race)
    race = tl.where(inside, race, float("inf"))
    tl.store(codes + row, tl.argmin(race, axis=0, tie_break_left=True).to(tl.int64))


def sample_codes_triton(
    scores: torch.Tensor, noise: torch.Tensor, rules: SamplingTensors, _bounds: SamplingBounds
) -> torch.Tensor:
    """Sample the codes of `sample_codes_dense`, whatever is asked for, in one kernel.

    Of equal scores at the end of `top_k` all compete, as there. A share that `top_p` meets to the
    last bit may be cut on either side of the code that meets it.

    Returns:
        int64 [rows].
    """
    rows, count = scores.shape
    assert scores.stride(1) == noise.stride(1) == 1
    assert rules.temperature.stride(0) == rules.top_p.stride(0)
    assert rules.last.stride(0) == rules.greedy.stride(0)
    codes = torch.empty(rows, dtype=torch.int64, device=scores.device)
    _sample_kernel[(rows,)](
        *(scores, noise, rules.temperature, rules.top_p, rules.last, rules.greedy, codes, count),
        *(scores.stride(0), noise.stride(0), rules.temperature.stride(0), rules.last.stride(0)),
        bits=16 if scores.dtype is torch.bfloat16 else 32,
        block=triton.next_power_of_2(count),
        num_warps=8,
    )
    return codes
