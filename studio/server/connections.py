"""The server's connections: how many there may be, and how long one may stay without a request.

uvicorn bounds none of this: a connection that sends nothing, or its headers byte by byte, stays for
ever, and some hundred of them use up the descriptors that a process may have.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import socket
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from studio.server.middleware.access_log import LogLimit
from studio.server.middleware.places import Places, network_of

if sys.platform != "win32":
    import resource

log = logging.getLogger(__name__)

HEADERS_S = 10.0
"""How long the headers of a request may take, from the connection's start or the last response."""

_MOST = 4_096
_FEWEST = 16
_OTHER_FILES = 128
"""Descriptors for all but connections and the files that are sent through them."""


def most_connections() -> int:
    """How many connections the limit of open files allows, if each of them sends a file."""
    if sys.platform == "win32":  # sockets don't count as files there
        return _MOST
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return _MOST
    return max(_FEWEST, min(_MOST, (files - _OTHER_FILES) // 2))


MAX_UNSENT_BYTES = 256_000_000
"""What the responses that nobody reads may hold of the memory, of all connections together."""

_LARGE_BYTES = 200_000
"""More than a response in parts holds, of which the next part waits for its reader."""


class Connections:
    """All open connections; at their limit, one without a request makes room for a newer one.

    So whoever sends a request gets a connection, however many others are silent. To be used on the
    server's event loop only.
    """

    def __init__(self, at_most: int, *, max_unsent_bytes: int = MAX_UNSENT_BYTES) -> None:
        self._places = Places(at_most)
        self._max_unsent_bytes = max_unsent_bytes
        # Those whose readers are behind with a large response, the longest first, and by how much.
        self._unread: dict[BoundedProtocol, int] = {}
        self._networks: dict[BoundedProtocol, str | None] = {}
        # Those without a request, by network, the longest silent first.
        self._waiting: dict[str | None, dict[BoundedProtocol, None]] = defaultdict(dict)

    def add(self, connection: BoundedProtocol, network: str | None) -> None:
        """Count a new connection, which has no request yet; may close it, or another one."""
        while self._places.is_full_for(network):
            rivals = [one for one in self._waiting if self._places.is_in_the_way(one, network)]
            if not self._close_one(rivals):
                connection.drop()
                return
        self._places.take(network)
        self._networks[connection] = network
        self._waiting[network][connection] = None

    def set_waiting(self, connection: BoundedProtocol, *, is_waiting: bool) -> None:
        """Note whether a connection has no request under way."""
        if connection not in self._networks:
            return
        network = self._networks[connection]
        self._waiting[network].pop(connection, None)
        if is_waiting:
            self._waiting[network][connection] = None
        elif not self._waiting[network]:
            del self._waiting[network]

    def remove(self, connection: BoundedProtocol) -> None:
        """Stop counting a connection; no error if it isn't counted."""
        if connection in self._networks:
            self.set_waiting(connection, is_waiting=False)
            self._places.leave(self._networks.pop(connection))
        self._unread.pop(connection, None)

    def set_unread(self, connection: BoundedProtocol, *, is_unread: bool) -> None:
        """Note whether a connection's reader is behind with a large response; may close some.

        Where all of them hold too much, the one that has been behind the longest is closed, of the
        network that holds most.
        """
        self._unread.pop(connection, None)
        if not is_unread or connection not in self._networks:
            return
        self._unread[connection] = connection.unsent_bytes
        # asyncio gives memory back when half of what it had to send is gone.
        held = {one: min(most, 2 * one.unsent_bytes) for one, most in self._unread.items()}
        of_networks: Counter[str | None] = Counter()
        for one, size_bytes in held.items():
            of_networks[self._networks[one]] += size_bytes
        while of_networks.total() > self._max_unsent_bytes:
            network = max(of_networks, key=of_networks.__getitem__)
            slowest = next(one for one in held if self._networks.get(one) == network)
            of_networks[network] -= held.pop(slowest)
            slowest.drop()

    def close_silent(self, at_most: int) -> None:
        """Close some connections without a request, since the process is out of descriptors."""
        for _ in range(at_most):
            if not self._close_one(list(self._waiting)):
                return

    def _close_one(self, networks: Iterable[str | None]) -> bool:
        """Close the longest silent connection of the network that has most of them."""
        silent = max((self._waiting[one] for one in networks), key=len, default=None)
        if not silent:
            return False
        connection = next(iter(silent))
        connection.drop()
        return True


_TINY_BYTES = 32
_MOST_TINY_CHUNKS = 4_000


class _ChunkCounter(h11.Connection):
    """h11's connection, for which a body of very many tiny chunks is malformed.

    Each takes 25 µs of the event loop, so that 12 MB of single bytes would take a minute of it.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._chunks = self._body_bytes = 0

    def next_event(self) -> Any:
        """The next event, as h11 reads it."""
        event = super().next_event()
        if isinstance(event, h11.Data):
            self._chunks += 1
            self._body_bytes += len(event.data)
            is_many = self._chunks > _MOST_TINY_CHUNKS
            if is_many and self._body_bytes < _TINY_BYTES * self._chunks:
                raise h11.RemoteProtocolError("too many chunks", error_status_hint=400)
        elif isinstance(event, h11.Request):
            self._chunks = self._body_bytes = 0
        return event


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP protocol, with bounds for headers and chunks, and a table of connections."""

    def __init__(
        self,
        *args: Any,
        connections: Connections,
        headers_s: float = HEADERS_S,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.conn = _ChunkCounter(h11.SERVER)
        self.access_log = False  # which nobody reads, and is put together all the same
        self._table = connections
        self._headers_s = headers_s
        self._deadline: asyncio.TimerHandle | None = None
        self._unsent_bytes = math.inf

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and start to wait for its first request."""
        super().connection_made(transport)
        self._await_headers()
        self._table.add(self, network_of(self.client[0] if self.client else None))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        self._stop_waiting()
        self._table.remove(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Note when a request has begun, which can ask whether its client waits for it."""
        before = self.cycle
        super().handle_events()
        cycle = self.cycle
        if cycle is not None and cycle is not before:
            cycle.scope["state"]["is_awaited"] = lambda: not cycle.disconnected
        if self._deadline is not None and self._has_request:
            self._stop_waiting()
            self._table.set_waiting(self, is_waiting=False)

    def _should_upgrade(self) -> bool:
        """Speak no other protocol: a request that asks for one is answered without it."""
        return False

    def send_400_response(self, msg: str) -> None:
        """Refuse what isn't HTTP, or end the connection where a response has begun."""
        if self.cycle is not None:  # the request under way has lost its sender
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def on_response_complete(self) -> None:
        """Wait for the next request, unless it was sent already."""
        super().on_response_complete()
        if not self._has_request and self._deadline is None:
            self._await_headers()
            self._table.set_waiting(self, is_waiting=True)

    def pause_writing(self) -> None:
        """Let the next part of the response wait, as the reader is behind."""
        super().pause_writing()
        if self.unsent_bytes > _LARGE_BYTES:
            self._table.set_unread(self, is_unread=True)

    def resume_writing(self) -> None:
        """Go on, as the reader has caught up."""
        super().resume_writing()
        self._table.set_unread(self, is_unread=False)

    @property
    def unsent_bytes(self) -> int:
        return int(self.transport.get_write_buffer_size())

    def drop(self) -> None:
        """Close the connection at once; what hasn't been sent is lost."""
        self._stop_waiting()
        self._table.remove(self)
        self.transport.abort()

    @property
    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_headers(self) -> None:
        self._unsent_bytes = math.inf
        self._deadline = self.loop.call_later(self._headers_s, self._end_silence)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end_silence(self) -> None:
        """Close a connection without a request, unless it is still taking the last response."""
        unsent_bytes = self.unsent_bytes
        if 0 < unsent_bytes < self._unsent_bytes:
            self._unsent_bytes = unsent_bytes
            self._deadline = self.loop.call_later(self._headers_s, self._end_silence)
        else:
            self.drop()


_OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_FREED_AT_ONCE = 64


class AcceptFailures:
    """An event loop's exception handler, for connections that can't be accepted.

    asyncio waits a second before it accepts again, but logs a traceback for each failure.
    """

    def __init__(
        self, connections: Connections, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connections = connections
        self._limit = LogLimit(clock=clock)

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a failure to accept at most once a minute, and close silent connections."""
        error = context.get("exception")
        is_accept = "accept" in context.get("message", "").lower()
        if not (is_accept and isinstance(error, OSError) and error.errno in _OUT_OF_DESCRIPTORS):
            loop.default_exception_handler(context)
            return
        self._connections.close_silent(_FREED_AT_ONCE)
        if self._limit.is_due(error.errno):
            log.warning("no connection can be accepted for now: %s", error.strerror)


PRIVATE_NETWORKS = "127.0.0.1,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7"
_TICK_S = 0.5
_ACCEPTED_AT_ONCE = 64
_LISTEN_BACKLOG = 2_048


class BoundedServer(uvicorn.Server):
    """uvicorn's server with bounded connections.

    It believes `proxies`, by their addresses, who sends a request; None are those of this machine.
    """

    def __init__(
        self, config: uvicorn.Config, *args: Any, proxies: str | None = None, **options: Any
    ) -> None:
        config.forwarded_allow_ips = proxies or config.forwarded_allow_ips
        self._connections = Connections(most_connections())
        config.http = partial(BoundedProtocol, connections=self._connections)  # type: ignore[assignment]
        # asyncio accepts this many before it lets any of them be counted.
        config.backlog = _ACCEPTED_AT_ONCE
        super().__init__(config, *args, **options)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        handler = AcceptFailures(self._connections)
        asyncio.get_running_loop().set_exception_handler(handler.handle)
        await super().startup(sockets)
        for server in self.servers:
            for listener in server.sockets:
                _lengthen_queue(listener)

    async def main_loop(self) -> None:
        """Wait for the end; uvicorn's own loop wakes an idle processor ten times a second."""
        while not await self.on_tick(0):  # noqa: ASYNC110 - uvicorn sets a flag
            await asyncio.sleep(_TICK_S)


def _lengthen_queue(listener: Any) -> None:
    """Let the system queue more connections than are accepted at once."""
    with (
        suppress(OSError),
        socket.fromfd(listener.fileno(), listener.family, listener.type) as same,
    ):
        same.listen(_LISTEN_BACKLOG)
