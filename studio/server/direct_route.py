"""The way of a request to its router, by a look at the few paths of its area.

Without it FastAPI compares a request with some forty paths, and with those of the right router
twice: a sixth of what an edit cost the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.routing import BaseRoute, Match, Mount, Route, compile_path
from starlette.types import Receive, Scope, Send

from studio.server.policies import area_of, list_declared

_HOLDER = "route_holder"
_Known = tuple[re.Pattern[str], frozenset[str] | None, BaseRoute]


class DirectRoute(BaseRoute):
    """Leads to the first of an application's routes that has a request's path and method.

    It stands in front of them, so that all it doesn't know goes on to them.
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._known: dict[tuple[str, ...], list[_Known]] = {}
        for holder in routes:
            for one in list_declared([holder]):
                known = (compile_path(one.path)[0], one.methods, holder)
                self._known.setdefault(area_of(one.path), []).append(known)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the router is known that has the request's path and method."""
        if scope["type"] != "http":
            return Match.NONE, {}
        path, method = scope["path"], scope["method"]
        for pattern, methods, holder in self._known.get(area_of(path), ()):
            if (methods is None or method in methods) and pattern.match(path):
                if isinstance(holder, Mount | Route):  # these read the path in their `matches`
                    break
                return Match.FULL, {_HOLDER: holder}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to its router."""
        await scope[_HOLDER].handle(scope, receive, send)
