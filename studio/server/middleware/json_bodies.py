"""Bounds how many values the JSON of a request holds, before anything parses it."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.server.error_responses import error_response
from studio.server.middleware.admission import has_body, receive_once
from studio.server.policies import policy_of
from studio.storage.json_bounds import MAX_VALUES, has_too_many_values

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
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
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
