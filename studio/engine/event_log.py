"""An append-only log that threads and event loops follow, and the changes of a studio's state."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Generic, TypeVar

T = TypeVar("T")


class EventLog(Generic[T]):
    """Numbered items, readable from any thread and event loop, until and after it is closed.

    Any number of readers follow; each gets every item once. A bounded log keeps only its latest
    items: a reader that lags behind them is ended, and has to read the whole state again.
    """

    def __init__(self, max_items: int | None = None, first_seq: int = 0) -> None:
        # Guards the fields below; followers in threads wait on it.
        self._changed = threading.Condition()
        self._max_items = max_items
        self._items: list[T] = []
        self._seq = first_seq
        self._closed = False
        self._withdrawn = False
        self._wakers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    @property
    def seq(self) -> int:
        return self._seq

    @property
    def subscriber_count(self) -> int:
        return len(self._wakers)

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def withdrawn(self) -> bool:
        """Whether its items were invalidated; to be checked after the last one."""
        return self._withdrawn

    def append(self, item: T) -> None:
        """Add an item and wake every reader; once it is closed, nothing is added."""
        with self._changed:
            if self._closed:
                return
            self._items.append(item)
            self._seq += 1
            if self._max_items is not None and len(self._items) > self._max_items:
                del self._items[0]
            self._wake()

    def close(self, *, withdrawn: bool = False) -> None:
        """Mark the log as complete, optionally invalidating its items.

        Closing it twice does no harm.
        """
        with self._changed:
            self._closed = True
            self._withdrawn |= withdrawn
            self._wake()

    def read(self, since: int = 0) -> list[T]:
        """The items after `since` that the log still has."""
        with self._changed:
            return self._items[max(0, len(self._items) - (self._seq - since)) :]

    def read_batch(self, since: int) -> list[tuple[int, T]] | None:
        """Items after `since` with their numbers; None if a reader can't get any further.

        That is at the end of a closed log; and in a bounded one if items after `since` were
        dropped, or `since` is a number of another run.
        """
        with self._changed:
            fresh = self.read(since)
            is_lost = self._max_items is not None and len(fresh) != self._seq - since
            if is_lost or (self._closed and not fresh):
                return None
            return list(enumerate(fresh, since + 1))

    def follow(self, since: int = 0) -> Iterator[T]:
        """Yield items after `since`; blocks this thread until further ones arrive."""
        while (batch := self._wait_for_batch(since)) is not None:
            yield from (item for _, item in batch)
            since += len(batch)

    async def subscribe(self, since: int = 0) -> AsyncIterator[T]:
        """Yield items after `since`, awaiting further ones; on any event loop."""
        woken = asyncio.Event()
        with self.waking(woken):
            while (batch := self.read_batch(since)) is not None:
                for _, item in batch:
                    yield item
                since += len(batch)
                if not batch:
                    await woken.wait()
                    woken.clear()

    async def wait_for_change(self, seq: int) -> None:
        """Wait for an item after `seq`, or for the end of the log."""
        woken = asyncio.Event()
        with self.waking(woken):
            while self.read_batch(seq) == []:
                await woken.wait()
                woken.clear()

    @contextmanager
    def waking(self, event: asyncio.Event) -> Iterator[None]:
        """Set an event of the running loop at every change, until the block ends."""
        with self._changed:
            self._wakers[event] = asyncio.get_running_loop()
        try:
            yield
        finally:
            with self._changed:
                del self._wakers[event]

    def _wait_for_batch(self, since: int) -> list[tuple[int, T]] | None:
        with self._changed:
            self._changed.wait_for(lambda: self.read_batch(since) != [])
            return self.read_batch(since)

    def _wake(self) -> None:
        self._changed.notify_all()
        for event, loop in self._wakers.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)


class StateChange(Enum):
    """A part of the studio's state that may have changed, so that its readers read it again."""

    MODELS = auto()
    """The chosen backend, what the backends offer, or whether a model is loaded."""

    WORK = auto()
    """Segments in flight or queued, leases of a model, the progress of its load, limits."""

    SETUP = auto()
    """The installation of the model packages."""

    SPEAKERS = auto()
    """The speaker library."""

    EXPORTS = auto()
    """The exports of scenes: their progress and their ends."""

    PROPOSALS = auto()
    """Edits that programs propose."""
