"""Admission control: concurrent requests, how large their bodies are, and what JSON holds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.dialog.reading_limits import is_awaited
from studio.server.error_responses import busy_response, error_response
from studio.server.middleware.places import Places, client_network
from studio.server.policies import Access, RequestClass, policy_of
from studio.storage.json_bounds import MAX_VALUES, has_too_many_values

_MB = 1_000_000


def too_large(limit_bytes: int) -> str:
    """The message for a person whose request is too large."""
    return f"This is larger than the {limit_bytes / _MB:g} MB that are taken here."


def stated_bytes(headers: Headers) -> int | None:
    """The length that a request states; None if it states none.

    Raises:
        ValueError: What it states isn't a length.
    """
    stated = headers.get("content-length")
    if stated is None:
        return None
    if not (stated.isascii() and stated.isdigit()):
        raise ValueError(stated)
    return int(stated)


def limit_body(receive: Receive, limit_bytes: int) -> Receive:
    """Enforce the limit while a body arrives: it may have stated no length, or a wrong one."""
    received = 0

    async def receive_counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit_bytes:
            raise HTTPException(413, too_large(limit_bytes))
        return message

    return receive_counted


_BUSY = "Too much is being sent to this studio now. Try again in 5 s."
_BUSY_S = 5
_SILENT = "The rest of the request didn't come. Send it again."


_SLOW_BYTES_PER_S = 20_000
_FIRST_S = 2.0
"""How long a body may take before it counts as slow."""


class RequestBuffer:
    """Bounds how many bodies arrive at once, in all, from one sender and from one address.

    Where all places are taken, the slowest one gives way to a new one. To be used on the server's
    event loop only.
    """

    def __init__(
        self,
        at_once: int = 64,
        *,
        of_one: int = 16,
        silent_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start with no body.

        Args:
            at_once: Most bodies; each may hold megabytes of memory.
            of_one: Most bodies of one browser, or of all programs together.
            silent_s: How long the next chunk of a body may take.
            clock: Monotonic seconds.
        """
        self._clock = clock
        self._places = Places(at_once)
        self._of_one = of_one
        self._silent_s = silent_s
        # The bodies that arrive now, with their senders and networks.
        self._bodies: dict[BufferedBody, tuple[str, str | None]] = {}

    @property
    def active_count(self) -> int:
        return len(self._bodies)

    def begin(
        self, scope: Scope, receive: Receive, whole: Callable[[], Awaitable[None]]
    ) -> BufferedBody | None:
        """Start to receive a body; None if too many are arriving.

        Args:
            scope: The request.
            receive: Returns the body's chunks.
            whole: Awaited after the last chunk, before the handler gets that chunk.
        """
        headers = Headers(scope=scope)
        sender = headers.get("cookie", "") + headers.get("authorization", "")
        network = client_network(scope)
        while self._is_full_for(sender, network):
            slowest = self._find_slowest(sender, network)
            if slowest is None:
                return None
            slowest.give_way()
        self._places.take(network)

        def end() -> None:
            del self._bodies[body]
            self._places.leave(network)

        body = BufferedBody(receive, whole, end, silent_s=self._silent_s, clock=self._clock)
        self._bodies[body] = sender, network
        return body

    def _is_full_for(self, sender: str, network: str | None) -> bool:
        return self._places.is_full_for(network) or self._has_too_many(sender)

    def _has_too_many(self, sender: str) -> bool:
        return sum(theirs[0] == sender for theirs in self._bodies.values()) >= self._of_one

    def _find_slowest(self, sender: str, network: str | None) -> BufferedBody | None:
        """The slowest body of whoever has too many; None if none of them is slow."""
        has_too_many = self._has_too_many(sender)

        def is_in_the_way(theirs: tuple[str, str | None]) -> bool:
            if has_too_many:
                return theirs[0] == sender
            return self._places.is_in_the_way(theirs[1], network)

        slow = [
            one for one, theirs in self._bodies.items() if one.is_slow and is_in_the_way(theirs)
        ]
        return min(slow, key=lambda one: one.bytes_per_s, default=None)


