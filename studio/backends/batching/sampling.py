"""Sampling on the device: each row by its own parameters, with counter-based Gumbel noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch

# Counter-based noise: a pure function of its key, the same in any slot and in any batch.
#
# A candidate's noise depends on the line's seed, the frame, the codebook and the code alone:
# there is no generator whose state other lines could move. It must not change: takes are kept by
# seed.

_SPREAD = -7_046_029_254_386_353_131  # 2^64 divided by the golden ratio, odd
_MIX_A = -4_658_895_280_553_007_687  # multipliers of splitmix64
_MIX_B = -7_723_592_293_110_705_685
_BITS = 23  # one fewer than float32 has, so that no number becomes 1


def derive_line_key(seed: int) -> int:
    """A line's key, as a signed 64-bit number; close seeds give unrelated keys."""
    x = (seed * _SPREAD) % 2**64
    for shift, factor in ((30, _MIX_A), (27, _MIX_B)):
        x = ((x ^ (x >> shift)) * factor) % 2**64
    x ^= x >> 31
    return x - 2**64 if x >= 2**63 else x


def derive_frame_keys(
    lines: torch.Tensor, frames: torch.Tensor, groups: torch.Tensor, _codes: int = 0
) -> torch.Tensor:
    """A key for every codebook of a frame; may stand in for `draw_frame_noise`.

    Args:
        lines: Keys of the lines: int64 [rows].
        frames: Numbers of the frames that are being made: int64 [rows].
        groups: 0, 1, 2, …: int64 [groups].

    Returns:
        int64 [groups, rows, 1].
    """
    x = lines + frames * _SPREAD
    x = x ^ (x >> 30)
    x = x * _MIX_A + groups[:, None] * _SPREAD
    x = (x ^ (x >> 32)) * _MIX_B
    return (x ^ (x >> 27))[..., None]


def draw_frame_noise(
    lines: torch.Tensor, frames: torch.Tensor, groups: torch.Tensor, codes: int
) -> torch.Tensor:
    """`negated_gumbel_noise` of every code of every codebook of a frame, at once.

    That is a dozen operations for a frame instead of as many for each codebook, on far more
    numbers: it pays where an operation costs as much as its launch.

    Returns:
        float32 [groups, rows, codes].
    """
    every = torch.arange(codes, device=lines.device)
    return negated_gumbel_noise(derive_frame_keys(lines, frames, groups), every)


def gumbel_noise(key: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """Gumbel noise: the largest sum with the log-probabilities is a sample.

    Args:
        key: int64 [rows, 1].
        codes: The candidates: int64 [rows, candidates].

    Returns:
        float32 [rows, candidates].
    """
    return -negated_gumbel_noise(key, codes)


def negated_gumbel_noise(key: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """`gumbel_noise` negated, to be subtracted; in as few operations as possible."""
    x = torch.add(key, codes, alpha=_SPREAD).mul_(_MIX_A)
    x = x.bitwise_xor_(x >> 32).mul_(_MIX_B).bitwise_right_shift_(64 - _BITS)
    # Whole numbers below 2^23 and their halves: nothing here is rounded.
    uniform = (x * 2.0**-_BITS).add_(0.5 + 2.0 ** (-_BITS - 1))
    return uniform.log_().neg_().log_()


# One code is sampled per row, with the row's own parameters, without a host synchronization.
#
# The order is that of the transformers package: temperature, then the likeliest `top_k`, then the
# share `top_p` of what is left.


@dataclass(frozen=True, slots=True, eq=False)
class SamplingTensors:
    """Sampling parameters of each row.

    Attributes:
        temperature: float32 [rows, 1]; 1 where the likeliest code is taken.
        top_p: float32 [rows, 1]; above 1 where all of it competes.
        last: Rank of the last code that competes, from 0: int64 [rows, 1].
        greedy: Not 0 where the likeliest code is taken: [rows].
    """

    temperature: torch.Tensor
    top_p: torch.Tensor
    last: torch.Tensor
    greedy: torch.Tensor


@dataclass(frozen=True, slots=True)
class SamplingBounds:
    """The widest parameters among all rows, known to the host.

    Attributes:
        max_candidates: No row lets more codes compete.
    """

    max_candidates: int = 64
    any_top_p: bool = False
    any_greedy: bool = False


def sample_codes(
    scores: torch.Tensor, key: torch.Tensor, rules: SamplingTensors, bounds: SamplingBounds
) -> torch.Tensor:
    """Sample one code per row.

    Args:
        scores: [rows, vocabulary]; weighed in float32.
        key: From `derive_frame_keys`, of this codebook: int64 [rows, 1].
        rules: Of each row.
        bounds: The most that any of them asks for.

    Returns:
        int64 [rows].
    """
    candidates = min(bounds.max_candidates, scores.shape[1])
    ranked, codes = (scores / rules.temperature).topk(candidates)  # float32, as the temperature
    competes = ranked >= ranked.gather(1, rules.last)
    if bounds.any_top_p:
        competes = competes & top_p_mask(ranked, competes, rules.top_p)
    # Gumbel-max: the largest sum of log-likelihood and Gumbel noise is a fair draw.
    race = torch.where(competes, ranked - negated_gumbel_noise(key, codes), -torch.inf)
    drawn = codes.gather(1, race.argmax(dim=-1, keepdim=True))[:, 0]
    if bounds.any_greedy:
        return torch.where(rules.greedy != 0, scores.argmax(dim=-1), drawn)
    return drawn


def sample_codes_dense(
    scores: torch.Tensor, noise: torch.Tensor, rules: SamplingTensors, bounds: SamplingBounds
) -> torch.Tensor:
    """Sample the same codes in fewer operations, with noise from `draw_frame_noise`.

    All codes race, and those that don't compete are held back, instead of gathering those that do.

    Returns:
        int64 [rows].
    """
    least = _cutoff_scores(scores, rules, bounds)
    race = torch.addcdiv(noise[:, : scores.shape[1]], scores, rules.temperature, value=-1)
    drawn = race.masked_fill_(scores < least, torch.inf).argmin(dim=-1)
    if bounds.any_greedy:
        return torch.where(rules.greedy != 0, scores.argmax(dim=-1), drawn)
    return drawn


def _cutoff_scores(
    scores: torch.Tensor, rules: SamplingTensors, bounds: SamplingBounds
) -> torch.Tensor:
    """The score of the last code that may be sampled: [rows, 1]."""
    ranked = scores.topk(min(bounds.max_candidates, scores.shape[1])).values
    least = ranked.gather(1, rules.last)
    if not bounds.any_top_p:
        return least
    competes = ranked >= least
    shared = top_p_mask(ranked / rules.temperature, competes, rules.top_p) & competes
    return ranked.gather(1, shared.sum(dim=1, keepdim=True) - 1)


def top_p_mask(ranked: torch.Tensor, competes: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Which candidates have less than `top_p` of the probability ahead; always the first.

    Args:
        ranked: Log-probabilities, descending: float32 [rows, candidates].
        competes: Which of them may be sampled: bool [rows, candidates].
        top_p: float32 [rows, 1].
    """
    likelihood = ranked.masked_fill(~competes, -torch.inf).softmax(dim=-1)
    return likelihood.cumsum(dim=-1) - likelihood < top_p
