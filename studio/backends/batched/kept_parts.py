"""Parts of prompts that come again, kept by what they were made from."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

import torch


class KeptParts:
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

    def once(self, key: Hashable, owner: object, make: Callable[[], torch.Tensor]) -> torch.Tensor:
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
