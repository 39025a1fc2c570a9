"""Choosing one speech token a row as Chatterbox does, each row by its own settings.

English: repetition, temperature, min-p, top-p. Turbo: temperature, top-k, top-p, repetition.

Source: `T3.inference` and `T3.inference_turbo` of chatterbox-tts 0.1.7, and the logits processors
of the transformers package that they use.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from studio.backends.batched.choice import Breadth, within_share
from studio.backends.batched.noise import gumbel

ALL = 0
"""Candidates of a `Breadth` when every token competes and none is ranked."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenRules:
    """How each row chooses; all but `last` and `said` are float32 [rows, 1].

    Attributes:
        top_p: Above 1 where all of it competes.
        min_p: Share of the likeliest token's likelihood below which none competes.
        last: Rank of the last token that competes, from 0: int64 [rows, 1].
        said: What the penalty is for: bool [rows, vocabulary].
    """

    temperature: torch.Tensor
    top_p: torch.Tensor
    min_p: torch.Tensor
    penalty: torch.Tensor
    last: torch.Tensor
    said: torch.Tensor


def choose_token(
    scores: torch.Tensor,
    key: torch.Tensor,
    rules: TokenRules,
    breadth: Breadth,
    *,
    penalty_first: bool,
) -> torch.Tensor:
    """Choose a token a row.

    Args:
        scores: float32 [rows, vocabulary].
        key: From `frame_keys`: int64 [rows, 1].
        rules: Of each row.
        breadth: The most that any of them asks for.
        penalty_first: As of the weights.

    Returns:
        int64 [rows].
    """
    weighed, tokens = weigh(scores, rules, breadth, penalty_first=penalty_first)
    race = weighed + gumbel(key, tokens)
    return tokens.gather(1, race.argmax(dim=-1, keepdim=True))[:, 0]


def weigh(
    scores: torch.Tensor, rules: TokenRules, breadth: Breadth, *, penalty_first: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """What competes, and how strongly; arguments as of `choose_token`.

    Returns:
        Logarithms of likelihoods, minus infinity for what doesn't compete: float32
        [rows, candidates]. Their tokens: int64 [rows, candidates].
    """
    if penalty_first:
        scores = _penalised(scores, rules.said, rules.penalty)
    ranked, tokens = _ranked(scores / rules.temperature, breadth)
    competes = _likely(ranked, rules.min_p) if penalty_first else _first(ranked, rules.last)
    if breadth.shares:
        competes = competes & within_share(ranked, competes, rules.top_p)
    if not penalty_first:
        ranked = _penalised(ranked, rules.said.gather(1, tokens), rules.penalty)
    return ranked.masked_fill(~competes, -torch.inf), tokens


def _penalised(scores: torch.Tensor, said: torch.Tensor, penalty: torch.Tensor) -> torch.Tensor:
    less = torch.where(scores < 0, scores * penalty, scores / penalty)
    return torch.where(said, less, scores)


def _ranked(scores: torch.Tensor, breadth: Breadth) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores and their tokens; falling where shares or ranks are looked at."""
    if breadth.candidates == ALL and not breadth.shares:
        every = torch.arange(scores.shape[1], device=scores.device)
        return scores, every.expand_as(scores)
    most = scores.shape[1]
    ranked, codes = scores.topk(min(breadth.candidates, most) if breadth.candidates else most)
    return ranked, codes


def _likely(scores: torch.Tensor, min_p: torch.Tensor) -> torch.Tensor:
    likelihood = scores.softmax(dim=-1)
    return likelihood >= min_p * likelihood.amax(dim=-1, keepdim=True)


def _first(ranked: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    return ranked >= ranked.gather(1, last)
