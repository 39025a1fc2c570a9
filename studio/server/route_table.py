"""All routes beside the page, in one list for the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends
from starlette.routing import BaseRoute, Mount

from studio.server.deps import StudioOf, current_studio
from studio.server.page_assets import AssetFiles, PageAssets
from studio.server.routes.engine_routes import model_routes, page_routes
from studio.server.routes.monitoring import Metrics, health_routes, metrics_routes
from studio.server.routes.project_audio import project_audio_routes
from studio.server.routes.project_files import project_file_routes, sound_export_routes
from studio.server.routes.project_routes import project_line_routes, project_routes, space_routes
from studio.server.routes.pronunciation_routes import line_check_routes, pronunciation_routes
from studio.server.routes.speaker_routes import speaker_routes, upload_routes
from studio.server.v1.speech_api import speech_api
from studio.services.studio import Studio
from studio.setup.models_install import SetupReport


def page_parts(setup: SetupReport) -> tuple[APIRouter, ...]:
    """What the page asks, a router for each of its parts; the files before the names in them."""
    return (
        page_routes(setup),
        project_file_routes,
        project_line_routes,
        sound_export_routes(),
        project_routes,
        project_audio_routes,
        space_routes,
        model_routes,
        speaker_routes,
        upload_routes,
        line_check_routes,
        pronunciation_routes,
    )


def studio_routes(
    studio_of: StudioOf, setup: SetupReport, *, guard: Callable[..., Any], assets: Path
) -> list[BaseRoute]:
    """The routes under `/studio`.

    Args:
        studio_of: Whose studio a request works with.
        setup: How the installation of the model packages is going.
        guard: A FastAPI dependency that refuses who isn't signed in.
        assets: Folder of the page's scripts and styles; served to anybody.
    """
    router = APIRouter(dependencies=[Depends(guard), Depends(current_studio(studio_of))])
    for part in page_parts(setup):
        router.include_router(part)
    return [*router.routes, Mount("/studio/assets", AssetFiles(PageAssets(assets)))]


def service_routes(
    studio: Studio, studio_of: StudioOf, *, guard: Callable[..., Any]
) -> list[BaseRoute]:
    """What other programs ask: `/v1`, `/healthz`, `/metrics`.

    Args:
        studio: The owner's, on the engine that all share.
        studio_of: Whose studio a request works with.
        guard: Refuses who has no key, where one is needed, or isn't signed in.
    """
    router = APIRouter()
    router.include_router(health_routes(studio))
    router.include_router(metrics_routes(Metrics(studio.engine)), dependencies=[Depends(guard)])
    return [*router.routes, Mount("/v1", speech_api(studio_of, guard=guard))]