class BufferedBody:
    """A request's body; an ASGI `receive` that returns its chunks."""

    def __init__(
        self,
        receive: Receive,
        whole: Callable[[], Awaitable[None]],
        end: Callable[[], None],
        *,
        silent_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._receive = receive
        self._whole = whole
        self._end = end
        self._silent_s = silent_s
        self._is_over = self._gave_way = False
        self._clock, self._begun_s, self._received_bytes = clock, clock(), 0
        self._waiting: asyncio.Timeout | None = None

    @property
    def bytes_per_s(self) -> float:
        """How fast it has come until now."""
        return self._received_bytes / max(_FIRST_S, self._clock() - self._begun_s)

    @property
    def is_slow(self) -> bool:
        """Whether it may give way to another one."""
        is_new = self._clock() - self._begun_s < _FIRST_S
        return not is_new and self.bytes_per_s < _SLOW_BYTES_PER_S

    def give_way(self) -> None:
        """Stop receiving, so that another body can arrive; the request is answered with 408."""
        self.close()
        self._gave_way = True
        if self._waiting is not None:
            self._waiting.reschedule(asyncio.get_running_loop().time())

    async def __call__(self) -> Message:
        """Receive the next chunk.

        Raises:
            HTTPException: It doesn't arrive in time; 408.
        """
        if self._is_over and not self._gave_way:
            return await self._receive()
        try:
            async with asyncio.timeout(0 if self._gave_way else self._silent_s) as self._waiting:
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, _SILENT, headers={"Connection": "close"}) from None
        finally:
            self._waiting = None
        self._received_bytes += len(message.get("body", b""))
        if message["type"] != "http.request":
            self.close()
        elif not message.get("more_body"):
            self.close()
            await self._whole()
        return message

    def close(self) -> None:
        """Stop counting the body as arriving."""
        if not self._is_over:
            self._is_over = True
            self._end()


def has_body(scope: Scope) -> bool:
    """Whether a request's headers announce a body."""
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


BODY_HEADERS = frozenset({b"content-type", b"content-length", b"transfer-encoding"})
"""What says of a body how it comes."""


def receive_once(data: bytes, receive: Receive) -> Receive:
    """An ASGI `receive` that returns a whole body, then what follows the original one."""
    message: Message | None = {"type": "http.request", "body": data, "more_body": False}

    async def receive_body() -> Message:
        nonlocal message
        if message is None:
            return await receive()
        body, message = message, None
        return body

    return receive_body


def on_start(send: Send, change: Callable[[Message], None]) -> Send:
    """An ASGI `send` that has the start of a response read or changed before it is sent."""

    async def send_changed(message: Message) -> None:
        if message["type"] == "http.response.start":
            change(message)
        await send(message)

    return send_changed


_DRAINED_BYTES = 1_000_000
_DRAINED_S = 5.0
_FULL = "Too many people are using this studio now. Try again in 2 s."
_FULL_S = 2


class RequestQueue:
    """Lets a number of requests run at once; others wait their turn, but not for long.

    A running request holds a thread, and many busy threads would starve the one that reads and
    refuses requests.
    """

    def __init__(self, at_once: int, *, patience_s: float, most_waiting: int = 200) -> None:
        """Start with all places free.

        Args:
            at_once: How many requests run together.
            patience_s: How long a request waits before it is refused.
            most_waiting: With that many waiting, the next one is refused at once.
        """
        self._places = asyncio.Semaphore(at_once)
        self._patience_s = patience_s
        self._most_waiting = most_waiting
        self._waiting = 0

    async def enter(self, place: ExitStack) -> bool:
        """Wait for a place, which is free again when `place` closes; returns whether there was one.

        Nobody waits longer than the patience.
        """
        if self._places.locked() and self._waiting >= self._most_waiting:
            return False
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience_s):
                await self._places.acquire()
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
        place.callback(self._places.release)
        return True


_SLOW = frozenset({RequestClass.UNCOUNTED, RequestClass.LONG})
_OPEN = "Too many pages and downloads are open in this studio now. Try again in 10 s."
_OPEN_S = 10


