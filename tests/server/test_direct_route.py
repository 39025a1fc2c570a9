"""The short way to a router is the way that the application's own search finds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import BaseRoute, Match

from studio.server.policies import list_declared
from studio.server.route_table import DirectRoute, service_routes, studio_routes
from studio.services.studio import Studio
from studio.setup.models_install import NothingToSetUp


@pytest.fixture
def routes(studio: Studio) -> list[BaseRoute]:
    return [
        *studio_routes(lambda _: studio, NothingToSetUp(), guard=lambda: None),
        *service_routes(studio, lambda _: studio, guard=lambda: None),
    ]


def requests(routes: list[BaseRoute]) -> Iterator[dict[str, Any]]:
    for one in list_declared(routes):
        for value in ("0123456789ab", "import", "trash"):
            path = re.sub(r"\{[^}]*\}", value, one.path)
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
                yield {"type": "http", "method": method, "path": path, "root_path": ""}
                yield {"type": "http", "method": method, "path": f"{path}/", "root_path": ""}


def test_it_leads_where_the_search_does(routes: list[BaseRoute]) -> None:
    direct, led = DirectRoute(routes), 0
    for scope in requests(routes):
        full = (one for one in routes if one.matches({**scope})[0] is Match.FULL)
        found = next(full, None)
        match, child = direct.matches({**scope})
        if match is Match.FULL:
            assert child == {"route_holder": found}, scope
            led += 1
        else:  # to nothing, or into a mount
            assert found is None or not hasattr(found, "original_router"), scope
    assert led > 200
