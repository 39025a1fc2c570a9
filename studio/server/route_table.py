"""All routes of the studio, in one list for the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fastapi import APIRouter, Depends
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import Receive, Scope, Send

from studio.server.mcp_endpoint import mcp_routes
from studio.server.page_assets import AssetFiles, PageAssets
from studio.server.policies import Access, RoutePolicies, RoutePolicy, StudioOf, current_studio
from studio.server.program_calls import gradio_file_routes
from studio.server.routes.engine_routes import model_routes, page_routes
from studio.server.routes.monitoring import Metrics, health_routes, metrics_routes
from studio.server.routes.project_files import (
    export_bodies,
    project_file_routes,
    scene_exports,
    sound_export_routes,
)
from studio.server.routes.project_routes import (
    project_audio_routes,
    project_event_routes,
    project_line_routes,
    project_routes,
    space_routes,
)
from studio.server.routes.pronunciation_routes import line_check_routes, pronunciation_routes
from studio.server.routes.reading_routes import reading_routes, table_read_page
from studio.server.routes.review_routes import (
    find_review,
    proposal_routes,
    review_link_routes,
    review_page,
    reviewer_routes,
)
from studio.server.routes.speaker_routes import speaker_routes, upload_routes
from studio.server.routes.state_feed import StateFeeds, StateReader
from studio.server.routes.voice_routes import judge_routes, voice_routes
from studio.server.v1.speech_api import speech_api
from studio.services.studio import Studio
from studio.setup.models_install import SetupReport
from studio.sharing.reviews import ReviewLinks
from studio.storage.workspace import ASSETS

_HOLDER = "route_holder"


class DirectRoute(BaseRoute):
    """Leads to the first of an application's routes that has a request's path and method.

    It stands in front of them, so that all it doesn't know goes on to them. Without it FastAPI
    compares a request with some forty paths, and with those of the right router twice: a sixth of
    what an edit cost the event loop.
    """

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._policies = RoutePolicies(routes)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the router is known that has the request's path and method."""
        is_http = scope["type"] == "http"
        found = self._policies.find_route(scope["method"], scope["path"]) if is_http else None
        # A mount and a route alone read the path in their `matches`.
        if found is None or isinstance(found.holder, Mount | Route):
            return Match.NONE, {}
        return Match.FULL, {_HOLDER: found.holder}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to its router."""
        await scope[_HOLDER].handle(scope, receive, send)


def page_parts(setup: SetupReport, reviews: ReviewLinks | None = None) -> tuple[APIRouter, ...]:
    """The page's routers; the fixed paths of a router come before the parameters of the next.

    There are no review links where the studio isn't shared.
    """
    exports_of = scene_exports()
    reader = StateReader(setup, lambda studio: export_bodies(exports_of.get(studio)))
    return (
        page_routes(setup, reader),
        project_file_routes,
        project_line_routes,
        sound_export_routes(exports_of),
        project_routes,
        project_event_routes(StateFeeds(reader)),
        reading_routes,
        review_link_routes(reviews),
        judge_routes(),
        proposal_routes,
        project_audio_routes,
        space_routes,
        model_routes,
        voice_routes,
        speaker_routes,
        upload_routes,
        line_check_routes,
        pronunciation_routes,
    )


def studio_routes(
    studio_of: StudioOf,
    setup: SetupReport,
    *,
    guard: Callable[..., Any],
    reviews: ReviewLinks | None = None,
) -> list[BaseRoute]:
    """The routes under `/studio`.

    The guard refuses a request that isn't signed in. Assets are served without a sign-in.
    """
    router = APIRouter(dependencies=[Depends(guard), Depends(current_studio(studio_of))])
    for part in page_parts(setup, reviews):
        router.include_router(part)
    unguarded = APIRouter()
    unguarded.include_router(table_read_page)
    unguarded.include_router(review_page(reviews))
    unguarded.include_router(reviewer_routes, dependencies=[Depends(find_review(reviews))])
    files = RoutePolicy(Access.ANYBODY)(AssetFiles(PageAssets(ASSETS)))
    return [*unguarded.routes, *router.routes, Mount("/studio/assets", files)]


def gradio_routes(
    studio_of: StudioOf, *, guard: Callable[..., Any], key_or_sign_in: Callable[..., Any]
) -> list[BaseRoute]:
    """The studio's own routes at Gradio's addresses.

    The guard refuses an MCP client without the key or the sign-in; for files either will do.
    """
    router = APIRouter()
    has_studio = Depends(current_studio(studio_of))  # who isn't signed in has none
    router.include_router(gradio_file_routes, dependencies=[Depends(key_or_sign_in), has_studio])
    router.include_router(mcp_routes(studio_of), dependencies=[Depends(guard), has_studio])
    return list(router.routes)


def service_routes(
    studio: Studio, studio_of: StudioOf, *, guard: Callable[..., Any]
) -> list[BaseRoute]:
    """The routes for other programs: `/v1`, `/healthz`, `/metrics`.

    `studio` is the owner's, whose engine all visitors share.
    """
    router = APIRouter()
    router.include_router(health_routes(studio))
    router.include_router(metrics_routes(Metrics(studio)), dependencies=[Depends(guard)])
    return [*router.routes, Mount("/v1", speech_api(studio_of, guard=guard))]
