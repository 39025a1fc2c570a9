"""All state of the Chatterbox lines in flight, on the device, a row a slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import torch

from studio.backends.batched.core_contract import Layout
from studio.backends.batched.noise import line_key
from studio.backends.batched.sending import sent
from studio.backends.batched.state import SlotState, State, Whole
from studio.backends.batched_chatterbox.choice import TokenRules
from studio.backends.batched_chatterbox.token_line import TokenAdmission
from studio.backends.batched_chatterbox.weights import T3Weights
from studio.backends.chatterbox.watch import WIDTH, begun

NO_SHARE = 2.0  # above any sum of likelihoods, whatever its rounding


class Setting(IntEnum):
    """Columns of a slot's real numbers."""

    TEMPERATURE = 0
    TOP_P = 1
    MIN_P = 2
    PENALTY = 3
    CFG_WEIGHT = 4


@dataclass(frozen=True, slots=True, eq=False)
class TokenSlots(SlotState):
    """The tensors; a slot's rows of guidance have their heads and states side by side.

    Attributes:
        watch: On the alignment: float32 [slots, WIDTH].
    """

    watch: torch.Tensor

    @classmethod
    def allocate(cls, weights: T3Weights, layout: Layout) -> TokenSlots:
        """Free slots.

        Raises:
            torch.OutOfMemoryError: There is no room for them.
        """
        like, n = weights.head, layout.slots
        stack = weights.stack
        heads = weights.rows * stack.kv_heads
        kept = (len(stack.layers), n, 2, heads, layout.positions, stack.head_dim)
        vocabulary, hidden = like.shape
        device = like.device
        return cls(
            whole=torch.zeros(n, len(Whole), dtype=torch.long, device=device),
            real=torch.ones(n, len(Setting), device=device),
            hidden=like.new_zeros(n, weights.rows * hidden),
            said=torch.zeros(n, vocabulary, dtype=torch.bool, device=device),
            codes=torch.zeros(n, layout.max_frames + 1, 1, dtype=torch.long, device=device),
            cache=like.new_zeros(kept),
            watch=torch.zeros(n, WIDTH, device=device),
        )

    def rules(self, rows: int) -> TokenRules:
        """How the first rows choose."""
        return TokenRules(
            temperature=self.setting(Setting.TEMPERATURE, rows),
            top_p=self.setting(Setting.TOP_P, rows),
            min_p=self.setting(Setting.MIN_P, rows),
            penalty=self.setting(Setting.PENALTY, rows),
            last=self.whole[:rows, Whole.LAST, None],
            said=self.said[:rows],
        )

    def setting(self, name: Setting, rows: int) -> torch.Tensor:
        """A real number of the first rows: float32 [rows, 1], a view."""
        return self.real[:rows, name, None]

    def put(
        self,
        lines: Sequence[TokenAdmission],
        turns: Sequence[int],
        limits: Sequence[int],
        *,
        start: int,
    ) -> None:
        """Write what the lines ask for; they run from the next step on.

        Args:
            lines: Their prompts are in their slots.
            turns: Of each, the number of its admission.
            limits: Of each, the tokens it may have.
            start: The token that counts as said.
        """
        slots = self._write(
            [line.slot for line in lines],
            [_whole(*line) for line in zip(lines, turns, limits, strict=True)],
            [_real(line) for line in lines],
        )
        self.said[slots, start] = True
        prompts = [line.prompt for line in lines]
        watch = [begun(prompt.shared, prompt.text_tokens) for prompt in prompts]
        self.watch[slots] = sent(torch.tensor(watch), slots.device)

    def _rows(self) -> tuple[torch.Tensor, ...]:
        return (*super(TokenSlots, self)._rows(), self.watch)


def _whole(line: TokenAdmission, turn: int, limit: int) -> list[int]:
    columns = dict.fromkeys(Whole, 0) | {
        Whole.TURN: turn,
        Whole.STATE: State.RUNNING,
        Whole.LENGTH: line.prompt.embeds.shape[1],
        Whole.LIMIT: limit,
        Whole.KEY: line_key(line.seed),
        Whole.LAST: line.sampling.top_k - 1,
    }
    return [int(columns[name]) for name in Whole]


def _real(line: TokenAdmission) -> list[float]:
    how = line.sampling
    top_p = how.top_p if how.top_p < 1 else NO_SHARE
    return [how.temperature, top_p, how.min_p, how.repetition_penalty, how.cfg_weight]
