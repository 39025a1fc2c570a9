"""Admission control: a bounded number of requests at once, and a login throttle."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import suppress

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.server.middleware.request_bodies import RequestBuffer, has_body
from studio.server.v1.speech_errors import error_response

MAX_FAILED_LOGINS = 10
_LOGIN_WINDOW_S = 300.0
_DRAINED_BYTES = 1_000_000
_DRAINED_S = 5.0
_FULL = "Too many people are using this studio now."

_UNCOUNTED = re.compile(
    r"/healthz.*|/v1(?!/dialogs/[^/]+/audio).*|/studio/model.*|/gradio_api/(queue/data|heartbeat/.*)"
    r"|/studio/projects/[^/]+/(events|lines/[^/]+/audio)"
)
"""These answer late by design, and hold no thread or have bounds of their own."""

_AGAIN = re.compile(r"/studio/state|/metrics")
_LONG = re.compile(
    r"/v1/dialogs/[^/]+/audio|/studio/projects/(import|[^/]+/(export|audio|peaks))"
    r"|/studio/projects/[^/]+/exports/[^/]+/file"
    r"|/studio/projects/[^/]+/takes/[^/]+/[^/]+/peaks"
    r"|/studio/space.*|/studio/uploads.*|/studio/speakers/(import|[^/]+/(act|export|sample).*)"
)


class RequestQueue:
    """Some requests at once; the others wait for their turn in order, but not for long.

    Each that is worked on holds a thread, and many threads would leave the one that reads and
    refuses requests no time.
    """

    def __init__(self, at_once: int, *, patience_s: float, most_waiting: int = 200) -> None:
        """Let everybody in.

        Args:
            at_once: How many are worked on together.
            patience_s: How long one waits for its turn before it is told to come back.
            most_waiting: Beyond that many, one is told at once.
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
    """The lanes of a server, and which of them a request takes."""

    def __init__(
        self,
        work: RequestQueue | None = None,
        again: RequestQueue | None = None,
        long: RequestQueue | None = None,
    ) -> None:
        """Divide the server's time.

        Args:
            work: For most requests, which take milliseconds.
            again: For what pages ask again every second: those are the first to be refused.
            long: For files that are read, made or heard as a whole.
        """
        self._work = work or RequestQueue(8, patience_s=2.0)
        self._again = again or RequestQueue(2, patience_s=1.5)
        self._long = long or RequestQueue(4, patience_s=30.0)

    def of(self, path: str) -> RequestQueue | None:
        """Where a request waits; None for one that needn't."""
        if _UNCOUNTED.fullmatch(path):
            return None
        if _AGAIN.fullmatch(path):
            return self._again
        return self._long if _LONG.fullmatch(path) else self._work


class ConcurrencyLimitMiddleware:
    """Holds a place for each request until its answer begins; who gets none is told so.

    A request takes its place when all of it is there, so that nobody keeps others out by sending
    slowly.
    """

    def __init__(
        self,
        app: ASGIApp,
        lanes: RequestQueues | None = None,
        arrivals: RequestBuffer | None = None,
    ) -> None:
        """Stand before an application."""
        self._app = app
        self._lanes = lanes or RequestQueues()
        self._arrivals = arrivals or RequestBuffer()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        place = _Admission(self._lanes.of(scope["path"]))
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
            body = self._arrivals.begin(scope, receive, whole)
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
    """A place in a lane, once it is taken; where there is no lane, there is always one."""

    def __init__(self, lane: RequestQueue | None) -> None:
        self._lane = lane
        self._held = False

    async def take(self) -> bool:
        if self._lane is None:
            return True
        self._held = await self._lane.enter()
        return self._held

    def leave(self) -> None:
        if self._held and self._lane is not None:
            self._held = False
            self._lane.leave()


class LoginLimit:
    """Lets nobody guess passwords: after some wrong ones, signing in waits.

    All who come by a share link have one address, so all are counted together; who is signed in
    already goes on.
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
        # Counted before it is known, so that many at once are not let in together.
        self._failed_s.append(now_s)
        await self._app(scope, receive, self._noted(now_s, send))

    def _noted(self, at_s: float, send: Send) -> Send:
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
