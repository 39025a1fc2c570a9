"""All state of the lines in flight, on the device, a row a slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

import torch

from studio.backends.batched.choice import Rules
from studio.backends.batched.core_contract import Admission, Layout
from studio.backends.batched.noise import line_key
from studio.backends.batched.sending import sent
from studio.backends.batched.weights import PREDICTOR_POSITIONS, Weights
from studio.backends.qwen3.request import Sampling

_NO_SHARE = 2.0  # above any sum of likelihoods, whatever its rounding


class State(IntEnum):
    """What a slot does."""

    FREE = 0
    RUNNING = 1
    ENDED = 2
    BOUND = 3


class Whole(IntEnum):
    """Columns of a slot's whole numbers; the first three are what the host reads."""

    TURN = 0  # which admission this is, so that news of an earlier one is known as such
    STATE = 1
    FRAME = 2
    LENGTH = 3  # positions in the cache
    LIMIT = 4  # frames
    TEXT = 5  # frames that have text of their own
    KEY = 6
    LAST = 7
    REST_LAST = 8
    GREEDY = 9
    REST_GREEDY = 10


class Real(IntEnum):
    """Columns of a slot's real numbers."""

    TEMPERATURE = 0
    TOP_P = 1
    PENALTY = 2
    REST_TEMPERATURE = 3
    REST_TOP_P = 4


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """The tensors; they stay where they are, since captured graphs hold their addresses.

    Attributes:
        whole: int64 [slots, len(Whole)].
        real: float32 [slots, len(Real)].
        hidden: The state that gives the next frame: [slots, hidden].
        text: What is added to each frame; the text's end, from then on, is its last used row:
            [slots, max_frames + 1, hidden].
        said: First codes so far: bool [slots, vocabulary].
        codes: int64 [slots, max_frames + 1, groups]; the last frame is where rows that don't run
            write.
        keys: [layers, slots, kv_heads, positions, head_dim].
        values: The same.
        rest_keys: Of the predictor, one frame's: [layers, slots, kv_heads, 16, head_dim].
        rest_values: The same.
    """

    whole: torch.Tensor
    real: torch.Tensor
    hidden: torch.Tensor
    text: torch.Tensor
    said: torch.Tensor
    codes: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    rest_keys: torch.Tensor
    rest_values: torch.Tensor

    @classmethod
    def allocate(cls, weights: Weights, layout: Layout) -> Slots:
        """Free slots.

        Raises:
            torch.OutOfMemoryError: There is no room for them.
        """
        like, n = weights.head, layout.slots
        frames = layout.max_frames + 1
        cache, rest = weights.talker, weights.predictor
        kept = (len(cache.layers), n, cache.kv_heads, layout.positions, cache.head_dim)
        brief = (len(rest.layers), n, rest.kv_heads, PREDICTOR_POSITIONS, rest.head_dim)
        device = like.device
        return cls(
            whole=torch.zeros(n, len(Whole), dtype=torch.long, device=device),
            real=torch.ones(n, len(Real), device=device),
            hidden=like.new_zeros(n, weights.hidden),
            text=like.new_zeros(n, frames, weights.hidden),
            said=torch.zeros(n, like.shape[0], dtype=torch.bool, device=device),
            codes=torch.zeros(n, frames, weights.groups, dtype=torch.long, device=device),
            keys=like.new_zeros(kept),
            values=like.new_zeros(kept),
            rest_keys=like.new_zeros(brief),
            rest_values=like.new_zeros(brief),
        )

    @property
    def size_bytes(self) -> int:
        """Memory of all of them."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))

    def column(self, name: Whole, rows: int) -> torch.Tensor:
        """A whole number of the first rows: int64 [rows], a view."""
        return self.whole[:rows, name]

    def first_rules(self, rows: int) -> Rules:
        """How a frame's first code is chosen."""
        return self._rules(rows, Real.TEMPERATURE, Whole.LAST, Whole.GREEDY)

    def rest_rules(self, rows: int) -> Rules:
        """How its other codes are chosen."""
        return self._rules(rows, Real.REST_TEMPERATURE, Whole.REST_LAST, Whole.REST_GREEDY)

    def put(self, lines: Sequence[Admission], turns: Sequence[int], limits: Sequence[int]) -> None:
        """Write what the lines ask for; they run from the next step on."""
        at = [line.slot for line in lines]
        whole = [_whole(*line) for line in zip(lines, turns, limits, strict=True)]
        device = self.whole.device
        slots = sent(torch.tensor(at), device)
        self.said[slots] = False
        for line, limit in zip(lines, limits, strict=True):
            self._put_text(line, limit)
        self.real[slots] = sent(torch.tensor([_real(line) for line in lines]), device)
        self.whole[slots] = sent(torch.tensor(whole), device)

    def free(self, slot: int) -> None:
        """Let a slot rest."""
        self.whole[slot] = 0

    def wipe(self, slot: int, positions: int) -> None:
        """Clear a slot's cache up to a position: a number that is none would outlive its line."""
        self.keys[:, slot, :, :positions] = 0
        self.values[:, slot, :, :positions] = 0

    def copy(self, source: int, target: int, positions: int) -> None:
        """Make one slot like another.

        Args:
            source: Which.
            target: Where.
            positions: How many of its cache matter.
        """
        for rows in (self.real, self.hidden, self.text, self.said, self.codes, self.whole):
            rows[target] = rows[source]
        for cache in (self.keys, self.values):
            cache[:, target, :, :positions] = cache[:, source, :, :positions]

    def reset(self) -> None:
        """Forget everything."""
        self.whole.zero_()
        for cache in (self.hidden, self.keys, self.values, self.rest_keys, self.rest_values):
            cache.zero_()

    def _rules(self, rows: int, real: Real, last: Whole, greedy: Whole) -> Rules:
        return Rules(
            temperature=self.real[:rows, real, None],
            top_p=self.real[:rows, real + 1, None],
            last=self.whole[:rows, last, None],
            greedy=self.whole[:rows, greedy] == 1,
        )

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
