"""Requests to the batched talker, and the state of their lines in its slots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Any

import torch

from studio.backends.batching.runner_contract import SlotAdmission, SlotLayout
from studio.backends.batching.sampling import SamplingTensors, derive_line_key
from studio.backends.batching.sequence import TtsRequest
from studio.backends.batching.slots import IntColumn, SlotPhase, SlotTensors
from studio.backends.qwen3.checkpoint import DEFAULT_SAMPLING, SamplingParams
from studio.backends.qwen3.prompt import Qwen3Voice
from studio.backends.qwen3.talker_weights import PREDICTOR_POSITIONS, TalkerWeights

if TYPE_CHECKING:
    from studio.backends.qwen3.prompt import PrefixedPrompt

_NO_TOP_P = 2.0  # above any sum of likelihoods, whatever its rounding


class TalkerIntColumn(IntEnum):
    """Columns of a slot's whole numbers, behind those of `IntColumn`."""

    TEXT = len(IntColumn)  # frames to which a token of the text is added
    LAST = auto()  # top_k: rank of the last code that may be sampled
    REST_LAST = auto()
    GREEDY = auto()
    REST_GREEDY = auto()


class TalkerFloatColumn(IntEnum):
    """Columns of a slot's real numbers."""

    TEMPERATURE = 0
    TOP_P = 1
    PENALTY = 2
    REST_TEMPERATURE = 3
    REST_TOP_P = 4


@dataclass(frozen=True, slots=True, eq=False)
class TalkerSlots(SlotTensors):
    """The tensors of Qwen3-TTS lines.

    Attributes:
        text: What is added to each frame; the text's end, from then on, is its last used row:
            [slots, max_frames + 1, hidden].
        rest: Heads of the predictor, one frame's, laid out differently for each number of rows; see
            `rest_heads`: [layers, 2 * 16 * slots * kv_heads * (group + 2) * head_dim].
    """

    text: torch.Tensor
    rest: torch.Tensor

    @classmethod
    def allocate(cls, weights: TalkerWeights, layout: SlotLayout) -> TalkerSlots:
        """Free slots."""
        like, n = weights.tables, layout.slots
        frames = layout.max_frames + 1
        cache, rest = weights.talker, weights.predictor
        kept = (len(cache.layers), n, 2, cache.kv_heads, layout.positions, cache.head_dim)
        brief = 2 * PREDICTOR_POSITIONS * n * rest.kv_heads * (rest.group + 2) * rest.head_dim
        columns, device = len(IntColumn) + len(TalkerIntColumn), like.device
        return cls(
            ints=torch.zeros(n, columns, dtype=torch.long, device=device),
            floats=torch.ones(n, len(TalkerFloatColumn), device=device),
            hidden=like.new_zeros(n, weights.hidden),
            text=like.new_zeros(n, frames, weights.hidden),
            seen_codes=torch.zeros(n, len(weights.head), dtype=torch.bool, device=device),
            codes=torch.zeros(n, frames, weights.groups, dtype=torch.long, device=device),
            kv_cache=like.new_zeros(kept),
            rest=like.new_zeros(len(rest.layers), brief),
        )

    def first_rules(self, rows: int) -> SamplingTensors:
        """Sampling of a frame's first code."""
        return self._rules(
            rows, TalkerFloatColumn.TEMPERATURE, TalkerIntColumn.LAST, TalkerIntColumn.GREEDY
        )

    def rest_rules(self, rows: int) -> SamplingTensors:
        """Sampling of its other codes."""
        return self._rules(
            rows,
            TalkerFloatColumn.REST_TEMPERATURE,
            TalkerIntColumn.REST_LAST,
            TalkerIntColumn.REST_GREEDY,
        )

    def rest_heads(self, rows: int, shape: tuple[int, int, int]) -> torch.Tensor:
        """The predictor's heads of a frame's positions, after norm and rotation, and before.

        Args:
            rows: That are decoded.
            shape: Of a row's heads: kv_heads, group + 2, head_dim.

        Returns:
            [layers, 2, 16, rows, *shape], a view; the heads of positions that follow each other
            lie end to end.
        """
        numbers = 2 * PREDICTOR_POSITIONS * rows * math.prod(shape)
        return self.rest[:, :numbers].unflatten(1, (2, PREDICTOR_POSITIONS, rows, *shape))

    def put(
        self, lines: Sequence[TalkerAdmission], epochs: Sequence[int], limits: Sequence[int]
    ) -> None:
        """Write the lines into their slots; they run from the next step on."""
        for line, limit in zip(lines, limits, strict=True):
            self._put_text(line, limit)
        self._write(
            [line.slot for line in lines],
            [_int_columns(*line) for line in zip(lines, epochs, limits, strict=True)],
            [_float_columns(line) for line in lines],
        )

    def reset(self) -> None:
        """Free every slot."""
        super(TalkerSlots, self).reset()
        self.rest.zero_()

    def _rules(
        self, rows: int, real: TalkerFloatColumn, last: TalkerIntColumn, greedy: TalkerIntColumn
    ) -> SamplingTensors:
        return SamplingTensors(
            temperature=self.floats[:rows, real, None],
            top_p=self.floats[:rows, real + 1, None],
            last=self.ints[:rows, last, None],
            greedy=self.ints[:rows, greedy],
        )

    def _per_slot(self) -> tuple[torch.Tensor, ...]:
        return (*super(TalkerSlots, self)._per_slot(), self.text)

    def _put_text(self, line: TalkerAdmission, limit: int) -> None:
        used = min(line.prompt.trailing.shape[1], limit)
        self.text[line.slot, :used] = line.prompt.trailing[0, :used]
        self.text[line.slot, used] = line.prompt.pad[0, 0]


