"""Routes of the studio's state and of its model: choose, load, stop, unload, idle timeout."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from cachetools import TTLCache, cached
from fastapi import APIRouter

from studio.backends.registry import offer_of
from studio.engine.model_manager import MemoryUsage, ModelState, measure_resident_bytes
from studio.server.deps import StudioDep
from studio.server.routes.bodies import BackendBody, ConcurrencyBody, TimeoutBody, capabilities_body
from studio.server.routes.speaker_bodies import brief_body
from studio.services.studio import Studio
from studio.setup.models_install import SetupReport

_KEPT_S = 2.0


class StateCache:
    """Sees what takes long to see, and keeps it for a moment: every open page asks each second."""

    def __init__(self) -> None:
        """See nothing yet."""
        # A walk through all processes of the machine.
        self.resident_bytes = cached(TTLCache(1, _KEPT_S), lock=Lock())(measure_resident_bytes)
        # Packages and caches on the disk, of a dozen backends; all studios here have the same.
        offers = cached(TTLCache(1, _KEPT_S), key=lambda _: None, lock=Lock())
        self.offers = offers(_offer_bodies)


def state_body(studio: Studio, setup: SetupReport, lookout: StateCache) -> dict[str, Any]:
    """All that the page shows besides the dialog."""
    backend = studio.engine.models.manager(studio.backend_name).backend
    return {
        "backend": {"name": backend.name, "title": backend.title}
        | capabilities_body(backend.capabilities),
        "backends": lookout.offers(studio),
        "auto_reason": studio.backend_reason,
        "model": model_body(studio, lookout.resident_bytes),
        "engine": {
            "in_flight": studio.engine.renderer.in_flight,
            "queued": studio.engine.renderer.queued,
            "max_concurrency": studio.engine.max_concurrency,
            "slots": backend.capabilities.slots or None,
        },
        "setup": setup.snapshot(),
        "speakers": [brief_body(speaker) for speaker in studio.speakers.list()],
    }


def _offer_bodies(studio: Studio) -> list[dict[str, str | None]]:
    return [
        {
            "name": offer.name,
            "title": offer.title,
            "reason": offer.unavailable,
            "to_fetch": offer.to_fetch,
        }
        for offer in map(offer_of, studio.backends().values())
    ]


def model_body(
    studio: Studio, resident: Callable[[], int] = measure_resident_bytes
) -> dict[str, Any]:
    """The chosen backend's model; `resident` tells the memory in use."""
    status = studio.engine.models.status(studio.backend_name)
    policy = studio.engine.models.policy
    return {
        "state": status.state,
        "message": status.progress.message if status.progress else None,
        "fraction": status.progress.fraction if status.progress else None,
        "active": status.active,
        "idle_timeout_s": policy.idle_timeout_s,
        "eviction_enabled": policy.enabled,
        "unload_in_s": status.unload_in_s,
        "loads": status.counters.loads,
        "unloads": status.counters.unloads,
        "cancelled_loads": status.counters.cancelled_loads,
        "memory_bytes": resident() if status.state is ModelState.LOADED else None,
        "memory_before": _memory_body(status.memory.before) if status.memory else None,
        "memory_after": _memory_body(status.memory.after) if status.memory else None,
    }


def _memory_body(memory: MemoryUsage) -> dict[str, int | None]:
    return {"resident_bytes": memory.resident_bytes, "device_bytes": memory.device_bytes}


model_routes = APIRouter(prefix="/studio")


@model_routes.post("/model/load")
def load(studio: StudioDep) -> dict[str, Any]:
    """Load the chosen backend's model now."""
    studio.load_model()
    return model_body(studio)


@model_routes.post("/model/cancel")
def cancel(studio: StudioDep) -> dict[str, Any]:
    """Stop its load."""
    studio.cancel_load()
    return model_body(studio)


@model_routes.post("/model/unload")
def unload(studio: StudioDep) -> dict[str, Any]:
    """Unload it now."""
    studio.unload_model()
    return model_body(studio)


@model_routes.post("/model/timeout")
def timeout(studio: StudioDep, body: TimeoutBody) -> dict[str, Any]:
    """Change after how many idle seconds models are unloaded."""
    studio.set_idle_timeout(body.seconds)
    return model_body(studio)


@model_routes.post("/model/concurrency")
def concurrency(studio: StudioDep, body: ConcurrencyBody) -> dict[str, Any]:
    """Change how many segments are spoken at once, until the studio ends."""
    studio.engine.set_max_concurrency(body.segments)
    return model_body(studio)


@model_routes.post("/backend")
def choose(studio: StudioDep, body: BackendBody) -> dict[str, Any]:
    """Let another backend speak from now on."""
    studio.choose_backend(body.name)
    return model_body(studio)


def page_routes(setup: SetupReport) -> APIRouter:
    """The routes, bound to the installation's report."""
    routes = APIRouter(prefix="/studio")
    lookout = StateCache()

    @routes.get("/state")
    def state(studio: StudioDep) -> dict[str, Any]:
        return state_body(studio, setup, lookout)

    @routes.post("/setup/start", status_code=204)
    def start_setup() -> None:
        setup.start()

    return routes
