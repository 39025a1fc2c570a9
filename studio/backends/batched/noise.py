"""Chance as a function of what it is for, so that it is the same in any slot and in any batch.

Every candidate's number comes from the line's seed, the frame, the codebook and the code alone:
there is no generator whose state other lines could move.
"""

from __future__ import annotations

import torch

_SPREAD = -7_046_029_254_386_353_131  # 2^64 divided by the golden ratio, odd
_MIX_A = -4_658_895_280_553_007_687  # multipliers of splitmix64
_MIX_B = -7_723_592_293_110_705_685
CODES = 3_072
"""More than a codebook has."""

_BITS = 23  # one fewer than float32 has, so that no number becomes 1


def line_key(seed: int) -> int:
    """A line's own start, as a signed 64-bit number; seeds that are near give keys that aren't."""
    x = (seed * _SPREAD) % 2**64
    for shift, factor in ((30, _MIX_A), (27, _MIX_B)):
        x = ((x ^ (x >> shift)) * factor) % 2**64
    x ^= x >> 31
    return x - 2**64 if x >= 2**63 else x


def frame_keys(lines: torch.Tensor, frames: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """A key for every codebook of a frame.

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


def frame_noise(lines: torch.Tensor, frames: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """What `less` gives of every code of every codebook of a frame, at once.

    That is a dozen operations for a frame instead of as many for each codebook, on far more
    numbers: it pays where an operation costs as much as its launch.

    Args:
        lines: As for `frame_keys`, like the others.
        frames: The same.
        groups: The same.

    Returns:
        float32 [groups, rows, CODES].
    """
    codes = torch.arange(CODES, device=lines.device)
    return less(frame_keys(lines, frames, groups), codes)


def gumbel(key: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """Noise which, added to the logarithms of likelihoods, makes the largest sum a fair draw.

    Args:
        key: int64 [rows, 1].
        codes: The candidates: int64 [rows, candidates].

    Returns:
        float32 [rows, candidates].
    """
    return -less(key, codes)


def less(key: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """The same negated, to be taken away; as few operations as there can be."""
    x = torch.add(key, codes, alpha=_SPREAD).mul_(_MIX_A)
    x = x.bitwise_xor_(x >> 32).mul_(_MIX_B).bitwise_right_shift_(64 - _BITS)
    # Whole numbers below 2^23 and their halves: nothing here is rounded.
    uniform = (x * 2.0**-_BITS).add_(0.5 + 2.0 ** (-_BITS - 1))
    return uniform.log_().neg_().log_()
