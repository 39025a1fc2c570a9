"""`serve`: the page and its routes on one server."""

from __future__ import annotations

import secrets
import sys
import webbrowser
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI
from gradio.blocks import Blocks
from gradio.context import LocalContext
from gradio.routes import App, ORJSONResponse
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.allowance import VisitLimits
from studio.api.errors import HANDLERS
from studio.api.front import Front
from studio.api.hosts import HostNames
from studio.api.page_assets import PageAssets, PreloadLinks
from studio.api.refusals import refusal
from studio.api.routes import service_routes, studio_routes
from studio.api.v1.keys import key_guard
from studio.api.visitors import ENTER, token_of
from studio.cli.interruption import until_interrupted
from studio.cli.serve import ServeArguments
from studio.desks import Desks
from studio.dialog.read import read_dialog_text
from studio.errors import NotAllowed
from studio.process import settle_in
from studio.room import sweep_passing
from studio.service import Studio
from studio.setup_report import SetupReport
from studio.ui.blocks import create_ui, launch_look
from studio.ui.speak import offer

_ASSETS = Path(__file__).resolve().parent.parent / "assets"
_GRADIO_LOOKS_EVERY_S = 0.02
_OPENING_SCRIPT = _ASSETS / "dialogs" / "lighthouse.txt"


def serve(arguments: ServeArguments, studio: Studio, setup: SetupReport) -> int:
    """Serve the page until interrupted."""
    opening_script = _OPENING_SCRIPT.read_text(encoding="utf-8")
    settle_in()
    with studio:
        sweep_passing(studio.options.workspace)
        studio.projects.resume()
        _welcome(studio, opening_script)
        front = _front(arguments, studio, opening_script)
        if front.desks is not None:
            front.desks.start()
        page_studio = _page_studio(front)
        page = create_ui(opening_script=opening_script)
        with page:
            offer(page_studio)
        _launch(page, arguments, StudioServer(front, setup))
        _tell(page, arguments, front)
        until_interrupted()
        page.close()
        if front.desks is not None:
            front.desks.close()
    return 0


class StudioServer(App):  # type: ignore[misc]  # Gradio's types are skipped
    """Gradio's server with the studio's routes, and its doors outside everything else."""

    def __init__(self, front: Front, setup: SetupReport) -> None:
        """Put the routes together."""
        guard = key_guard(front.api_key, front.require_login)
        self.page_assets = PageAssets(_ASSETS)
        super().__init__(
            routes=[
                *studio_routes(front.studio_of, setup, guard=front.require_login, assets=_ASSETS),
                *service_routes(front.studio, front.studio_of, guard=guard),
            ],
            exception_handlers={**HANDLERS, KeyError: _answer_unknown},
            default_response_class=ORJSONResponse,
            openapi_url=None,
        )
        self._front = front
        # First of all, so that it stands inside of what compresses.
        self.add_middleware(PreloadLinks, links=self.page_assets.preload)

    def build_middleware_stack(self) -> ASGIApp:
        """Everything that Gradio stacks up, behind the doors."""
        routes = super().build_middleware_stack()

        async def known(scope: Scope, receive: Receive, send: Send) -> None:
            scope["studio_server"] = self
            await routes(scope, receive, send)

        return self._front.layers(known, self)


class GradioForm:
    """Gradio's own form, whose tokens its server holds."""

    def is_signed_in(self, server: FastAPI, asks: HTTPConnection) -> bool:
        """Whether a request carries what the form hands out, when there is a form."""
        assert isinstance(server, App)
        if server.auth is None:
            return True
        names = (f"access-token-{server.cookie_id}", _plain_cookie(server))
        return any(server.tokens.get(asks.cookies.get(name)) is not None for name in names)

    def sign_in(self, server: FastAPI) -> str | None:
        """A cookie as the form hands out, without asking for a password."""
        assert isinstance(server, App)
        if not isinstance(server.auth, dict):
            return None
        token = secrets.token_urlsafe(24)
        server.tokens[token] = next(iter(server.auth))
        return f"{_plain_cookie(server)}={token}; Path=/; HttpOnly; SameSite=Lax"


