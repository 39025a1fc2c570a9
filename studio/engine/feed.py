"""An append-only list that threads and event loops can follow while it grows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Feed(Generic[T]):
    """Items in order, readable from any thread, from any start, until and after it is closed.

    One writer appends and closes. Any number of readers follow; each gets every item once.
    """

    def __init__(self) -> None:
        """Start empty and open."""
        # Guards the fields below; readers in threads wait on it.
        self._changed = threading.Condition()
        self._items: list[T] = []
        self._closed = False
        self._withdrawn = False
        self._wakers: set[_Waker] = set()

    def append(self, item: T) -> None:
        """Add an item and wake every reader."""
        with self._changed:
            assert not self._closed, "a closed feed takes no more items"
            self._items.append(item)
            self._wake()

    def close(self) -> None:
        """Say that no more items come. Closing twice is harmless."""
        with self._changed:
            self._closed = True
            self._wake()

    def withdraw(self) -> None:
        """Close it and take back what it holds: another feed begins anew."""
        with self._changed:
            self._withdrawn = True
            self._closed = True
            self._wake()

    @property
    def closed(self) -> bool:
        """Whether the last item is there."""
        return self._closed

    @property
    def withdrawn(self) -> bool:
        """Whether it was closed since its items don't count any more; asked after the last one."""
        return self._withdrawn

    def read(self, start: int = 0) -> list[T]:
        """Items from `start` on that are there now."""
        with self._changed:
            return self._items[start:]

    def __len__(self) -> int:
        """Count the items that are there now."""
        with self._changed:
            return len(self._items)

    def follow(self, start: int = 0) -> Iterator[T]:
        """Yield items from `start` on, blocking this thread for those to come."""
        while True:
            fresh = self._await_fresh(start)
            if not fresh:
                return
            yield from fresh
            start += len(fresh)

    async def afollow(self, start: int = 0) -> AsyncIterator[T]:
        """Yield items from `start` on, awaiting those to come; on any event loop."""
        waker = _Waker(asyncio.get_running_loop())
        with self._changed:
            self._wakers.add(waker)
        try:
            while True:
                waker.event.clear()
                with self._changed:
                    fresh, closed = self._items[start:], self._closed
                for item in fresh:
                    yield item
                start += len(fresh)
                if not fresh:
                    if closed:
                        return
                    await waker.event.wait()
        finally:
            with self._changed:
                self._wakers.discard(waker)

    def _await_fresh(self, start: int) -> list[T]:
        with self._changed:
            self._changed.wait_for(lambda: len(self._items) > start or self._closed)
            return self._items[start:]

    def _wake(self) -> None:
        self._changed.notify_all()
        for waker in self._wakers:
            waker.wake()


class _Waker:
    """Sets an asyncio event from whatever thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.event = asyncio.Event()

    def wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.event.set)
