"""The decoding core of Chatterbox: T3's packed weights, slots, and the step that advances them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from studio.backends.batched.choice import Breadth
from studio.backends.batched.core_contract import Layout
from studio.backends.batched.slot_core import SlotCore
from studio.backends.batched_chatterbox.choice import ALL
from studio.backends.batched_chatterbox.prompts import TokenPrompts
from studio.backends.batched_chatterbox.step import TokenStep
from studio.backends.batched_chatterbox.token_line import TokenAdmission, TokenPrompt
from studio.backends.batched_chatterbox.token_slots import TokenSlots
from studio.backends.batched_chatterbox.weights import pack
from studio.backends.chatterbox.conditioning import ClonedVoice
from studio.backends.chatterbox.watch import Ends

MOST_TOP_K = 1_000

TOO_LONG = (
    "This line is longer than the memory that each line has here. Split it, or set "
    "TTS_BATCH_POSITIONS to a larger number, or to none, with which any line fits."
)

_RANKED = Breadth(MOST_TOP_K, shares=True)
_UNRANKED = Breadth(ALL)


class TokenCore(SlotCore[TokenAdmission]):
    """Many lines of one T3, decoded together."""

    _too_long = TOO_LONG

    def __init__(
        self,
        t3: Any,
        layout: Layout,
        *,
        dtype: torch.dtype = torch.float32,
        prefill_positions: int | None = None,
        release: bool = False,
        ends: Ends = Ends.SPOKEN,
    ) -> None:
        """Pack the weights and allocate the slots.

        Args:
            t3: The package's; its device holds.
            layout: How much is allocated.
            dtype: Of weights and caches.
            prefill_positions: See `studio.backends.batched.prefill.passes`; None for the device's.
            release: Take the package's own layers away, which can't run afterwards.
            ends: Whose rule ends a multilingual line.

        Raises:
            ModelUnavailable: The checkpoint isn't one that can be run like this.
            torch.OutOfMemoryError: There is no room for the slots.
        """
        self._prompts = TokenPrompts(t3, dtype)
        with torch.inference_mode():
            weights = pack(t3, layout.positions, dtype, release=release)
            self._lines = TokenSlots.allocate(weights, layout)
        self._start = weights.start
        super().__init__(
            layout,
            weights.stack,
            self._lines,
            TokenStep(weights, self._lines, ends),
            prefill_positions=prefill_positions,
            usual=_UNRANKED if weights.penalty_first else _RANKED,
        )

    @property
    def prompts(self) -> TokenPrompts:
        """Where prompts are laid out."""
        return self._prompts

    def prompt(self, text: torch.Tensor, voice: ClonedVoice, exaggeration: float) -> TokenPrompt:
        """Lay out a line; see `TokenPrompts.build`."""
        with torch.inference_mode():
            return self._prompts.build(text, voice, exaggeration)

    def close(self) -> None:
        """Give up graphs and state."""
        super().close()
        del self._lines, self._prompts

    def _put(
        self, lines: Sequence[TokenAdmission], turns: Sequence[int], limits: Sequence[int]
    ) -> None:
        self._lines.put(lines, turns, limits, start=self._start)

    def _breadth(self, line: TokenAdmission) -> Breadth:
        if self._usual == _RANKED:
            return _RANKED
        return Breadth(ALL, shares=line.sampling.top_p < 1)

    def _check_line(self, line: TokenAdmission) -> None:
        if not 1 <= line.sampling.top_k <= MOST_TOP_K:
            raise ValueError(f"A top-k is out of range; it is 1 to {MOST_TOP_K}.")
        if line.sampling.temperature <= 0:
            raise ValueError("A temperature is out of range; it is above 0.")
