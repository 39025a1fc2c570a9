"""Whether the studio is alive, and whether it can work."""

from __future__ import annotations

import time

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from studio.backends.device import LOST, card_lost
from studio.service import Studio

_STUCK_S = 60.0
"""A step takes milliseconds, and the capture of a graph seconds."""

_SILENT_S = 1_800.0
"""A long line on a slow processor takes minutes, and one on a busy remote server a quarter hour."""


def health_routes(studio: Studio) -> APIRouter:
    """`/healthz` is for who sends work: 503 while the engine can't take any.

    `/healthz/live` is for who restarts processes. Neither says anything that isn't for everybody.
    """
    routes = APIRouter(prefix="/healthz")
    began_s = time.monotonic()

    @routes.get("")
    async def ready() -> JSONResponse:
        reason = await _trouble(studio)
        body = {
            "alive": True,
            "ready": reason is None,
            "reason": reason,
            "up_s": round(time.monotonic() - began_s, 1),
        }
        return JSONResponse(body, 200 if reason is None else 503)

    @routes.get("/live")
    async def live() -> JSONResponse:
        return JSONResponse({"alive": True})

    return routes


async def _trouble(studio: Studio) -> str | None:
    """Why no work can be done; None when it can."""
    if card_lost():
        return LOST
    if not await studio.engine.responds():
        return "The engine doesn't respond; restart the studio."
    for name, health in studio.engine.models.health().items():
        if not health.alive:
            return f"The threads of {name} have ended; unload it and load it again."
        if health.running and (health.last_step_age_s or 0) > _STUCK_S:
            return (
                f"{name} has made no step for {health.last_step_age_s:.0f} s; restart the studio."
            )
    for status in studio.engine.models.known():
        silent_s = studio.engine.renderer.silent_s(status.name)
        if silent_s > _SILENT_S:
            return (
                f"A line has been with {status.name} for {silent_s:.0f} s without a sound; restart "
                "the studio."
            )
    return None
