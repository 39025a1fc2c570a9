"""The batched talker: its model runner, and the step that makes a frame of all lines in flight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from studio.backends.batching.decoder_stack import KernelSet, linear
from studio.backends.batching.kernel_set import select_eager
from studio.backends.batching.model_runner import SlotModelRunner
from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.batching.sampling import SamplingBounds
from studio.backends.batching.slots import DecodeStep, IntColumn, StepShape
from studio.backends.qwen3.checkpoint import MIN_FRAMES
from studio.backends.qwen3.code_predictor import CodePredictor
from studio.backends.qwen3.prompt import CachingPromptBuilder, PrefixedPrompt, Qwen3Voice
from studio.backends.qwen3.talker_slots import (
    TalkerAdmission,
    TalkerFloatColumn,
    TalkerIntColumn,
    TalkerSlots,
)
from studio.backends.qwen3.talker_weights import TalkerWeights, pack_talker

# One frame of all lines in flight, with everything that decides on the device.
#
# Nothing here reads a tensor's value on the host, and no shape depends on one: the same code runs
# at once on a CPU and is captured as a graph on CUDA.
#
# Source: `Qwen3TTSTalkerForConditionalGeneration.forward` of qwen-tts-hf 0.1.1.post1, and the
# logits processors of the transformers package that its `generate` asks for.


class TalkerStep(DecodeStep):
    """Advances slots by a frame."""

    def __init__(self, weights: TalkerWeights, slots: TalkerSlots) -> None:
        """Hold the constants that a frame needs; both arguments are used, not copied."""
        super().__init__(slots)
        self._weights = weights
        self._slots = slots
        self._groups = torch.arange(weights.groups, device=weights.head.device)
        self._most_codes = max(len(head) for head in (weights.head, *weights.rest_heads))
        self._rest = CodePredictor(weights, slots)

    def __call__(self, shape: StepShape) -> None:
        """Make a frame in every slot of the first `shape.rows` that runs."""
        slots, rows = self._slots, shape.rows
        frame = slots.column(IntColumn.FRAME, rows)
        kernels = self._weights.talker.kernels
        key = slots.column(IntColumn.KEY, rows)
        noise = kernels.noise(key, frame, self._groups, self._most_codes)
        rules = slots.first_rules(rows)
        first = kernels.sample(self._first_scores(rows), noise[0], rules, shape.bounds)
        goes = self._mark_stopped(first == self._weights.end)
        codes = self._rest(first, noise, shape.bounds)  # [rows, groups]
        self._store_codes(codes, goes)
        self._store_state(first, self._read_frame(codes, shape), goes)

    def _first_scores(self, rows: int) -> torch.Tensor:
        """What may be a frame's first code: float32 [rows, vocabulary]."""
        slots = self._slots
        scores = linear(slots.hidden[:rows], self._weights.head).float()
        penalty = slots.floats[:rows, TalkerFloatColumn.PENALTY, None]
        less = torch.where(scores < 0, scores * penalty, scores / penalty)
        scores = torch.where(slots.seen_codes[:rows], less, scores) + self._weights.banned
        scores[:, self._weights.end].masked_fill_(
            slots.column(IntColumn.FRAME, rows) < MIN_FRAMES, -torch.inf
        )
        return scores

    def _read_frame(self, codes: torch.Tensor, shape: StepShape) -> torch.Tensor:
        """Read the frame with the text that goes with it; the next frame's state."""
        weights, slots, rows = self._weights, self._slots, shape.rows
        frame = F.embedding(codes + weights.offsets, weights.tables).sum(dim=1)
        spoken = torch.minimum(
            slots.column(IntColumn.FRAME, rows), slots.column(TalkerIntColumn.TEXT, rows)
        )
        at = self._write_positions(shape)
        attend = self._attention(at, shape, weights.talker.group)
        return weights.talker.forward(frame + slots.text[self._rows[:rows], spoken], at, attend)


MAX_TOP_K = 256
"""The most codes that compete; far above what a person can set."""


class TalkerRunner(SlotModelRunner[TalkerAdmission]):
    """Many lines of one Qwen3-TTS checkpoint, decoded together."""

    _too_long = (
        "The speaker's sample and this line are too long together. Cut the sample to "
        "under 30 s, or split the line."
    )

    def __init__(
        self,
        model: Any,
        layout: SlotLayout,
        *,
        prefill_positions: int | None = None,
        release: bool = False,
        kernels: KernelSet | None = None,
    ) -> None:
        """Pack the weights and allocate the slots.

        Args:
            model: The package's `Qwen3TTSForConditionalGeneration`; its device and precision hold.
            layout: How much is allocated.
            prefill_positions: See `prefill.group_by_length`; None for the device's.
            release: Take the package's own layers away, which can't run afterwards.
            kernels: What a frame is made of; None for what suits the device.

        Raises:
            BatchingUnavailable: The checkpoint isn't one that can be run like this.
            torch.OutOfMemoryError: There is no room for the slots.
        """
        self._prompts = CachingPromptBuilder(model)
        self._kernels = kernels or select_eager(model.talker.device.type)
        with torch.inference_mode():
            weights = pack_talker(model.talker, layout.positions, release=release)
            self._lines = TalkerSlots.allocate(weights, layout)
        step = TalkerStep(weights.with_kernels(self._kernels), self._lines)
        super().__init__(
            layout, weights.talker, self._lines, step, prefill_positions=prefill_positions
        )

    @property
    def prompts(self) -> CachingPromptBuilder:
        """Where prompts are laid out."""
        return self._prompts

    @property
    def kernels(self) -> KernelSet:
        """What a frame is made of."""
        return self._kernels

    def prompt(self, line: torch.Tensor, voice: Qwen3Voice, language: str | None) -> PrefixedPrompt:
        """Lay out a line; what all lines of a voice share is computed once.

        Args:
            line: int64 [tokens], from `Tokens.line`.
            voice: Whose.
            language: The model's own name; None lets it find out.
        """
        with torch.inference_mode():
            return self._prompts.build(line, voice, language)

    def close(self) -> None:
        """Give up graphs and state."""
        super().close()
        del self._lines, self._prompts

    def _put(
        self, lines: Sequence[TalkerAdmission], epochs: Sequence[int], limits: Sequence[int]
    ) -> None:
        self._lines.put(lines, epochs, limits)

    def _bounds(self, line: TalkerAdmission) -> SamplingBounds:
        drawn = [how for how in (line.sampling, line.rest) if not line.sampling.greedy]
        widest = max((how.top_k for how in drawn), default=1)
        return SamplingBounds(
            self._usual.max_candidates if widest <= self._usual.max_candidates else MAX_TOP_K,
            any(how.top_p < 1 for how in drawn),
            line.sampling.greedy or line.rest.greedy,
        )

    def _check_line(self, line: TalkerAdmission) -> None:
        if not all(1 <= how.top_k <= MAX_TOP_K for how in (line.sampling, line.rest)):
            raise ValueError(f"A top-k is out of range; it is 1 to {MAX_TOP_K}.")
