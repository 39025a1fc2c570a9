"""For how long a device worked for a job: the union of the times in which a segment was spoken."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from studio.backends.base import Backend, ReportsHealth


class BusyTime:
    """Seconds by a device's clock in which at least one of some segments was being spoken.

    Segments spoken at the same time count once. Safe from any thread.
    """

    def __init__(self) -> None:
        # Guards all fields.
        self._lock = threading.Lock()
        self._n_spoken = 0
        self._clock: Callable[[], float] = time.monotonic
        self._began_s = 0.0
        self._ended_s = 0.0  # total of the spans that have ended

    @contextmanager
    def span(self, clock: Callable[[], float]) -> Iterator[None]:
        """Count a segment as being spoken; the first of several at once names the clock."""
        with self._lock:
            if not self._n_spoken:
                self._clock, self._began_s = clock, clock()
            self._n_spoken += 1
        try:
            yield
        finally:
            with self._lock:
                if self._n_spoken == 1:
                    self._ended_s += self._measure_span_s()
                self._n_spoken -= 1

    @property
    def total_s(self) -> float:
        with self._lock:
            return self._ended_s + (self._measure_span_s() if self._n_spoken else 0.0)

    def _measure_span_s(self) -> float:
        return max(0.0, self._clock() - self._began_s)


def find_device_clock(backend: Backend, elsewhere: Callable[[], float]) -> Callable[[], float]:
    """The clock of a backend that measures its device's work; `elsewhere` for any other."""
    if not isinstance(backend, ReportsHealth) or backend.health().busy_s is None:
        return elsewhere
    reports = backend
    return lambda: reports.health().busy_s or 0.0
