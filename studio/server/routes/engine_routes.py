"""Routes of the studio's state and of its models: choose, load, stop, unload, idle timeout."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from studio.engine.event_log import StateChange
from studio.server.policies import Access, RequestClass, StudioDep, page_policy
from studio.server.routes.bodies import BackendBody, ConcurrencyBody, TimeoutBody
from studio.server.routes.state_feed import StateReader, model_body
from studio.setup.models_install import SetupReport

model_routes = APIRouter(prefix="/studio")


@model_routes.post("/model/load")
@page_policy(Access.OWNER, request_class=RequestClass.UNCOUNTED)
def load(studio: StudioDep, *, measure: bool = True) -> dict[str, Any]:
    """Load the chosen backend's model now, as `Studio.load_model`."""
    studio.load_model(measure=measure)
    return model_body(studio)


@model_routes.post("/model/cancel")
@page_policy(Access.OWNER, request_class=RequestClass.UNCOUNTED)
def cancel(studio: StudioDep) -> dict[str, Any]:
    """Stop the load of the model."""
    studio.engine.cancel_load(studio.backend_name)
    return model_body(studio)


@model_routes.post("/model/unload")
@page_policy(Access.OWNER, request_class=RequestClass.UNCOUNTED)
def unload(studio: StudioDep) -> dict[str, Any]:
    """Unload the model now."""
    studio.unload_model()
    return model_body(studio)


@model_routes.post("/model/timeout")
@page_policy(Access.OWNER, request_class=RequestClass.UNCOUNTED)
def timeout(studio: StudioDep, body: TimeoutBody) -> dict[str, Any]:
    """Change after how many idle seconds models are unloaded."""
    studio.set_idle_timeout(body.seconds)
    return model_body(studio)


@model_routes.post("/model/concurrency")
@page_policy(Access.OWNER, request_class=RequestClass.UNCOUNTED)
def concurrency(studio: StudioDep, body: ConcurrencyBody) -> dict[str, Any]:
    """Change how many segments are spoken at once, until the studio ends."""
    studio.engine.set_max_concurrency(body.segments)
    return model_body(studio)


@model_routes.post("/backend")
@page_policy(Access.GUEST)
def choose(studio: StudioDep, body: BackendBody) -> dict[str, Any]:
    """Change the backend."""
    studio.choose_backend(body.name)
    return model_body(studio)


def page_routes(setup: SetupReport, reader: StateReader) -> APIRouter:
    """The routes, bound to the installation's report and the state's reader."""
    routes = APIRouter(prefix="/studio")

    @routes.get("/state")
    @page_policy(Access.GUEST, request_class=RequestClass.POLLED)
    def state(studio: StudioDep) -> dict[str, Any]:
        return reader.read(studio)

    @routes.post("/setup/start", status_code=204)
    @page_policy(Access.OWNER)
    def start_setup(studio: StudioDep) -> None:
        setup.start()
        studio.engine.changes.append(StateChange.SETUP)

    @routes.post("/setup/stop", status_code=204)
    @page_policy(Access.OWNER)
    def stop_setup(studio: StudioDep) -> None:
        setup.stop()
        studio.engine.changes.append(StateChange.SETUP)

    return routes
