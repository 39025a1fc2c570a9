"""Routes of the chosen backend's model: choose it, load, stop, unload, idle timeout."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from studio.api.desk import Desk
from studio.api.schemas import BackendBody, ConcurrencyBody, TimeoutBody
from studio.api.state import model_body

model_routes = APIRouter(prefix="/studio")


@model_routes.post("/model/load")
def load(studio: Desk) -> dict[str, Any]:
    """Load the chosen backend's model now."""
    studio.load_model()
    return model_body(studio)


@model_routes.post("/model/cancel")
def cancel(studio: Desk) -> dict[str, Any]:
    """Stop its load."""
    studio.cancel_load()
    return model_body(studio)


@model_routes.post("/model/unload")
def unload(studio: Desk) -> dict[str, Any]:
    """Unload it now."""
    studio.unload_model()
    return model_body(studio)


@model_routes.post("/model/timeout")
def timeout(studio: Desk, body: TimeoutBody) -> dict[str, Any]:
    """Change after how many idle seconds models are unloaded."""
    studio.set_idle_timeout(body.seconds)
    return model_body(studio)


@model_routes.post("/model/concurrency")
def concurrency(studio: Desk, body: ConcurrencyBody) -> dict[str, Any]:
    """Change how many segments are spoken at once, until the studio ends."""
    studio.engine.set_max_concurrency(body.segments)
    return model_body(studio)


@model_routes.post("/backend")
def choose(studio: Desk, body: BackendBody) -> dict[str, Any]:
    """Let another backend speak from now on."""
    studio.choose_backend(body.name)
    return model_body(studio)
