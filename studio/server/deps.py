"""Dependencies of the routes: whose studio a request works with, and who may use the speech API."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from starlette.requests import HTTPConnection

from studio.services.studio import Studio

# Whose studio a request works with.
#
# Every route asks here and nowhere else, so that one place decides what a visitor may see.

StudioOf = Callable[[Request], Studio]
"""Finds the studio of a request; raises for a visitor who has none."""


def current_studio(studio_of: StudioOf) -> Callable[[Request], Awaitable[None]]:
    """Make the dependency that gives each request its studio, before any handler runs.

    It waits for nothing, and is `async` for that: every other dependency takes a thread.
    """

    async def take_seat(request: Request) -> None:
        request.state.studio = studio_of(request)

    return take_seat


def spend_upload(request: Request) -> None:
    """Count a recording inside a request as one of the visitor's uploads.

    Raises:
        LimitReached: There is none left now.
    """
    visitor = getattr(request.state, "visitor", None)
    if visitor is not None and visitor.allowance is not None:
        visitor.allowance.spend_upload()


async def _request_studio(request: Request) -> Studio:
    studio = request.state.studio
    assert isinstance(studio, Studio)
    return studio


StudioDep = Annotated[Studio, Depends(_request_studio)]
"""The type of a handler's `studio`: the one of the visitor who asks."""


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
