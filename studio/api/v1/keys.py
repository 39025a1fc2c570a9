"""Who may use the speech API."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable

from fastapi import HTTPException, Request
from starlette.requests import HTTPConnection


def holds_key(request: HTTPConnection, key: str) -> bool:
    """Whether a request carries the key; takes the same time whatever is wrong with it."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    is_same = hmac.compare_digest(given.strip().encode(), key.encode())
    return scheme.lower() == "bearer" and is_same


Guard = Callable[[Request], Awaitable[None]]
"""A dependency that refuses a request by raising; `async`, so that it costs no thread."""


def key_guard(key: str | None, otherwise: Guard) -> Guard:
    """A dependency that asks for the key where one is set, and else for what the page asks.

    Args:
        key: None when the studio has none.
        otherwise: Refuses who isn't signed in at the page.
    """

    async def check(request: Request) -> None:
        if key is None:
            await otherwise(request)
        elif not holds_key(request, key):
            raise HTTPException(
                401,
                "Incorrect API key provided; send Authorization: Bearer and the studio's key.",
                headers={"WWW-Authenticate": "Bearer"},
            )

    return check
