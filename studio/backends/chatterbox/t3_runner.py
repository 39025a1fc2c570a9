"""The batched T3: its model runner, and the step that makes one speech token per line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from studio.backends.batching.decoder_stack import EAGER_KERNELS, KernelSet, linear
from studio.backends.batching.model_runner import SlotModelRunner
from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.batching.sampling import SamplingBounds, derive_frame_keys
from studio.backends.batching.slots import DecodeStep, IntColumn, SlotPhase, StepShape
from studio.backends.chatterbox.alignment import (
    AlignmentStep,
    AttentionTap,
    StopRule,
    apply_decision,
    is_premature_stop,
    update_monitor,
)
from studio.backends.chatterbox.t3_slots import (
    ALL_TOKENS,
    T3Admission,
    T3FloatColumn,
    T3Slots,
    sample_token,
)
from studio.backends.chatterbox.t3_weights import T3Weights, pack_t3
from studio.backends.chatterbox.voice_prompt import ClonedVoice, T3Prompt, T3PromptBuilder

# One step makes a speech token of each line in flight; all decisions are made on the device.
#
# Source: `T3.inference` and `T3.inference_turbo` of chatterbox-tts 0.1.7.


class T3Step(DecodeStep):
    """Advances slots by one token."""

    def __init__(
        self,
        weights: T3Weights,
        slots: T3Slots,
        ends: StopRule = StopRule.SPOKEN,
        kernels: KernelSet = EAGER_KERNELS,
    ) -> None:
        super().__init__(slots, kernels)
        self._ends = ends
        self._weights = weights
        self._slots = slots
        self._groups = torch.arange(1, device=weights.head.device)

    def __call__(self, shape: StepShape) -> None:
        """Make a token in every slot of the first `shape.rows` that runs."""
        slots, weights, rows = self._slots, self._weights, shape.rows
        place = slots.column(IntColumn.FRAME, rows)
        token = sample_token(
            self._scores(rows),
            derive_frame_keys(slots.column(IntColumn.KEY, rows), place, self._groups)[0],
            slots.rules(rows),
            shape.bounds,
            penalty_first=weights.penalty_first,
        )
        running = slots.column(IntColumn.STATE, rows) == SlotPhase.RUNNING
        goes = self._mark_stopped((token == weights.end) & (place >= weights.shortest))
        if weights.watched:
            self._mark_cut(running)
        self._store_codes(token[:, None], goes)
        hidden, watch = self._read_token(token, shape)
        if watch is not None:
            slots.watch[:rows] = watch
        if not weights.penalty_first:
            slots.seen_codes[:rows, weights.start].logical_and_(place > 0)
        self._store_state(token, hidden, goes)

    def _mark_cut(self, running: torch.Tensor) -> None:
        """Mark lines whose end was forced before their text was spoken."""
        rows = len(running)
        state = self._slots.column(IntColumn.STATE, rows)
        cut = running & (state == SlotPhase.ENDED) & is_premature_stop(self._slots.watch[:rows])
        state.masked_fill_(cut, int(SlotPhase.BOUND))

    def _scores(self, rows: int) -> torch.Tensor:
        """The scores with guidance applied: float32 [rows, vocabulary]."""
        slots, weights = self._slots, self._weights
        hidden = slots.hidden[:rows].view(rows * weights.rows, -1)
        scores = linear(hidden, weights.head, weights.head_bias).float()
        if weights.rows == 1:
            return scores
        seen, blind = scores.unflatten(0, (rows, 2)).unbind(1)
        scores = seen + slots.setting(T3FloatColumn.CFG_WEIGHT, rows) * (seen - blind)
        return (
            apply_decision(scores, slots.watch[:rows], weights.end) if weights.watched else scores
        )

    def _read_token(
        self, token: torch.Tensor, shape: StepShape
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Read the tokens; returns the next hidden states and the new monitor state."""
        weights, rows = self._weights, shape.rows
        read = F.embedding(token, weights.tokens)
        if weights.places is not None:
            read = read + weights.places[self._slots.column(IntColumn.FRAME, rows) + 1]
        at = self._write_positions(shape)
        attend = self._attention(at, shape, weights.stack.group)
        if not weights.watched:
            states = weights.stack.forward(self._repeat_rows(read), self._repeat_rows(at), attend)
            return states.view(rows, -1), None
        mask = self._mask(at, shape.window)[:, 0]
        spy = AttentionTap(attend, self._slots.keys, mask, weights.watched)
        states = weights.stack.forward(self._repeat_rows(read), self._repeat_rows(at), spy)
        return states.view(rows, -1), self._update_monitor(token, spy.attention)

    def _update_monitor(self, token: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
        """The monitor state after a token, given its attention: [rows, WIDTH]."""
        slots, rows = self._slots, len(token)
        place = slots.column(IntColumn.FRAME, rows)
        before = slots.codes[self._rows[:rows], (place - 1).clamp(min=0), 0]
        twice = (token == before) & (place > 0)
        return update_monitor(
            slots.watch[:rows], AlignmentStep(attention, place + 1, twice), self._ends
        )

    def _repeat_rows(self, of_slots: torch.Tensor) -> torch.Tensor:
        """Repeat slots' values for guidance rows: [rows, ...] to [rows * rows a slot, ...]."""
        return of_slots.repeat_interleave(self._weights.rows, dim=0)


MAX_T3_TOP_K = 1_000

LINE_TOO_LONG = (
    "This line is longer than the memory that each line has here. Split it, or set "
    "TTS_BATCH_POSITIONS to a larger number, or to none, with which any line fits."
)

_TURBO_BOUNDS = SamplingBounds(MAX_T3_TOP_K, any_top_p=True)
_GUIDED_BOUNDS = SamplingBounds(ALL_TOKENS)


class T3Runner(SlotModelRunner[T3Admission]):
    """Decodes many lines of one T3 as a batch."""

    _slots: T3Slots
    _too_long = LINE_TOO_LONG

    def __init__(  # noqa: PLR0913 - all but the first two have defaults
        self,
        t3: Any,
        layout: SlotLayout,
        *,
        dtype: torch.dtype = torch.float32,
        prefill_positions: int | None = None,
        release: bool = False,
        ends: StopRule = StopRule.SPOKEN,
        kernels: KernelSet = EAGER_KERNELS,
    ) -> None:
        """Pack the weights and allocate the slots.

        `release` takes the package's own layers away, which can't run afterwards; `kernels` are
        those of a step.

        Raises:
            BatchingUnavailable: The checkpoint isn't one that can be run like this.
            torch.OutOfMemoryError: There is no room for the slots.
        """
        self.prompts = T3PromptBuilder(t3, dtype)
        with torch.inference_mode():
            weights = pack_t3(t3, layout.positions, dtype, release=release)
            slots = T3Slots.allocate(weights, layout)
        self._start = weights.start
        super().__init__(
            layout,
            weights.stack,
            slots,
            T3Step(weights.with_kernels(kernels), slots, ends, kernels),
            prefill_positions=prefill_positions,
            usual=_GUIDED_BOUNDS if weights.penalty_first else _TURBO_BOUNDS,
            own_attention=kernels.attend is not None,
            captures_prefill=slots.ints.is_cuda and weights.rows == 1,
        )

    def prompt(self, text: torch.Tensor, voice: ClonedVoice, exaggeration: float) -> T3Prompt:
        """Lay out a line; see `T3PromptBuilder.build`."""
        with torch.inference_mode():
            return self.prompts.build(text, voice, exaggeration)

    def _put(
        self, lines: Sequence[T3Admission], epochs: Sequence[int], limits: Sequence[int]
    ) -> None:
        self._slots.put(lines, epochs, limits, start=self._start)

    def _bounds(self, line: T3Admission) -> SamplingBounds:
        if self._usual == _TURBO_BOUNDS:
            return _TURBO_BOUNDS
        return SamplingBounds(ALL_TOKENS, any_top_p=line.sampling.top_p < 1)

    def _check_line(self, line: T3Admission) -> None:
        if not 1 <= line.sampling.top_k <= MAX_T3_TOP_K:
            raise ValueError(f"A top-k is out of range; it is 1 to {MAX_T3_TOP_K}.")
        if line.sampling.temperature <= 0:
            raise ValueError("A temperature is out of range; it is above 0.")
