"""Whose studio a request works with.

Every route asks here and nowhere else, so that one place decides what a visitor may see.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request

from studio.service import Studio

StudioOf = Callable[[Request], Studio]
"""Finds the studio of a request; raises for a visitor who has none."""


def seat(studio_of: StudioOf) -> Callable[[Request], Awaitable[None]]:
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


async def _studio_of(request: Request) -> Studio:
    studio = request.state.studio
    assert isinstance(studio, Studio)
    return studio


Desk = Annotated[Studio, Depends(_studio_of)]
"""The type of a handler's `studio`: the one of the visitor who asks."""
