"""All routes beside the page, in one list for the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount

from studio.api.desk import StudioOf, seat
from studio.api.jobs import job_routes
from studio.api.model import model_routes
from studio.api.page import page_routes
from studio.api.speakers import speaker_routes
from studio.api.uploads import upload_routes
from studio.setup_report import SetupReport


def studio_routes(
    studio_of: StudioOf, setup: SetupReport, *, guard: Callable[..., None], assets: Path
) -> list[BaseRoute]:
    """The routes under `/studio`.

    Args:
        studio_of: Whose studio a request works with.
        setup: How the installation of the model packages is going.
        guard: A FastAPI dependency that refuses who isn't signed in.
        assets: Folder of the page's scripts and styles; served to anybody.
    """
    parts = (
        page_routes(setup),
        job_routes,
        model_routes,
        speaker_routes,
        upload_routes,
    )
    router = APIRouter(dependencies=[Depends(guard), Depends(seat(studio_of))])
    for part in parts:
        router.include_router(part)
    return [*router.routes, Mount("/studio/assets", _PageFiles(directory=assets))]


class _PageFiles(StaticFiles):
    """Asked for anew at every visit, so that no page mixes modules of two versions."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response
