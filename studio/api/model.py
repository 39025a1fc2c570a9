"""Routes of the chosen backend's model: choose it, load, stop, unload, idle timeout."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from studio.api.schemas import BackendBody, TimeoutBody
from studio.api.state import model_body
from studio.service import Studio


def model_routes(studio: Studio) -> APIRouter:
    """The routes, bound to a studio."""
    routes = APIRouter(prefix="/studio")

    @routes.post("/model/load")
    def load() -> dict[str, Any]:
        studio.load_model()
        return model_body(studio)

    @routes.post("/model/cancel")
    def cancel() -> dict[str, Any]:
        studio.cancel_load()
        return model_body(studio)

    @routes.post("/model/unload")
    def unload() -> dict[str, Any]:
        studio.unload_model()
        return model_body(studio)

    @routes.post("/model/timeout")
    def timeout(body: TimeoutBody) -> dict[str, Any]:
        studio.set_idle_timeout(body.seconds)
        return model_body(studio)

    @routes.post("/backend")
    def choose(body: BackendBody) -> dict[str, Any]:
        studio.choose_backend(body.name)
        return model_body(studio)

    return routes
