"""How long a backend worked, for telling its time from the engine's own."""

from __future__ import annotations

import threading
import time
from typing import Self


class BusyClock:
    """Seconds during which at least one thread was inside `with clock`."""

    def __init__(self) -> None:
        """Start at zero."""
        self._lock = threading.Lock()  # guards all below
        self._inside = 0
        self._since_s = 0.0
        self._spent_s = 0.0

    @property
    def spent_s(self) -> float:
        """Total so far; a stretch counts once it has ended."""
        with self._lock:
            return self._spent_s

    def __enter__(self) -> Self:
        """Begin a stretch, unless one is running."""
        with self._lock:
            if self._inside == 0:
                self._since_s = time.perf_counter()
            self._inside += 1
        return self

    def __exit__(self, *_: object) -> None:
        """End the stretch when the last thread leaves."""
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._spent_s += time.perf_counter() - self._since_s
