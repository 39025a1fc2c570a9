"""All state of the lines in flight, on the device, a row a slot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import torch

from studio.backends.batched.choice import Rules
from studio.backends.batched.core_contract import Admission, Layout
from studio.backends.batched.noise import line_key
from studio.backends.batched.state import SlotState, State, Whole
from studio.backends.batched.weights import PREDICTOR_POSITIONS, Weights
from studio.backends.qwen3.request import Sampling

_NO_SHARE = 2.0  # above any sum of likelihoods, whatever its rounding


class Real(IntEnum):
    """Columns of a slot's real numbers."""

    TEMPERATURE = 0
    TOP_P = 1
    PENALTY = 2
    REST_TEMPERATURE = 3
    REST_TOP_P = 4


@dataclass(frozen=True, slots=True, eq=False)
class Slots(SlotState):
    """The tensors of Qwen3-TTS lines.

    Attributes:
        text: What is added to each frame; the text's end, from then on, is its last used row:
            [slots, max_frames + 1, hidden].
        rest: Heads of the predictor, one frame's, laid out anew for each number of rows; see
            `rest_heads`: [layers, 2 * 16 * slots * kv_heads * (group + 2) * head_dim].
    """

    text: torch.Tensor
    rest: torch.Tensor

    @classmethod
    def allocate(cls, weights: Weights, layout: Layout) -> Slots:
        """Free slots.

        Raises:
            torch.OutOfMemoryError: There is no room for them.
        """
        like, n = weights.head, layout.slots
        frames = layout.max_frames + 1
        cache, rest = weights.talker, weights.predictor
        kept = (len(cache.layers), n, 2, cache.kv_heads, layout.positions, cache.head_dim)
        brief = 2 * PREDICTOR_POSITIONS * n * rest.kv_heads * (rest.group + 2) * rest.head_dim
        device = like.device
        return cls(
            whole=torch.zeros(n, len(Whole), dtype=torch.long, device=device),
            real=torch.ones(n, len(Real), device=device),
            hidden=like.new_zeros(n, weights.hidden),
            text=like.new_zeros(n, frames, weights.hidden),
            said=torch.zeros(n, like.shape[0], dtype=torch.bool, device=device),
            codes=torch.zeros(n, frames, weights.groups, dtype=torch.long, device=device),
            cache=like.new_zeros(kept),
            rest=like.new_zeros(len(rest.layers), brief),
        )

    def first_rules(self, rows: int) -> Rules:
        """How a frame's first code is chosen."""
        return self._rules(rows, Real.TEMPERATURE, Whole.LAST, Whole.GREEDY)

    def rest_rules(self, rows: int) -> Rules:
        """How its other codes are chosen."""
        return self._rules(rows, Real.REST_TEMPERATURE, Whole.REST_LAST, Whole.REST_GREEDY)

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

    def put(self, lines: Sequence[Admission], turns: Sequence[int], limits: Sequence[int]) -> None:
        """Write what the lines ask for; they run from the next step on."""
        for line, limit in zip(lines, limits, strict=True):
            self._put_text(line, limit)
        self._write(
            [line.slot for line in lines],
            [_whole(*line) for line in zip(lines, turns, limits, strict=True)],
            [_real(line) for line in lines],
        )

    def reset(self) -> None:
        """Forget everything."""
        super(Slots, self).reset()
        self.rest.zero_()

    def _rules(self, rows: int, real: Real, last: Whole, greedy: Whole) -> Rules:
        return Rules(
            temperature=self.real[:rows, real, None],
            top_p=self.real[:rows, real + 1, None],
            last=self.whole[:rows, last, None],
            greedy=self.whole[:rows, greedy],
        )

    def _rows(self) -> tuple[torch.Tensor, ...]:
        return (*super(Slots, self)._rows(), self.text)

    def _put_text(self, line: Admission, limit: int) -> None:
        used = min(line.prompt.trailing.shape[1], limit)
        self.text[line.slot, :used] = line.prompt.trailing[0, :used]
        self.text[line.slot, used] = line.prompt.pad[0, 0]


def _whole(line: Admission, turn: int, limit: int) -> list[int]:
    return [
        turn,
        State.RUNNING,
        0,
        line.prompt.embeds.shape[1],
        limit,
        min(line.prompt.trailing.shape[1], limit),
        line_key(line.seed),
        0 if line.sampling.greedy else line.sampling.top_k - 1,
        0 if line.sampling.greedy else line.rest.top_k - 1,
        int(line.sampling.greedy),
        int(line.sampling.greedy or line.rest.greedy),
    ]


def _real(line: Admission) -> list[float]:
    temperature, top_p = _drawn(line.sampling)
    rest = _drawn(line.rest)
    return [temperature, top_p, line.sampling.repetition_penalty, *rest]


def _drawn(sampling: Sampling) -> tuple[float, float]:
    """Temperature and share."""
    return sampling.temperature or 1.0, sampling.top_p if sampling.top_p < 1 else _NO_SHARE
