"""Prefix cache: the KV cache of what prompts begin with, and embeddings that prompts share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import torch
from cachetools import LRUCache

from studio.backends.batching.decoder_stack import DecoderBackbone
from studio.backends.batching.prefill import prefill
from studio.backends.batching.runner_contract import SlotAdmission
from studio.backends.batching.slots import SlotTensors

# What many prompts begin with, read once and kept as it stands in the cache.
#
# Attention looks back only, so the cache of a beginning is the same whatever follows it.


@dataclass(frozen=True, slots=True, eq=False)
class _PrefixEntry:
    """One that was read; its owner is held, so that what it is known by stays its own."""

    owner: object
    cached: torch.Tensor  # [layers, keys and values, heads, positions, head_dim]


class PrefixCache:
    """Keeps the beginnings of prompts; the one longest unused goes first.

    A beginning is read by itself even for the first line that has it, so that a line's numbers are
    the same whether others came before it or not.
    """

    def __init__(
        self, stack: DecoderBackbone, slots: SlotTensors, most_bytes: int, *, lengths: int = 1
    ) -> None:
        """Begin with nothing.

        Args:
            stack: Reads them.
            slots: Where lines go; used, not copied.
            most_bytes: Of all that is kept; with 0 every one is read anew.
            lengths: See `studio.backends.batching.prefill.prefill`.
        """
        self._stack = stack
        self._slots = slots
        self._lengths = lengths
        self._kept: LRUCache[Hashable, _PrefixEntry] = LRUCache(
            most_bytes, getsizeof=lambda one: one.cached.nbytes
        )
        self.computed = 0

    @property
    def size_bytes(self) -> int:
        """Memory of what is kept."""
        return int(self._kept.currsize)

    def fill(self, lines: Sequence[SlotAdmission]) -> None:
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
            prefill(self._stack, self._slots, missing, ends=ends, lengths=self._lengths)
        for line in missing:
            at_hand[line.prompt.part] = self._keep(line)
        for line in begun:
            self._slots.write_kv(line.slot, at_hand[line.prompt.part].cached)

    def clear(self) -> None:
        """Keep nothing more of what was read so far."""
        self._kept.clear()

    def _keep(self, line: SlotAdmission) -> _PrefixEntry:
        prompt = line.prompt
        made = _PrefixEntry(prompt.voice, self._slots.read_kv(line.slot, prompt.shared))
        self.computed += 1
        if made.cached.nbytes <= self._kept.maxsize:
            self._kept[prompt.part] = made
        return made


class EmbeddingCache:
    """Parts that were made; the one longest unused goes first."""

    def __init__(self, most: int) -> None:
        """Begin with nothing; at most `most` parts are kept."""
        self._parts: OrderedDict[Hashable, tuple[object, torch.Tensor]] = OrderedDict()
        self._most = most
        self._lock = threading.Lock()  # guards the parts, which several threads may ask for
        self.computed = 0

    def __len__(self) -> int:
        """Parts at hand."""
        return len(self._parts)

    def get_or_compute(
        self, key: Hashable, owner: object, make: Callable[[], torch.Tensor]
    ) -> torch.Tensor:
        """A part, made when it isn't there.

        Args:
            key: With the owner's id, which stays its own while the owner is held.
            owner: What the part is made from; held as long as the part.
            make: Makes it.
        """
        with self._lock:
            if key in self._parts:
                self._parts.move_to_end(key)
                return self._parts[key][1]
        part = make()  # without the lock: others find theirs meanwhile
        with self._lock:
            self._parts[key] = (owner, part)
            self.computed += 1
            while len(self._parts) > self._most:
                self._parts.popitem(last=False)
        return part
