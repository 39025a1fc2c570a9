"""The decoding core of Chatterbox: T3's packed weights, slots, and the step that advances them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from studio.backends.batched.choice import Breadth
from studio.backends.batched.core_contract import Layout
from studio.backends.batched.kept_parts import KeptParts
from studio.backends.batched.prefill import read
from studio.backends.batched.slot_core import SlotCore
from studio.backends.batched_chatterbox.choice import ALL
from studio.backends.batched_chatterbox.prompts import TokenPrompts
from studio.backends.batched_chatterbox.step import TokenStep
from studio.backends.batched_chatterbox.token_line import TokenAdmission, TokenPrompt
from studio.backends.batched_chatterbox.token_slots import TokenSlots
from studio.backends.batched_chatterbox.weights import pack
from studio.backends.chatterbox.conditioning import ClonedVoice

MOST_TOP_K = 1_000
KEPT_BEGINNINGS = 8
"""Voices whose part of the cache is kept; at full size 74 MB each of turbo, 17 MB of English."""

_RANKED = Breadth(MOST_TOP_K, shares=True)
_UNRANKED = Breadth(ALL)


class TokenCore(SlotCore[TokenAdmission]):
    """Many lines of one T3, decoded together."""

    def __init__(
        self,
        t3: Any,
        layout: Layout,
        *,
        dtype: torch.dtype = torch.float32,
        prefill_positions: int | None = None,
        release: bool = False,
    ) -> None:
        """Pack the weights and allocate the slots.

        Args:
            t3: The package's, English or turbo; its device holds.
            layout: How much is allocated.
            dtype: Of weights and caches.
            prefill_positions: See `studio.backends.batched.prefill.passes`; None for the device's.
            release: Take the package's own layers away, which can't run afterwards.

        Raises:
            ModelUnavailable: The checkpoint isn't one that can be run like this.
            torch.OutOfMemoryError: There is no room for the slots.
        """
        self._prompts = TokenPrompts(t3, dtype)
        with torch.inference_mode():
            weights = pack(t3, layout.positions, dtype, release=release)
            self._lines = TokenSlots.allocate(weights, layout)
        self._start = weights.start
        self._begun = KeptParts(KEPT_BEGINNINGS)
        super().__init__(
            layout,
            weights.stack,
            self._lines,
            TokenStep(weights, self._lines),
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
        del self._lines, self._prompts, self._begun

    def _read(self, lines: Sequence[TokenAdmission]) -> None:
        """Read what lines of a voice have in common once, and then the rest of each.

        The common part is read by itself even for the first line, so that a line's numbers are
        the same whether others came before it or not.
        """
        by_part: dict[Hashable, list[TokenAdmission]] = {}
        for line in lines:
            by_part.setdefault(line.prompt.part, []).append(line)
        for part, group in by_part.items():
            first = group[0]
            begun = self._begun.once(part, first.prompt.voice, partial(self._beginning, first))
            for line in group:
                self._lines.begin(line.slot, begun)
            read(self._stack, self._lines, group, begun=first.prompt.shared)

    def _beginning(self, line: TokenAdmission) -> torch.Tensor:
        """Cache of a line's common part: [keys and values, layers, heads, positions, head_dim]."""
        shared = line.prompt.shared
        prompt = replace(line.prompt, embeds=line.prompt.embeds[:, :shared])
        read(self._stack, self._lines, [replace(line, prompt=prompt)])
        return self._lines.cached(line.slot, shared)

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
