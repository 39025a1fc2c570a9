"""What many prompts begin with, read once and kept as it stands in the cache.

Attention looks back only, so the cache of a beginning is the same whatever follows it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from cachetools import LRUCache

from studio.backends.batched.core_contract import Prompted
from studio.backends.batched.prefill import read
from studio.backends.batched.state import SlotState
from studio.backends.batched.transformer import Backbone


@dataclass(frozen=True, slots=True, eq=False)
class _Beginning:
    """One that was read; its owner is held, so that what it is known by stays its own."""

    owner: object
    cached: torch.Tensor  # [layers, keys and values, heads, positions, head_dim]


class Beginnings:
    """Keeps the beginnings of prompts; the one longest unused goes first.

    A beginning is read by itself even for the first line that has it, so that a line's numbers are
    the same whether others came before it or not.
    """

    def __init__(
        self, stack: Backbone, slots: SlotState, most_bytes: int, *, lengths: int = 1
    ) -> None:
        """Begin with nothing.

        Args:
            stack: Reads them.
            slots: Where lines go; used, not copied.
            most_bytes: Of all that is kept; with 0 every one is read anew.
            lengths: See `studio.backends.batched.prefill.read`.
        """
        self._stack = stack
        self._slots = slots
        self._lengths = lengths
        self._kept: LRUCache[Hashable, _Beginning] = LRUCache(
            most_bytes, getsizeof=lambda one: one.cached.nbytes
        )
        self.computed = 0

    @property
    def size_bytes(self) -> int:
        """Memory of what is kept."""
        return int(self._kept.currsize)

    def give(self, lines: Sequence[Prompted]) -> None:
        """Write the beginning of each line's prompt into its slot.

        Args:
            lines: Those not kept are read in one pass.
        """
        begun = [line for line in lines if line.prompt.shared]
        firsts = {line.prompt.part: line for line in reversed(begun)}
        at_hand = {part: self._kept[part] for part in firsts if part in self._kept}
        missing = [line for part, line in firsts.items() if part not in at_hand]
        if missing:
            ends = [line.prompt.shared for line in missing]
            read(self._stack, self._slots, missing, ends=ends, lengths=self._lengths)
        for line in missing:
            at_hand[line.prompt.part] = self._keep(line)
        for line in begun:
            self._slots.begin(line.slot, at_hand[line.prompt.part].cached)

    def forget(self) -> None:
        """Keep nothing more of what was read so far."""
        self._kept.clear()

    def _keep(self, line: Prompted) -> _Beginning:
        prompt = line.prompt
        made = _Beginning(prompt.voice, self._slots.cached(line.slot, prompt.shared))
        self.computed += 1
        if made.cached.nbytes <= self._kept.maxsize:
            self._kept[prompt.part] = made
        return made