class ConcurrencyLimitMiddleware:
    """Gives each request a place until its response starts, or refuses it.

    A request takes its place only when its body has arrived, so that a slow sender blocks nobody.
    Streams and downloads, which last as long as their reader likes, have places of their own until
    they end. Guests can't take the last of those from the owner, and whoever isn't signed in takes
    none.
    """

    def __init__(
        self,
        app: ASGIApp,
        queues: Mapping[RequestClass, RequestQueue] | None = None,
        bodies: RequestBuffer | None = None,
        *,
        most_streams: int = 1_000,
        is_owner: Callable[[HTTPConnection], bool] = lambda _: False,
        is_stranger: Callable[[HTTPConnection], bool] = lambda _: False,
    ) -> None:
        """Wrap all routes.

        Args:
            app: The routes.
            queues: Replaces some of the classes' queues.
            bodies: Those that arrive.
            most_streams: How many are open at once.
            is_owner: Whether a request is known to be the owner's.
            is_stranger: Whether a route will refuse a request whatever it holds; its body is lost.
        """
        self._app = app
        self._streams = Places(most_streams)
        self._is_owner = is_owner
        self._is_stranger = is_stranger
        self._queues = {
            RequestClass.SHORT: RequestQueue(8, patience_s=2.0),
            RequestClass.POLLED: RequestQueue(2, patience_s=1.5),
            RequestClass.LONG: RequestQueue(4, patience_s=30.0),
            **(queues or {}),
        }
        self._bodies = bodies or RequestBuffer()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        network = client_network(scope)
        if not self._is_stream(scope):
            await self._admit(scope, receive, send)
        elif self._streams.is_full_for(network):
            await busy_response(scope["path"], _OPEN, _OPEN_S)(scope, receive, send)
        else:
            self._streams.take(network)
            try:
                await self._admit(scope, receive, send)
            finally:
                self._streams.leave(network)

    def _is_stream(self, scope: Scope) -> bool:
        policy, asks = policy_of(scope), HTTPConnection(scope)
        is_slow = policy.request_class in _SLOW and policy.access is not Access.ANYBODY
        return is_slow and not (self._is_owner(asks) or self._is_stranger(asks))

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        if has_body(scope) and self._is_stranger(HTTPConnection(scope)):
            if "expect" not in Headers(scope=scope):  # or it would be asked for
                await _drain(receive)
            kept = [one for one in scope["headers"] if one[0] not in BODY_HEADERS]
            scope, receive = {**scope, "headers": kept}, receive_once(b"", receive)
        with ExitStack() as place:
            scope[_LEAVE] = place.close
            if has_body(scope):
                await self._when_whole(place, scope, receive, send)
            elif await self._enter(place, scope):
                await self._in(place, scope, receive, send)
            else:
                await busy_response(scope["path"], _FULL, _FULL_S)(scope, receive, send)

    async def _enter(self, place: ExitStack, scope: Scope) -> bool:
        queue = self._queues.get(policy_of(scope).request_class)
        return queue is None or await queue.enter(place)

    async def _when_whole(
        self, place: ExitStack, scope: Scope, receive: Receive, send: Send
    ) -> None:
        async def whole() -> None:
            if not await self._enter(place, scope):
                raise HTTPException(429, _FULL, headers={"Retry-After": str(_FULL_S)})

        body = self._bodies.begin(scope, receive, whole)
        if body is None:
            await _drain(receive)
            await busy_response(scope["path"], _BUSY, _BUSY_S)(scope, receive, send)
            return
        try:
            await self._in(place, scope, body, send)
        finally:
            body.close()

    async def _in(self, place: ExitStack, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_left(message: Message) -> None:
            place.close()
            await send(message)

        is_awaited.set(scope.get("state", {}).get("is_awaited", is_awaited.get()))
        await self._app(scope, receive, send_left)


_LEAVE = "leave_place"


def leave_place(scope: Scope) -> None:
    """Give a request's place to the next one before its response starts, since it waits long."""
    scope.get(_LEAVE, lambda: None)()


async def _drain(receive: Receive) -> None:
    """Read a small body to its end: a response before that would reset the connection."""
    read_bytes = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAINED_S):
            while read_bytes < _DRAINED_BYTES:
                message = await receive()
                read_bytes += len(message.get("body", b""))
                if not message.get("more_body"):
                    return


_SHORT_BYTES = 100_000
_TOO_MANY = f"This holds more than the {MAX_VALUES:,} values that are taken at once. Divide it."


class JsonBoundsMiddleware:
    """Refuses JSON that would take hundreds of megabytes once it is parsed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if not _has_json(scope):
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        if await _has_too_many_values(body):
            await error_response(scope["path"], 413, _TOO_MANY)(scope, receive, send)
            return
        await self._app(scope, receive_once(body, receive), send)


async def _has_too_many_values(body: bytes) -> bool:
    """In a thread where it takes so long that all others would wait: 12 MB of commas are 0.1 s."""
    if len(body) < _SHORT_BYTES:
        return has_too_many_values(body)
    return await asyncio.to_thread(has_too_many_values, body)


def _has_json(scope: Scope) -> bool:
    """Whether a request has JSON to parse; one of a file goes to the disk as it arrives."""
    if scope["type"] != "http" or not has_body(scope) or policy_of(scope).is_upload:
        return False
    return "json" in Headers(scope=scope).get("content-type", "json").lower()
