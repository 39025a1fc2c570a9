"""A shared studio in this process: all its doors and routes but for Gradio's."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.types import ASGIApp

from studio.server.error_responses import HANDLERS
from studio.server.middleware.origin_guard import OriginGuard
from studio.server.route_table import service_routes, studio_routes
from studio.server.studio_server import ServerEntry
from studio.services.studio import Studio
from studio.setup.models_install import NothingToSetUp
from studio.sharing.quota import VisitLimits
from studio.sharing.reviews import ReviewLinks
from studio.sharing.sessions import VisitorSessions

ASSETS = Path(__file__).parents[2] / "assets"


def front_of(
    studio: Studio,
    limits: VisitLimits | None = None,
    *,
    apart: bool = True,
    key: str | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ServerEntry:
    desks = VisitorSessions(studio, limits, clock=clock) if apart else None
    reviews = ReviewLinks(studio) if apart else None
    return ServerEntry(
        studio,
        OriginGuard("testserver"),
        sessions=desks,
        reviews=reviews,
        api_key=key,
    )


def routes_of(front: ServerEntry) -> FastAPI:
    routes = FastAPI(
        routes=[
            *studio_routes(
                front.studio_of,
                NothingToSetUp(),
                guard=lambda: None,
                reviews=front.reviews,
            ),
            *service_routes(front.studio, front.studio_of, guard=lambda: None),
        ],
        exception_handlers=dict(HANDLERS),
        openapi_url=None,
    )
    routes.get("/")(lambda: "the page")
    return routes


def app_of_front(front: ServerEntry) -> ASGIApp:
    routes = routes_of(front)
    return front.build_middleware(routes, routes)


def visitor_of(app: ASGIApp, **cookies: str) -> TestClient:
    """Somebody's browser."""
    return TestClient(app, cookies=cookies, raise_server_exceptions=False)