def _int_columns(line: TalkerAdmission, epoch: int, limit: int) -> list[int]:
    return [
        epoch,
        SlotPhase.RUNNING,
        0,
        line.prompt.embeds.shape[1],
        limit,
        derive_line_key(line.seed),
        min(line.prompt.trailing.shape[1], limit),
        0 if line.sampling.greedy else line.sampling.top_k - 1,
        0 if line.sampling.greedy else line.rest.top_k - 1,
        int(line.sampling.greedy),
        int(line.sampling.greedy or line.rest.greedy),
    ]


def _float_columns(line: TalkerAdmission) -> list[float]:
    temperature, top_p = _temperature_top_p(line.sampling)
    rest = _temperature_top_p(line.rest)
    return [temperature, top_p, line.sampling.repetition_penalty, *rest]


def _temperature_top_p(sampling: SamplingParams) -> tuple[float, float]:
    """Temperature and top_p."""
    return sampling.temperature or 1.0, sampling.top_p if sampling.top_p < 1 else _NO_TOP_P


@dataclass(frozen=True, slots=True, eq=False)
class TalkerAdmission(SlotAdmission):
    """A line to be admitted to a slot.

    Attributes:
        sampling: Of a frame's first code, which carries the words; `temperature` 0 takes the
            likeliest code, there and in the rest.
        rest: Sampling of a frame's other codes; its repetition penalty has no meaning.
    """

    prompt: PrefixedPrompt
    sampling: SamplingParams
    rest: SamplingParams = field(default_factory=SamplingParams)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TalkerRequest(TtsRequest):
    """A line for Qwen3-TTS; the codes of its voice's sample precede it.

    Attributes:
        tokens: int64 [tokens], from `Qwen3Tokenizer.line`.
        language: The model's own name; None lets it find out.
        sampling: Of a frame's first code.
        rest: Of the codes after it.
    """

    tokens: torch.Tensor
    voice: Qwen3Voice
    language: str | None
    sampling: SamplingParams
    rest: SamplingParams = DEFAULT_SAMPLING

    def admission(self, core: Any, slot: int) -> TalkerAdmission:
        """The line as `TalkerRunner` takes it."""
        return TalkerAdmission(
            slot=slot,
            prompt=core.prompt(self.tokens, self.voice, self.language),
            sampling=self.sampling,
            rest=self.rest,
            seed=self.seed,
            max_frames=min(self.max_frames, core.layout.max_frames),
        )
