"""The batched talker and its code predictor: one frame of all lines in flight, and their runner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from studio.backends.batching.decoder_stack import (
    KernelSet,
    linear,
    run_layers,
    split_kv,
)
from studio.backends.batching.kernel_set import select_eager
from studio.backends.batching.model_runner import SlotModelRunner
from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.batching.sampling import SamplingBounds
from studio.backends.batching.slots import DecodeStep, IntColumn, StepShape
from studio.backends.qwen3.checkpoint import MIN_FRAMES
from studio.backends.qwen3.prompt import CachingPromptBuilder, PrefixedPrompt, Qwen3Voice
from studio.backends.qwen3.talker_slots import (
    TalkerAdmission,
    TalkerFloatColumn,
    TalkerIntColumn,
    TalkerSlots,
)
from studio.backends.qwen3.talker_weights import PREDICTOR_POSITIONS, TalkerWeights, pack_talker


class CodePredictor:
    """Predicts a frame's other codes for many lines; its passes are unrolled: all shapes are fixed.

    A line's sampling is for a frame's first code; these are drawn as the checkpoint asks for.
    """

    def __init__(self, weights: TalkerWeights, slots: TalkerSlots) -> None:
        self._weights = weights
        self._slots = slots
        self._sample = weights.talker.kernels.sample
        positions = torch.arange(PREDICTOR_POSITIONS, device=weights.tables.device)
        self._turns = weights.predictor.turns(positions)

    def __call__(
        self, first: torch.Tensor, noise: torch.Tensor, bounds: SamplingBounds
    ) -> torch.Tensor:
        """Predict a frame's other codes one after the other, from its first: int64 [rows].

        Returns:
            int64 [rows, groups], the first one with them.
        """
        weights, rows = self._weights, len(first)
        rules = self._slots.rest_rules(rows)
        codes = [first]
        kept = self._slots.rest_heads(rows, weights.predictor.layers[0].shape)
        x = self._forward_pair(first, kept)  # [rows, hidden]
        for group, head in enumerate(weights.rest_heads, start=1):
            if group > 1:
                table = weights.rest_tables[group - 2]
                x = self._forward_code(F.embedding(codes[-1], table), group, kept)
            codes.append(self._sample(linear(x, head), noise[group], rules, bounds))
        return torch.stack(codes, dim=1)

    def _forward_pair(self, first: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        """Read the talker's state and the first code; returns the state behind both."""
        weights, rows = self._weights, len(first)
        hidden = self._slots.hidden[:rows]
        if weights.project is not None:
            hidden = linear(hidden, *weights.project)
        pair = torch.cat([hidden, F.embedding(first, weights.rest_first)])
        turns = [turn[:2] for turn in self._turns]
        places = kept[:, :, :2].flatten(2, 3).flatten(3)  # [layers, 2, 2 * rows, heads]
        x = run_layers(
            weights.predictor, pair, turns, self._attend_pair, lambda index: places[index]
        )
        return x[rows:]

    def _attend_pair(self, _index: int, heads: torch.Tensor) -> torch.Tensor:
        """The first two positions of the predictor; the first doesn't see the second.

        It sees itself alone, which is its value: a mask of two positions would be one that CUDA's
        kernels can't read as it is.
        """
        group = self._weights.predictor.group
        each = heads.unflatten(1, (2, -1)).movedim(1, 3)  # [2, rows, kv_heads, 2, group + 2, d]
        keys, values = split_kv(each).unbind(1)  # [rows, kv_heads, 2, d]
        second = F.scaled_dot_product_attention(each[0][:, :, 1, :group], keys, values)
        first = values[:, :, :1].expand_as(second)
        mixed = torch.stack([first.transpose(1, 2), second.transpose(1, 2)])
        return mixed.flatten(0, 1).flatten(1)

    def _forward_code(self, x: torch.Tensor, position: int, kept: torch.Tensor) -> torch.Tensor:
        stack = self._weights.predictor
        seen = kept[:, :, : position + 1].movedim(2, 4)  # [layers, 2, rows, kv_heads, positions, …]
        places = kept[:, :, position].flatten(3)  # [layers, 2, rows, heads]
        turns = [turn[position, None] for turn in self._turns]

        def attend(index: int, heads: torch.Tensor) -> torch.Tensor:
            keys, values = split_kv(seen[index]).unbind(1)
            mixed = F.scaled_dot_product_attention(heads[0][:, :, : stack.group], keys, values)
            return mixed.transpose(1, 2).flatten(1)

        return run_layers(stack, x, turns, attend, lambda index: places[index])


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
        super().__init__(slots, weights.talker.kernels)
        self._weights = weights
        self._slots = slots
        self._groups = torch.arange(weights.groups, device=weights.tables.device)
        self._most_codes = max(len(head) for head in (weights.head, *weights.rest_heads))
        self._rest = CodePredictor(weights, slots)

    def __call__(self, shape: StepShape) -> None:
        """Generate a frame in every running slot of the first `shape.rows`."""
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
        """Scores of a frame's first code: float32 [rows, vocabulary]."""
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
"""Upper bound of top_k; far above what a person can set."""


class TalkerRunner(SlotModelRunner[TalkerAdmission]):
    """Many lines of one Qwen3-TTS checkpoint, decoded together."""

    _slots: TalkerSlots
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
        captures_prefill: bool | None = None,
    ) -> None:
        """Pack the weights and allocate the slots.

        `release` takes the package's own layers away, which can't run afterwards. None for
        `captures_prefill` is what suits the device.

        Raises:
            BatchingUnavailable: The checkpoint isn't one that can be run like this.
            torch.OutOfMemoryError: There is no room for the slots.
        """
        self.prompts = CachingPromptBuilder(model)
        device = model.talker.device.type
        self.kernels = kernels or select_eager(device)
        with torch.inference_mode():
            pack = self.kernels.pack
            weights = pack_talker(model.talker, layout.positions, release=release, pack=pack)
            slots = TalkerSlots.allocate(weights, layout)
        step = TalkerStep(weights.with_kernels(self.kernels), slots)
        super().__init__(
            layout,
            weights.talker,
            slots,
            step,
            prefill_positions=prefill_positions,
            always=SamplingBounds(MAX_TOP_K, True, True) if self.kernels.samples_all else None,
            own_attention=self.kernels.attend is not None,
            captures_prefill=device == "cuda" if captures_prefill is None else captures_prefill,
        )

    def prompt(self, line: torch.Tensor, voice: Qwen3Voice, language: str | None) -> PrefixedPrompt:
        """Lay out a line; what all lines of a voice share is computed once."""
        with torch.inference_mode():
            return self.prompts.build(line, voice, language)

    def _put(
        self, lines: Sequence[TalkerAdmission], epochs: Sequence[int], limits: Sequence[int]
    ) -> None:
        self._slots.put(lines, epochs, limits)

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
