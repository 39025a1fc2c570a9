"""How far the slots are, on their way to the host while the next frame is already being made."""

from __future__ import annotations

import torch


class News:
    """Copies of the slots' numbers, one for each of the last two steps."""

    def __init__(self, whole: torch.Tensor, *, late: bool | None = None) -> None:
        """Copy nothing yet.

        Args:
            whole: What is copied: int64 [slots, columns]; used.
            late: Whether to tell of the step before the last one; None for what suits the device.
        """
        self._whole = whole
        self._cuda = whole.is_cuda
        self._late = self._cuda if late is None else late
        self._copies = [torch.zeros(whole.shape, dtype=whole.dtype) for _ in range(2)]
        self._events: list[torch.cuda.Event] = []
        if self._cuda:
            self._copies = [copy.pin_memory() for copy in self._copies]
            self._events = [torch.cuda.Event() for _ in range(2)]
        self._sent = 0

    def send(self) -> None:
        """Queue a copy behind the step that was queued last."""
        at = self._sent % 2
        self._copies[at].copy_(self._whole, non_blocking=True)
        if self._cuda:
            self._events[at].record()
        self._sent += 1

    def read(self, *, latest: bool = False) -> list[list[int]]:
        """The numbers of all slots: a step late where that is so, unless the latest are wanted.

        Before the first step they are all 0.
        """
        late = self._late and not latest
        at = (self._sent - (2 if late else 1)) % 2
        if self._cuda and self._sent >= (2 if late else 1):
            self._events[at].synchronize()
        rows: list[list[int]] = self._copies[at].tolist()
        return rows
