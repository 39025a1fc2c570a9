"""Refusing at once what would only make everybody wait."""

from __future__ import annotations

import time
from collections.abc import Callable

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_WAITING = 24
"""Requests that may wait for the beginning of their answer. Each holds a thread, and many threads
would leave the one that reads and refuses requests no time."""

MAX_FAILED_LOGINS = 10
_LOGIN_WINDOW_S = 300.0
_DRAINED_BYTES = 1_000_000
_UNCOUNTED = ("/healthz", "/v1", "/studio/model", "/gradio_api/queue/data", "/gradio_api/heartbeat")
"""These answer late by design, and have bounds of their own."""


class Crowd:
    """Counts requests that wait for an answer; beyond the bound they are told to come back."""

    def __init__(self, app: ASGIApp, *, max_waiting: int = MAX_WAITING) -> None:
        """Stand before an application."""
        self._app = app
        self._max_waiting = max_waiting
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse at once."""
        if scope["type"] != "http" or scope["path"].startswith(_UNCOUNTED):
            await self._app(scope, receive, send)
        elif self._waiting >= self._max_waiting:
            await _drain(receive)
            await _busy("Too many people are using this studio now.", 2)(scope, receive, send)
        else:
            await self._count(scope, receive, send)

    async def _count(self, scope: Scope, receive: Receive, send: Send) -> None:
        counts = True

        def leave() -> None:
            nonlocal counts
            self._waiting -= counts
            counts = False

        async def send_left(message: Message) -> None:
            leave()
            await send(message)

        self._waiting += 1
        try:
            await self._app(scope, receive, send_left)
        finally:
            leave()


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
            await _busy("There were too many wrong passwords.", wait_s)(scope, receive, send)
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
    while come_bytes < _DRAINED_BYTES:
        message = await receive()
        come_bytes += len(message.get("body", b""))
        if not message.get("more_body"):
            return


def _busy(why: str, wait_s: int) -> JSONResponse:
    message = f"{why} Try again in {wait_s} s."
    body = {"error": {"message": message, "line": None, "kind": "EngineBusy"}}
    return JSONResponse(body, 429, headers={"Retry-After": str(wait_s)})
