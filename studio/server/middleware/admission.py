"""Admission control: a bounded number of requests at once, and a login throttle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.server.error_responses import error_response
from studio.server.middleware.request_bodies import RequestBuffer, has_body
from studio.server.policies import RequestClass, policy_of

MAX_FAILED_LOGINS = 10
_LOGIN_WINDOW_S = 300.0
_DRAINED_BYTES = 1_000_000
_DRAINED_S = 5.0
_FULL = "Too many people are using this studio now."


class RequestQueue:
    """Lets a number of requests be handled at once; the others wait in order, but not for long.

    A request that is handled holds a thread, and many threads would leave no time to the one that
    reads and refuses requests.
    """

    def __init__(self, at_once: int, *, patience_s: float, most_waiting: int = 200) -> None:
        """Start with all places free.

        Args:
            at_once: How many are handled together.
            patience_s: How long a request waits for its turn before it is refused.
            most_waiting: When that many wait, the next one is refused at once.
        """
        self._places = asyncio.Semaphore(at_once)
        self._patience_s = patience_s
        self._most_waiting = most_waiting
        self._waiting = 0

    async def enter(self) -> bool:
        """Wait for a place; whether there was one in time."""
        if self._places.locked() and self._waiting >= self._most_waiting:
            return False
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience_s):
                return await self._places.acquire()
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1

    def leave(self) -> None:
        """Give the place to the next one."""
        self._places.release()


class RequestQueues:
    """A queue for each class of requests that is counted."""

    def __init__(
        self,
        short: RequestQueue | None = None,
        polled: RequestQueue | None = None,
        long: RequestQueue | None = None,
    ) -> None:
        """Divide the server's time."""
        self._queues = {
            RequestClass.SHORT: short or RequestQueue(8, patience_s=2.0),
            RequestClass.POLLED: polled or RequestQueue(2, patience_s=1.5),
            RequestClass.LONG: long or RequestQueue(4, patience_s=30.0),
        }

    def get(self, request_class: RequestClass) -> RequestQueue | None:
        """Where a request waits; None for one that needn't."""
        return self._queues.get(request_class)


class ConcurrencyLimitMiddleware:
    """Gives each request a place until its answer begins, and refuses it where there is none.

    A request takes its place when its body is there, so that a slow sender keeps nobody out.
    """

    def __init__(
        self,
        app: ASGIApp,
        queues: RequestQueues | None = None,
        bodies: RequestBuffer | None = None,
    ) -> None:
        """Stand before an application."""
        self._app = app
        self._queues = queues or RequestQueues()
        self._bodies = bodies or RequestBuffer()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        place = _Admission(self._queues.get(policy_of(scope).request_class))
        if has_body(scope):
            await self._when_whole(place, scope, receive, send)
        elif await place.take():
            await self._in(place, scope, receive, send)
        else:
            await _busy(scope["path"], _FULL, 2)(scope, receive, send)

    async def _when_whole(
        self, place: _Admission, scope: Scope, receive: Receive, send: Send
    ) -> None:
        async def whole() -> None:
            if not await place.take():
                raise HTTPException(429, f"{_FULL} Try again in 2 s.", headers={"Retry-After": "2"})

        try:
            body = self._bodies.begin(scope, receive, whole)
        except HTTPException as error:
            await _drain(receive)
            refused = error_response(
                scope["path"], 429, error.detail, kind="EngineBusy", headers=error.headers
            )
            await refused(scope, receive, send)
            return
        try:
            await self._in(place, scope, body, send)
        finally:
            body.close()

    async def _in(self, place: _Admission, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_left(message: Message) -> None:
            place.leave()
            await send(message)

        try:
            await self._app(scope, receive, send_left)
        finally:
            place.leave()


class _Admission:
    """A place in a queue, once it is taken; where there is no queue, there is always one."""

    def __init__(self, queue: RequestQueue | None) -> None:
        self._queue = queue
        self._held = False

    async def take(self) -> bool:
        if self._queue is None:
            return True
        self._held = await self._queue.enter()
        return self._held

    def leave(self) -> None:
        if self._held and self._queue is not None:
            self._held = False
            self._queue.leave()


class LoginLimit:
    """Login throttle: after some wrong passwords, signing in is refused for a while.

    All visitors of a share link have one address, so all are counted together; it doesn't affect
    who is signed in already.
    """

    def __init__(self, app: ASGIApp, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Stand before an application."""
        self._app = app
        self._clock = clock
        self._failed_s: list[float] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse a sign-in."""
        if scope["type"] != "http" or scope["path"].rstrip("/") != "/login":
            await self._app(scope, receive, send)
            return
        now_s = self._clock()
        self._failed_s = [at_s for at_s in self._failed_s if now_s - at_s < _LOGIN_WINDOW_S]
        if len(self._failed_s) >= MAX_FAILED_LOGINS:
            wait_s = round(self._failed_s[0] + _LOGIN_WINDOW_S - now_s) + 1
            await _drain(receive)
            await _busy("/login", "There were too many wrong passwords.", wait_s)(
                scope, receive, send
            )
            return
        # Counted as failed before the answer is known: many attempts at once are not let through.
        self._failed_s.append(now_s)
        await self._app(scope, receive, self._watch_answer(now_s, send))

    def _watch_answer(self, at_s: float, send: Send) -> Send:
        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                self._failed_s.remove(at_s)
            await send(message)

        return send_noted


async def _drain(receive: Receive) -> None:
    """Read a small body to its end: an answer before it would reset the connection."""
    come_bytes = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAINED_S):
            while come_bytes < _DRAINED_BYTES:
                message = await receive()
                come_bytes += len(message.get("body", b""))
                if not message.get("more_body"):
                    return


def _busy(path: str, why: str, wait_s: int) -> Response:
    return error_response(
        path,
        429,
        f"{why} Try again in {wait_s} s.",
        kind="EngineBusy",
        headers={"Retry-After": str(wait_s)},
    )
