"""Choosing one code a row, each row by its own rules, without asking the host.

The order is that of the transformers package: temperature, then the likeliest `top_k`, then the
share `top_p` of what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from studio.backends.batched.noise import less


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """How each row chooses.

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
class Breadth:
    """What the host knows of all rows, so that the device needn't look further.

    Attributes:
        candidates: No row lets more codes compete.
        shares: Whether a row has a `top_p`.
        greedy: Whether a row takes the likeliest code.
    """

    candidates: int = 64
    shares: bool = False
    greedy: bool = False


def choose(scores: torch.Tensor, key: torch.Tensor, rules: Rules, breadth: Breadth) -> torch.Tensor:
    """Choose a code a row.

    Args:
        scores: [rows, vocabulary]; weighed in float32.
        key: From `frame_keys`, of this codebook: int64 [rows, 1].
        rules: Of each row.
        breadth: The most that any of them asks for.

    Returns:
        int64 [rows].
    """
    candidates = min(breadth.candidates, scores.shape[1])
    ranked, codes = (scores / rules.temperature).topk(candidates)  # float32, as the temperature
    competes = ranked >= ranked.gather(1, rules.last)
    if breadth.shares:
        competes = competes & within_share(ranked, competes, rules.top_p)
    race = torch.where(competes, ranked - less(key, codes), -torch.inf)
    drawn = codes.gather(1, race.argmax(dim=-1, keepdim=True))[:, 0]
    if breadth.greedy:
        return torch.where(rules.greedy != 0, scores.argmax(dim=-1), drawn)
    return drawn


def choose_of_all(
    scores: torch.Tensor, noise: torch.Tensor, rules: Rules, breadth: Breadth
) -> torch.Tensor:
    """The same codes with fewer operations, of noise that is there already.

    All codes race, and those that don't compete are held back, instead of gathering those that do.

    Args:
        scores: As for `choose`.
        noise: From `frame_noise`, of this codebook: float32 [rows, at least vocabulary].
        rules: As for `choose`.
        breadth: The same.

    Returns:
        int64 [rows].
    """
    least = _least(scores, rules, breadth)
    race = torch.addcdiv(noise[:, : scores.shape[1]], scores, rules.temperature, value=-1)
    drawn = race.masked_fill_(scores < least, torch.inf).argmin(dim=-1)
    if breadth.greedy:
        return torch.where(rules.greedy != 0, scores.argmax(dim=-1), drawn)
    return drawn


def _least(scores: torch.Tensor, rules: Rules, breadth: Breadth) -> torch.Tensor:
    """The score of the last code that competes: [rows, 1]."""
    ranked = scores.topk(min(breadth.candidates, scores.shape[1])).values
    least = ranked.gather(1, rules.last)
    if not breadth.shares:
        return least
    competes = ranked >= least
    shared = within_share(ranked / rules.temperature, competes, rules.top_p) & competes
    return ranked.gather(1, shared.sum(dim=1, keepdim=True) - 1)


def within_share(ranked: torch.Tensor, competes: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Which candidates have less than `top_p` of the likelihood ahead of them; always the first.

    Args:
        ranked: Logarithms of likelihoods, falling: float32 [rows, candidates].
        competes: Which of them share the likelihood: bool [rows, candidates].
        top_p: float32 [rows, 1].
    """
    likelihood = ranked.masked_fill(~competes, -torch.inf).softmax(dim=-1)
    return likelihood.cumsum(dim=-1) - likelihood < top_p
