"""The decoding core of Qwen3-TTS: packed weights, slots, and the step that advances them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from studio.backends.batched.choice import Breadth
from studio.backends.batched.core_contract import MAX_TOP_K, Admission, Layout
from studio.backends.batched.parts import Parts, plain
from studio.backends.batched.prompts import SharedPrompt, SharedPrompts
from studio.backends.batched.slot_core import SlotCore
from studio.backends.batched.slots import Slots
from studio.backends.batched.step import FrameStep
from studio.backends.batched.weights import pack
from studio.backends.qwen3.voice import Qwen3Voice


class BatchedCore(SlotCore[Admission]):
    """Many lines of one Qwen3-TTS checkpoint, decoded together."""

    def __init__(
        self,
        model: Any,
        layout: Layout,
        *,
        prefill_positions: int | None = None,
        release: bool = False,
        parts: Parts | None = None,
    ) -> None:
        """Pack the weights and allocate the slots.

        Args:
            model: The package's `Qwen3TTSForConditionalGeneration`; its device and precision hold.
            layout: How much is allocated.
            prefill_positions: See `studio.backends.batched.prefill.passes`; None for the device's.
            release: Take the package's own layers away, which can't run afterwards.
            parts: What a frame is made of; None for what suits the device.

        Raises:
            ModelUnavailable: The checkpoint isn't one that can be run like this.
            torch.OutOfMemoryError: There is no room for the slots.
        """
        self._prompts = SharedPrompts(model)
        self._parts = parts or plain(model.talker.device.type)
        with torch.inference_mode():
            weights = pack(model.talker, layout.positions, release=release)
            self._lines = Slots.allocate(weights, layout)
        step = FrameStep(weights.made_of(self._parts), self._lines)
        super().__init__(
            layout, weights.talker, self._lines, step, prefill_positions=prefill_positions
        )

    @property
    def prompts(self) -> SharedPrompts:
        """Where prompts are laid out."""
        return self._prompts

    @property
    def parts(self) -> Parts:
        """What a frame is made of."""
        return self._parts

    def prompt(self, line: torch.Tensor, voice: Qwen3Voice, language: str | None) -> SharedPrompt:
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

    def _put(self, lines: Sequence[Admission], turns: Sequence[int], limits: Sequence[int]) -> None:
        self._lines.put(lines, turns, limits)

    def _breadth(self, line: Admission) -> Breadth:
        drawn = [how for how in (line.sampling, line.rest) if not line.sampling.greedy]
        widest = max((how.top_k for how in drawn), default=1)
        return Breadth(
            self._usual.candidates if widest <= self._usual.candidates else MAX_TOP_K,
            any(how.top_p < 1 for how in drawn),
            line.sampling.greedy or line.rest.greedy,
        )

    def _check_line(self, line: Admission) -> None:
        if not all(1 <= how.top_k <= MAX_TOP_K for how in (line.sampling, line.rest)):
            raise ValueError(f"A top-k is out of range; it is 1 to {MAX_TOP_K}.")
