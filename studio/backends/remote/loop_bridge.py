"""Speech servers on an event loop of their own, for the threads of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from queue import Empty, SimpleQueue

from anyio.from_thread import BlockingPortal, start_blocking_portal

from studio.audio.clip import Samples
from studio.backends.options import RemoteOptions
from studio.backends.remote.server_pool import LineTries, ServerPool
from studio.backends.remote.speech_request import Address, RemoteLine
from studio.backends.remote.speech_server import SpeechServer
from studio.errors import Cancelled

_POLL_S = 0.05  # how late a cancelled line is noticed


class LoopBridge:
    """An event loop in a thread of its own, with the servers on it."""

    def __init__(self, addresses: tuple[Address, ...], options: RemoteOptions) -> None:
        self._options = options
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal(name="speech servers"))
            self._portal: BlockingPortal = portal
            self.pool = portal.call(_pool, addresses, options)
            # Before the loop ends; tasks that still ask for a server would keep it alive.
            stack.callback(portal.call, portal.stop, True)
            stack.callback(portal.call, self.pool.close)
            portal.call(self.pool.open)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Close all connections and end the loop."""
        self._stack.close()

    def speak(self, line: RemoteLine, cancelled: Callable[[], bool]) -> Iterator[Samples]:
        """Speak a line; yields its samples as they arrive, each once.

        Closing the iterator drops the connection, at which the server stops.

        Raises:
            Cancelled: `cancelled` became true.
        """
        chunks: SimpleQueue[Samples | None] = SimpleQueue()
        tries = LineTries(line, self.pool, self._options, chunks.put)
        running = self._portal.start_task_soon(tries.run)
        running.add_done_callback(lambda _: chunks.put(None))
        try:
            while (chunk := _next(chunks, cancelled)) is not None:
                yield chunk
            running.result()
        finally:
            running.cancel()


async def _pool(addresses: tuple[Address, ...], options: RemoteOptions) -> ServerPool:
    """Open the pool on the loop, to which the servers' clients belong."""
    return ServerPool([SpeechServer(address, options) for address in addresses], options)


def _next(chunks: SimpleQueue[Samples | None], cancelled: Callable[[], bool]) -> Samples | None:
    while True:
        if cancelled():
            raise Cancelled("The line was stopped before it was finished.")
        try:
            return chunks.get(timeout=_POLL_S)
        except Empty:
            continue
