"""Routes the page asks what is, and by which it has the model packages installed."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from studio.api.desk import Desk
from studio.api.state import Lookout, state_body
from studio.setup_report import SetupReport


def page_routes(setup: SetupReport) -> APIRouter:
    """The routes, bound to the installation's report."""
    routes = APIRouter(prefix="/studio")
    lookout = Lookout()

    @routes.get("/state")
    def state(studio: Desk) -> dict[str, Any]:
        return state_body(studio, setup, lookout)

    @routes.post("/setup/start", status_code=204)
    def start_setup() -> None:
        setup.start()

    return routes
