"""For how long a CUDA device was at work, measured by its own events; no thread waits for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

ItemT = TypeVar("ItemT")
_END = object()

_DRAIN_FROM = 64
"""Spans after which those that have ended are read, in the threads that record them."""

_KEPT = 1_024
"""Latest times of work that a span of another stream may still overlap."""

_GAP_S = 20e-6
"""Shorter than it takes to launch anything: between two steps that follow each other."""


class DeviceTimer:
    """Seconds of work between pairs of events, where two streams work at once counted once.

    Recording takes microseconds and never waits. Events are read once the device has passed them.
    """

    def __init__(self, new_event: Callable[[], Any] | None = None) -> None:
        self._new_event = new_event or _new_cuda_event
        # Guards all fields below.
        self._lock = threading.Lock()
        self._open: deque[tuple[Any, Any]] = deque()
        self._base: Any = None
        self._base_s = 0.0  # of `_base`, since the first one
        self._spans: list[tuple[float, float]] = []
        self._past_s = 0.0  # total of spans that nothing overlaps any more

    @contextmanager
    def span(self) -> Iterator[None]:
        """Count what is queued on the current stream within; also where it raises."""
        began = self._record()
        try:
            yield
        finally:
            ended = self._record()
            with self._lock:
                self._open.append((began, ended))
                if len(self._open) >= _DRAIN_FROM:
                    self._drain()

    def measure(self, items: Iterable[ItemT]) -> Iterator[ItemT]:
        """Count the making of each item; what is done between two of them doesn't count."""
        making = iter(items)
        try:
            while True:
                with self.span():
                    item = next(making, _END)
                if item is _END:
                    return
                yield cast("ItemT", item)
        finally:
            if isinstance(making, Generator):
                making.close()

    def seconds(self) -> float:
        """Seconds of work that has ended so far."""
        with self._lock:
            with suppress(RuntimeError):  # of a lost card; what was read stays
                self._drain()
            return self._past_s + _sum(self._spans)

    def _record(self) -> Any:
        event = self._new_event()
        event.record()
        return event

    def _drain(self) -> None:
        fresh = []
        for began, ended in [self._open.popleft() for _ in range(len(self._open))]:
            if not ended.query():
                self._open.append((began, ended))
                continue
            fresh.append((self._time_of(began), self._time_of(ended)))
            # Times are 32 bit: far from their base they would lose their microseconds.
            self._base, self._base_s = ended, fresh[-1][1]
        self._spans = _merge([*self._spans, *fresh])
        past, self._spans = self._spans[:-_KEPT], self._spans[-_KEPT:]
        self._past_s += _sum(past)

    def _time_of(self, event: Any) -> float:
        if self._base is None:
            self._base = event
        return self._base_s + float(self._base.elapsed_time(event)) / 1000


def _sum(spans: list[tuple[float, float]]) -> float:
    return sum(end_s - start_s for start_s, end_s in spans)


def _merge(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The union of spans, ascending."""
    merged: list[tuple[float, float]] = []
    for start_s, end_s in sorted(spans):
        if merged and start_s <= merged[-1][1] + _GAP_S:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end_s))
        else:
            merged.append((start_s, end_s))
    return merged


def _new_cuda_event() -> Any:
    import torch

    return torch.cuda.Event(enable_timing=True)
