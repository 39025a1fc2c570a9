"""Requests to the batched T3, the state of their lines in its slots, and sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch

from studio.backends.batching.runner_contract import SlotAdmission, SlotLayout
from studio.backends.batching.sampling import (
    SamplingBounds,
    derive_line_key,
    gumbel_noise,
    top_p_mask,
)
from studio.backends.batching.sequence import TtsRequest
from studio.backends.batching.slots import IntColumn, SlotPhase, SlotTensors, to_device
from studio.backends.chatterbox.alignment import MONITOR_WIDTH, init_monitor
from studio.backends.chatterbox.t3_weights import T3Weights
from studio.backends.chatterbox.voice_prompt import ClonedVoice, T3Prompt

# Sampling one speech token per row as Chatterbox does, with each row's own parameters.
#
# English: repetition, temperature, min-p, top-p. Turbo: temperature, top-k, top-p, repetition.
#
# Source: `T3.inference` and `T3.inference_turbo` of chatterbox-tts 0.1.7, and the logits processors
# of the transformers package that they use.

ALL_TOKENS = 0
"""Candidates of a `SamplingBounds` when every token competes and none is ranked."""


@dataclass(frozen=True, slots=True, eq=False)
class T3SamplingTensors:
    """Sampling parameters of each row; all but `last` and `seen_codes` are float32 [rows, 1].

    Attributes:
        top_p: Above 1 where all of it competes.
        min_p: Share of the likeliest token's likelihood below which none competes.
        last: Rank of the last token that competes, from 0: int64 [rows, 1].
        seen_codes: What the penalty is for: bool [rows, vocabulary].
    """

    temperature: torch.Tensor
    top_p: torch.Tensor
    min_p: torch.Tensor
    penalty: torch.Tensor
    last: torch.Tensor
    seen_codes: torch.Tensor


def sample_token(
    scores: torch.Tensor,
    key: torch.Tensor,
    rules: T3SamplingTensors,
    bounds: SamplingBounds,
    *,
    penalty_first: bool,
) -> torch.Tensor:
    """Sample one token per row.

    The same seed draws other tokens than line by line: there the noise comes from torch's
    generator, here from the token's place in its line.

    Args:
        scores: float32 [rows, vocabulary].
        key: From `derive_frame_keys`: int64 [rows, 1].
        rules: Of each row.
        bounds: The most that any of them asks for.
        penalty_first: As of the weights.

    Returns:
        int64 [rows].
    """
    weighed, tokens = weigh_tokens(scores, rules, bounds, penalty_first=penalty_first)
    race = weighed + gumbel_noise(key, tokens)
    return tokens.gather(1, race.argmax(dim=-1, keepdim=True))[:, 0]


def weigh_tokens(
    scores: torch.Tensor, rules: T3SamplingTensors, bounds: SamplingBounds, *, penalty_first: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of the tokens that may be sampled; arguments as of `sample_token`.

    Returns:
        Logarithms of likelihoods, minus infinity for what doesn't compete: float32
        [rows, candidates]. Their tokens: int64 [rows, candidates].
    """
    if penalty_first:
        scores = _apply_repetition_penalty(scores, rules.seen_codes, rules.penalty)
    ranked, tokens = _rank_tokens(scores / rules.temperature, bounds)
    competes = (
        _min_p_mask(ranked, rules.min_p) if penalty_first else _top_k_mask(ranked, rules.last)
    )
    if bounds.any_top_p:
        competes = competes & top_p_mask(ranked, competes, rules.top_p)
    if not penalty_first:
        ranked = _apply_repetition_penalty(
            ranked, rules.seen_codes.gather(1, tokens), rules.penalty
        )
    return ranked.masked_fill(~competes, -torch.inf), tokens


def _apply_repetition_penalty(
    scores: torch.Tensor, said: torch.Tensor, penalty: torch.Tensor
) -> torch.Tensor:
    less = torch.where(scores < 0, scores * penalty, scores / penalty)
    return torch.where(said, less, scores)


