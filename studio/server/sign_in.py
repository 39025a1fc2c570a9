"""The page's login form: who is signed in, and what ends when a browser signs out."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any

from fastapi import Request
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def is_signed_in(server: Any, asks: HTTPConnection) -> bool:
    """Whether a request has a token of Gradio's login form, or there is no form.

    Gradio's server keeps the tokens; one that isn't Gradio's has no form.
    """
    return getattr(server, "auth", None) is None or holds_token(server, asks)


def sign_in(server: Any) -> str | None:
    """A new sign-in as a cookie, made as the form does without a password; None without a form."""
    if not isinstance(getattr(server, "auth", None), dict):
        return None
    token = secrets.token_urlsafe(24)
    server.tokens[token] = next(iter(server.auth))
    return f"{_plain_cookie(server)}={token}; Path=/; HttpOnly; SameSite=Lax"


def holds_token(server: Any, asks: HTTPConnection) -> bool:
    """Whether a request has a token of the login form."""
    given = (asks.cookies.get(name) for name in _token_cookies(server))
    return any(server.tokens.get(token) is not None for token in given)


def sign_out(server: Any, request: Request) -> Response:
    """End the sign-in of one browser, and lead it to the page."""
    response = RedirectResponse(".", status_code=303)
    for name in _token_cookies(server):
        server.tokens.pop(request.cookies.get(name), None)
        response.delete_cookie(name)
    return response


def _token_cookies(server: Any) -> tuple[str, str]:
    return f"access-token-{server.cookie_id}", _plain_cookie(server)


def _plain_cookie(server: Any) -> str:
    return f"access-token-unsecure-{server.cookie_id}"


class OpenStreams:
    """What streams to signed-in browsers. To be used on the server's event loop only."""

    def __init__(self) -> None:
        self._open: set[_OpenStream] = set()

    async def follow(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, whose stream `end` may end."""
        stream = _OpenStream(scope, receive, send)
        self._open.add(stream)
        try:
            await app(scope, stream.receive, stream.send)
            await stream.complete()
        finally:
            self._open.discard(stream)

    def end(self, is_over: Callable[[HTTPConnection], bool]) -> None:
        """End the streams of requests that are over, as if their readers had left."""
        for stream in self._open:
            if is_over(stream.asks):
                stream.end()


class _OpenStream:
    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asks = HTTPConnection(scope)
        self._receive, self._send = receive, send
        self._has_ended = self._is_partial = False
        self._waiting: set[asyncio.Timeout] = set()

    def end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            for waiting in self._waiting:
                waiting.reschedule(asyncio.get_running_loop().time())

    async def receive(self) -> Message:
        if self._has_ended:
            return _LEFT
        waiting = asyncio.timeout(None)
        try:
            async with waiting:
                self._waiting.add(waiting)
                return await self._receive()
        except TimeoutError:
            return _LEFT
        finally:
            self._waiting.discard(waiting)

    async def send(self, message: Message) -> None:
        self._is_partial = message.get("more_body", message["type"] == "http.response.start")
        await self._send(message)

    async def complete(self) -> None:
        """End a response that was broken off, as uvicorn reports one without an end as a fault."""
        if self._has_ended and self._is_partial:
            await self._send({"type": "http.response.body", "body": b""})


_LEFT = {"type": "http.disconnect"}