async def _answer_unknown(request: Request, error: Exception) -> Response:
    """Exception handler for Gradio's queue, which looks for an event's function without a care."""
    if request.url.path != "/gradio_api/queue/join":
        raise error
    return refusal(request.url.path, 404, "There is no such function here.", kind="NotFound")


def _plain_cookie(server: App) -> str:
    return f"access-token-unsecure-{server.cookie_id}"


def _front(arguments: ServeArguments, studio: Studio, opening_script: str) -> Front:
    around = arguments.around
    desks = None
    if arguments.is_shared:
        limits = VisitLimits(workspace_bytes=around.visitor_bytes)
        desks = Desks(studio, limits, prepare=lambda one: _welcome(one, opening_script))
    return Front(
        studio=studio,
        hosts=HostNames(arguments.host, around.allowed_hosts),
        form=GradioForm(),
        desks=desks,
        api_key=around.api_key,
        framed_by_hub=around.is_space,
    )


def _launch(page: Blocks, arguments: ServeArguments, server: StudioServer) -> None:
    page.queue(api_open=False)
    # Gradio's own is 1 ms, at which a studio that nobody uses keeps a processor at 4 %.
    page._queue.sleep_when_free = _GRADIO_LOOKS_EVERY_S
    page.launch(
        server_name=arguments.host,
        server_port=arguments.port,
        share=arguments.share,
        auth=arguments.auth,
        prevent_thread_lock=True,
        quiet=True,
        # A visitor's upload is a recording; what it may be is checked when it is used.
        max_file_size="100mb",
        state_session_capacity=200,
        _app=server,
        **launch_look(server.page_assets.head),
    )


def _tell(page: Blocks, arguments: ServeArguments, front: Front) -> None:
    """Say where the studio is, and open it."""
    local_url = page.local_url or ""
    if page.share_url:
        front.hosts.add(page.share_url)
    for line in _lines(page.share_url, arguments):
        _say(line)
    if front.desks is not None and not arguments.around.is_space:
        local_url = f"{local_url.rstrip('/')}{ENTER}?key={front.desks.owner_token}"
    _say(f"The studio: {local_url}")
    if arguments.open_browser:
        webbrowser.open(local_url)


def _lines(share_url: str | None, arguments: ServeArguments) -> list[str]:
    if not arguments.share:
        return []
    if share_url is None:
        return [
            "The share link can't be made: Gradio's tunnel service wasn't reached. Check the "
            "network, then start again; until then the studio runs on this machine only."
        ]
    lines = [f"The share link: {share_url}"]
    if arguments.made_password and arguments.auth is not None:
        lines.append(f"Guests sign in as {arguments.auth[0]} with {arguments.auth[1]}")
    return lines


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _page_studio(front: Front) -> Studio:
    """The studio as the page's handlers have it, which Gradio calls without a request."""
    if front.desks is None:
        return front.studio
    return cast(Studio, _VisitorsStudio(front.desks))


class _VisitorsStudio:
    """Stands for the studio of whoever's event is being handled."""

    def __init__(self, desks: Desks) -> None:
        self._desks = desks

    def __getattr__(self, name: str) -> Any:
        event: Any = LocalContext.request.get()
        if event is None:
            raise NotAllowed("Your visit is over; load the page again.")
        visitor = self._desks.find(token_of(event.request)) or self._desks.programs
        return getattr(visitor.studio, name)


def _welcome(studio: Studio, opening_script: str) -> None:
    """Give a new library the speakers of the sample dialog."""
    if studio.speakers.list():
        return
    for name in read_dialog_text(opening_script).dialog.speakers():
        studio.speakers.add(name)
