"""The engine's own event loop, in its own thread.

Page, HTTP API and command line live in other threads and loops; all of them share this one, so
that a slow page never delays a segment and a job outlives the request that began it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class EngineLoop:
    """An asyncio loop that runs from `start` to `close`."""

    def __init__(self) -> None:
        """Make the loop; nothing runs yet."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's loop and wait for its result; from other threads."""
        assert threading.current_thread() is not self._thread, "the engine can't wait for itself"
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def call(self, function: Callable[[], T]) -> T:
        """Run a plain function on the engine's loop and wait for its result."""

        async def once() -> T:
            return function()

        return self.run(once())

    async def responds(self, within_s: float) -> bool:
        """Whether the loop does anything at all; asked from another loop, which isn't blocked."""
        if not self._thread.is_alive() or self._loop.is_closed():
            return False
        answer = asyncio.run_coroutine_threadsafe(_nothing(), self._loop)
        try:
            await asyncio.wait_for(asyncio.wrap_future(answer), within_s)
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Cancel what still runs, stop the loop and join the thread."""
        if not self._thread.is_alive():
            return
        self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _nothing() -> None:
    """Be done: that it is, is what was asked."""
