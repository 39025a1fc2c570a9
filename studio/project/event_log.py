"""The events of a project: a bounded, numbered log that any number of subscribers follow."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_EVENTS = 500


class EventLog(Generic[T]):
    """Keeps the latest items only. Numbers rise from run to run, so an old one is known as old."""

    def __init__(self, kept: int = MAX_EVENTS) -> None:
        """Begin empty."""
        # Guards everything below.
        self._lock = threading.Lock()
        self._items: deque[T] = deque(maxlen=kept)
        self._seq = time.time_ns() // 1_000_000
        self._wakers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._closed = False

    @property
    def seq(self) -> int:
        """The number of the latest item."""
        return self._seq

    @property
    def followers(self) -> int:
        """How many follow now."""
        return len(self._wakers)

    @property
    def closed(self) -> bool:
        """Whether nothing more is posted."""
        return self._closed

    def post(self, item: T) -> None:
        """Add an item and wake everybody."""
        with self._lock:
            self._items.append(item)
            self._seq += 1
            self._wake()

    def close(self) -> None:
        """Let every follower go."""
        with self._lock:
            self._closed = True
            self._wake()

    async def follow(self, since: int) -> AsyncIterator[tuple[int, T]]:
        """Yield items after `since` with their numbers; ends at once where some are forgotten."""
        async with aclosing(self.bundles(since)) as bundles:
            async for bundle in bundles:
                for numbered in bundle:
                    yield numbered

    async def bundles(self, since: int) -> AsyncGenerator[list[tuple[int, T]]]:
        """As `follow`, with all items that are there at once together."""
        event = asyncio.Event()
        with self._lock:
            self._wakers[event] = asyncio.get_running_loop()
        try:
            while True:
                event.clear()
                fresh = self._after(since)
                if fresh is None:
                    return
                if not fresh:
                    await event.wait()
                    continue
                yield list(enumerate(fresh, since + 1))
                since += len(fresh)
        finally:
            with self._lock:
                del self._wakers[event]

    async def changed(self, seq: int) -> None:
        """Wait for an item after `seq`; returns when there is one, or it was forgotten."""
        async for _ in self.follow(seq):
            return

    def _after(self, since: int) -> list[T] | None:
        with self._lock:
            n_fresh = self._seq - since
            if self._closed or not 0 <= n_fresh <= len(self._items):
                return None
            return list(self._items)[len(self._items) - n_fresh :] if n_fresh else []

    def _wake(self) -> None:
        for event, loop in self._wakers.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)


@dataclass(frozen=True, slots=True)
class EditEvent:
    """Somebody changed the document.

    Attributes:
        rev: The revision it made.
        client: Who did.
        line_ids: Lines that came, went or changed, or whose state did.
        order: Whether the order of lines changed.
        fields: What else of the document changed.
        speakers: Whether who speaks may have changed, or with which voice.
    """

    rev: int
    client: str
    line_ids: tuple[str, ...] = ()
    order: bool = False
    fields: tuple[str, ...] = ()
    speakers: bool = False


@dataclass(frozen=True, slots=True)
class LineEvent:
    """A line is in another state."""

    line_id: str


@dataclass(frozen=True, slots=True)
class RenderEvent:
    """The render is in another state."""


@dataclass(frozen=True, slots=True)
class StorageEvent:
    """The project can't be kept on the disk, or can again."""


ProjectEvent = EditEvent | LineEvent | RenderEvent | StorageEvent
