"""Choosing codes, in the order and with the processors of the transformers package."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    RepetitionPenaltyLogitsProcessor,
    SuppressTokensLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from studio.backends.qwen3.request import USUAL, Sampling

_MIN_FRAMES = 2  # as in the reference; with fewer, very short lines come out empty
_RESERVED = 1_024  # numbers at the vocabulary's end that are commands, not sounds


class Sampler:
    """Draws codes for one request, from its own source of chance."""

    def __init__(
        self,
        sampling: Sampling,
        seed: int | None,
        device: torch.device,
        *,
        rest: Sampling = USUAL,
    ) -> None:
        """Draw on `device`; the same seed and logits give the same codes.

        Args:
            sampling: The line's own.
            seed: Any integer; None for another result every time.
            device: Where the logits are.
            rest: Of the codes after a frame's first one; see `Checkpoint`.
        """
        self._rest = rest
        self.sampling = sampling
        self._chance = torch.Generator(device)
        if seed is None:
            self._chance.seed()
        else:
            self._chance.manual_seed(seed % 2**63)
        self._narrow = _narrowing(sampling)
        self._narrow_rest = _narrowing(rest)

    def first(self, scores: torch.Tensor) -> torch.Tensor:
        """A frame's first code: [1] from processed scores [1, vocabulary]."""
        return self._draw(scores, self._narrow, greedy=self.sampling.greedy)

    def rest(self, logits: torch.Tensor) -> torch.Tensor:
        """One of the codes after it: [1] from [1, vocabulary]."""
        greedy = self.sampling.greedy or self._rest.greedy
        return self._draw(logits.float(), self._narrow_rest, greedy=greedy)

    def _draw(
        self, scores: torch.Tensor, narrow: LogitsProcessorList, *, greedy: bool
    ) -> torch.Tensor:
        if greedy:
            return scores.argmax(dim=-1)
        likelihoods = narrow(None, scores).softmax(dim=-1)
        return torch.multinomial(likelihoods, 1, generator=self._chance)[:, 0]


def first_code_rules(config: Any, sampling: Sampling, device: torch.device) -> LogitsProcessorList:
    """What is allowed as a frame's first code, given those before it.

    Args:
        config: The talker's.
        sampling: The line's own.
        device: Where the logits are.
    """
    end = config.codec_eos_token_id
    reserved = set(range(config.vocab_size - _RESERVED, config.vocab_size)) - {end}
    rules = LogitsProcessorList()
    if sampling.repetition_penalty != 1.0:
        rules.append(RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty))
    rules.append(MinNewTokensLengthLogitsProcessor(0, _MIN_FRAMES, end, device=device))
    rules.append(SuppressTokensLogitsProcessor(sorted(reserved), device=device))
    return rules


def _narrowing(sampling: Sampling) -> LogitsProcessorList:
    narrowing = LogitsProcessorList()
    if sampling.greedy:
        return narrowing
    if sampling.temperature != 1.0:
        narrowing.append(TemperatureLogitsWarper(sampling.temperature))
    narrowing.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1.0:
        narrowing.append(TopPLogitsWarper(sampling.top_p))
    return narrowing