def _rank_tokens(scores: torch.Tensor, bounds: SamplingBounds) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores and their tokens; sorted descending if top-k or top-p needs it."""
    if bounds.max_candidates == ALL_TOKENS and not bounds.any_top_p:
        every = torch.arange(scores.shape[1], device=scores.device)
        return scores, every.expand_as(scores)
    most = scores.shape[1]
    ranked, codes = scores.topk(min(bounds.max_candidates, most) if bounds.max_candidates else most)
    return ranked, codes


def _min_p_mask(scores: torch.Tensor, min_p: torch.Tensor) -> torch.Tensor:
    likelihood = scores.softmax(dim=-1)
    return likelihood >= min_p * likelihood.amax(dim=-1, keepdim=True)


def _top_k_mask(ranked: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    return ranked >= ranked.gather(1, last)


@dataclass(frozen=True, slots=True)
class T3SamplingParams:
    """Sampling parameters of a token; a model ignores those it doesn't have.

    Attributes:
        top_k: Turbo's.
        min_p: Of models with guidance.
        cfg_weight: Of guidance.
    """

    temperature: float = 0.8
    top_p: float = 1.0
    repetition_penalty: float = 1.2
    top_k: int = 1_000
    min_p: float = 0.0
    cfg_weight: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class T3Admission(SlotAdmission):
    """One line for one slot; a frame is a token."""

    prompt: T3Prompt
    sampling: T3SamplingParams


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class T3Request(TtsRequest):
    """A line for Chatterbox; its voice is the same object for all lines of a speaker.

    Attributes:
        text: int64 [1, n], from `ChatterboxModel.text_tokens`.
        exaggeration: Of models with guidance.
    """

    text: torch.Tensor
    voice: ClonedVoice
    exaggeration: float
    sampling: T3SamplingParams

    def admission(self, core: Any, slot: int) -> T3Admission:
        """The line as `T3Runner` takes it."""
        return T3Admission(
            slot=slot,
            prompt=core.prompt(self.text, self.voice, self.exaggeration),
            sampling=self.sampling,
            seed=self.seed,
            max_frames=min(self.max_frames, core.layout.max_frames),
        )


NO_TOP_P = 2.0  # above any sum of probabilities, whatever its rounding


class T3IntColumn(IntEnum):
    """Columns of a slot's integers, after those of `IntColumn`."""

    LAST = len(IntColumn)  # rank of the last token that may be sampled


class T3FloatColumn(IntEnum):
    """Columns of a slot's floats."""

    TEMPERATURE = 0
    TOP_P = 1
    MIN_P = 2
    PENALTY = 3
    CFG_WEIGHT = 4


@dataclass(frozen=True, slots=True, eq=False)
class T3Slots(SlotTensors):
    """The slot tensors; the guidance rows of a slot have their heads and states side by side.

    Attributes:
        watch: On the alignment: float32 [slots, WIDTH].
    """

    watch: torch.Tensor

    @classmethod
    def allocate(cls, weights: T3Weights, layout: SlotLayout) -> T3Slots:
        """Allocate free slots."""
        like, n = weights.head, layout.slots
        stack = weights.stack
        heads = weights.rows * stack.kv_heads
        kept = (len(stack.layers), n, 2, heads, layout.positions, stack.head_dim)
        vocabulary, hidden = like.shape
        columns, device = len(IntColumn) + len(T3IntColumn), like.device
        return cls(
            ints=torch.zeros(n, columns, dtype=torch.long, device=device),
            floats=torch.ones(n, len(T3FloatColumn), device=device),
            hidden=like.new_zeros(n, weights.rows * hidden),
            seen_codes=torch.zeros(n, vocabulary, dtype=torch.bool, device=device),
            codes=torch.zeros(n, layout.max_frames + 1, 1, dtype=torch.long, device=device),
            kv_cache=like.new_zeros(kept),
            watch=torch.zeros(n, MONITOR_WIDTH, device=device),
        )

    def rules(self, rows: int) -> T3SamplingTensors:
        """Sampling parameters of the first rows."""
        return T3SamplingTensors(
            temperature=self.setting(T3FloatColumn.TEMPERATURE, rows),
            top_p=self.setting(T3FloatColumn.TOP_P, rows),
            min_p=self.setting(T3FloatColumn.MIN_P, rows),
            penalty=self.setting(T3FloatColumn.PENALTY, rows),
            last=self.ints[:rows, T3IntColumn.LAST, None],
            seen_codes=self.seen_codes[:rows],
        )

    def setting(self, name: T3FloatColumn, rows: int) -> torch.Tensor:
        """One float column of the first rows: float32 [rows, 1], a view."""
        return self.floats[:rows, name, None]

    def put(
        self,
        lines: Sequence[T3Admission],
        epochs: Sequence[int],
        limits: Sequence[int],
        *,
        start: int,
    ) -> None:
        """Write what lines ask for; they run from the next step on, with `start` as said."""
        slots = self._write(
            [line.slot for line in lines],
            [_t3_int_columns(*line) for line in zip(lines, epochs, limits, strict=True)],
            [_t3_float_columns(line) for line in lines],
        )
        self.seen_codes[slots, start] = True
        prompts = [line.prompt for line in lines]
        watch = [init_monitor(prompt.shared, prompt.text_tokens) for prompt in prompts]
        self.watch[slots] = to_device(torch.tensor(watch), slots.device)

    def _per_slot(self) -> tuple[torch.Tensor, ...]:
        return (*super(T3Slots, self)._per_slot(), self.watch)


def _t3_int_columns(line: T3Admission, epoch: int, limit: int) -> list[int]:
    return [
        epoch,
        SlotPhase.RUNNING,
        0,
        line.prompt.embeds.shape[1],
        limit,
        derive_line_key(line.seed),
        line.sampling.top_k - 1,
    ]


def _t3_float_columns(line: T3Admission) -> list[float]:
    how = line.sampling
    top_p = how.top_p if how.top_p < 1 else NO_TOP_P
    return [how.temperature, top_p, how.min_p, how.repetition_penalty, how.cfg_weight]
