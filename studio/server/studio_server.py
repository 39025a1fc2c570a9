"""`serve`: the page and its routes on one server."""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
import sys
import threading
import webbrowser
from types import FrameType
from typing import Any

from fastapi import FastAPI
from gradio.blocks import Blocks
from gradio.context import LocalContext
from gradio.routes import App, ORJSONResponse
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.cli.serve import ServeArguments
from studio.dialog.formats.importing import read_dialog_text
from studio.errors import NotAllowed
from studio.server.deps import key_guard
from studio.server.error_responses import HANDLERS, error_response
from studio.server.middleware.security import OriginGuard
from studio.server.middleware.stack import ServerEntry
from studio.server.middleware.visitors import token_of
from studio.server.page_assets import PageAssets, PreloadLinks
from studio.server.policies import ENTER
from studio.server.route_table import service_routes, studio_routes
from studio.services.studio import Studio
from studio.setup.models_install import SetupReport
from studio.sharing.quota import VisitLimits
from studio.sharing.sessions import VisitorSessions
from studio.storage.installation import ASSETS
from studio.storage.workspace import remove_temp_files
from studio.ui.blocks import create_ui, launch_look
from studio.ui.speak import offer_speak

_THREADS_TAKE_TURNS_S = 0.0005
_HEAPS = 2
_M_ARENA_MAX = -8
"""As `malloc.h` of glibc names it."""


def tune_process() -> None:
    """Let threads make way for each other soon, and share few heaps.

    Python's own 5 ms between turns is what each answer would wait for every time a thread computes.
    And glibc gives threads up to eight heaps for each processor, every one of which keeps its own
    gaps: fifty people who write for ten minutes leave a third less behind in two.
    """
    sys.setswitchinterval(_THREADS_TAKE_TURNS_S)
    if sys.platform.startswith("linux"):
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has one that does nothing
        if set_option is not None:
            set_option(_M_ARENA_MAX, _HEAPS)


EXIT_INTERRUPTED = 130

_STOPPING = "Stopping: what runs is brought to an end. Press Ctrl+C again to stop at once."


def wait_for_interrupt() -> None:
    """Wait for Ctrl+C or a request to end; from then on the next one ends the process."""
    ended = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        if ended.is_set():
            # Nothing is cleaned up: what hangs there is what the second one is for. Edits, takes
            # and records are on the disk by then, each of them whole or not there.
            os._exit(EXIT_INTERRUPTED)
        ended.set()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    # A bare wait can't be interrupted by a signal on Windows.
    while not ended.wait(timeout=0.5):
        pass
    sys.stderr.write(f"{_STOPPING}\n")
    sys.stderr.flush()


_GRADIO_LOOKS_EVERY_S = 0.02
_OPENING_SCRIPT = ASSETS / "dialogs" / "lighthouse.txt"


def serve(arguments: ServeArguments, studio: Studio, setup: SetupReport) -> int:
    """Serve the page until interrupted."""
    opening_script = _OPENING_SCRIPT.read_text(encoding="utf-8")
    tune_process()
    with studio:
        remove_temp_files(studio.options.workspace)
        studio.projects.resume()
        _add_speakers(studio, opening_script)
        entry = _build_entry(arguments, studio, opening_script)
        if entry.sessions is not None:
            entry.sessions.start()
        page = create_ui(opening_script=opening_script)
        with page:
            offer_speak(lambda: _studio_of_event(entry))
        _launch(page, arguments, StudioServer(entry, setup))
        _announce(page, arguments, entry)
        wait_for_interrupt()
        page.close()
        if entry.sessions is not None:
            entry.sessions.close()
    return 0


class StudioServer(App):  # type: ignore[misc]  # Gradio's types are skipped
    """Gradio's server with the studio's routes, and its middleware around everything else."""

    def __init__(self, entry: ServerEntry, setup: SetupReport) -> None:
        """Put the routes together."""
        guard = key_guard(entry.api_key, entry.require_login)
        self.page_assets = PageAssets(ASSETS)
        super().__init__(
            routes=[
                *studio_routes(entry.studio_of, setup, guard=entry.require_login, assets=ASSETS),
                *service_routes(entry.studio, entry.studio_of, guard=guard),
            ],
            exception_handlers={**HANDLERS, KeyError: _answer_unknown},
            default_response_class=ORJSONResponse,
            openapi_url=None,
        )
        self._entry = entry
        # First of all, so that it stands inside of what compresses.
        self.add_middleware(PreloadLinks, links=self.page_assets.preload)

    def build_middleware_stack(self) -> ASGIApp:
        """Gradio's own middleware, behind the studio's."""
        routes = super().build_middleware_stack()

        async def known(scope: Scope, receive: Receive, send: Send) -> None:
            scope["studio_server"] = self
            await routes(scope, receive, send)

        return self._entry.build_middleware(known, self)


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
    return error_response(request.url.path, 404, "There is no such function here.", kind="NotFound")


def _plain_cookie(server: App) -> str:
    return f"access-token-unsecure-{server.cookie_id}"


def _build_entry(arguments: ServeArguments, studio: Studio, opening_script: str) -> ServerEntry:
    config = arguments.config
    sessions = None
    if arguments.is_shared:
        limits = VisitLimits(workspace_bytes=config.visitor_bytes)
        sessions = VisitorSessions(
            studio, limits, prepare=lambda new: _add_speakers(new, opening_script)
        )
    return ServerEntry(
        studio=studio,
        hosts=OriginGuard(arguments.host, config.allowed_hosts),
        form=GradioForm(),
        sessions=sessions,
        api_key=config.api_key,
        framed_by_hub=config.is_space,
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


def _announce(page: Blocks, arguments: ServeArguments, entry: ServerEntry) -> None:
    """Say where the studio is, and open it."""
    local_url = page.local_url or ""
    if page.share_url:
        entry.hosts.add(page.share_url)
    for line in _lines(page.share_url, arguments):
        _say(line)
    if entry.sessions is not None and not arguments.config.is_space:
        local_url = f"{local_url.rstrip('/')}{ENTER}?key={entry.sessions.owner_token}"
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


def _studio_of_event(entry: ServerEntry) -> Studio:
    """The studio of the visitor whose event Gradio is handling, which it does without a request."""
    if entry.sessions is None:
        return entry.studio
    event: Any = LocalContext.request.get()
    if event is None:
        raise NotAllowed("Your visit is over; load the page again.")
    visitor = entry.sessions.find(token_of(event.request)) or entry.sessions.programs
    return visitor.studio


def _add_speakers(studio: Studio, opening_script: str) -> None:
    """Give a new library the speakers of the sample dialog."""
    if studio.speakers.list():
        return
    for name in read_dialog_text(opening_script).dialog.speakers():
        studio.speakers.add(name)
