"""`serve`: builds the server from the page, the routes and the middleware, and runs it."""

from __future__ import annotations

import ctypes
import gc
import hmac
import os
import sys
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from gradio import http_server
from gradio.blocks import Blocks
from gradio.context import LocalContext
from gradio.route_utils import FnIndexInferError
from gradio.routes import App, ORJSONResponse
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.cli.serve import ServeArguments
from studio.dialog.script import parse_script
from studio.errors import NotAllowed
from studio.server.announcement import announced
from studio.server.connections import PRIVATE_NETWORKS, BoundedServer, most_connections
from studio.server.error_responses import HANDLERS, error_response
from studio.server.gradio_functions import offer_functions
from studio.server.interrupt import end_in_time, wait_for_interrupt
from studio.server.mcp_endpoint import is_installed as has_mcp
from studio.server.middleware.access_log import limit_logs
from studio.server.middleware.admission import ConcurrencyLimitMiddleware, JsonBoundsMiddleware
from studio.server.middleware.gradio_calls import GradioCallMiddleware, is_call
from studio.server.middleware.login_limit import KeyLimit, LoginLimit
from studio.server.middleware.origin_guard import OriginGuard
from studio.server.middleware.security import SecurityMiddleware
from studio.server.middleware.visitors import VisitorMiddleware, studio_of_visitor, token_of
from studio.server.page_assets import PageAssets, link_page
from studio.server.policies import (
    Access,
    RequestClass,
    RoutePolicies,
    StudioOf,
    given_key,
    policy_of,
)
from studio.server.program_calls import ProgramCalls
from studio.server.route_table import DirectRoute, gradio_routes, service_routes, studio_routes
from studio.server.sign_in import OpenStreams, holds_token, is_signed_in, sign_in, sign_out
from studio.services.studio import Studio
from studio.setup.models_install import SetupReport
from studio.sharing.quota import VisitLimits
from studio.sharing.reviews import ReviewLinks
from studio.sharing.sessions import VisitorSessions
from studio.storage.workspace import ASSETS, WorkspaceUse, remove_temp_files
from studio.ui.blocks import create_ui, launch_look

if sys.platform != "win32":
    import resource


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """Who may enter the server, and as whom.

    Attributes:
        studio: The owner's.
        hosts: The allowed host names.
        sessions: The visitors'; None if everybody works in the owner's studio.
        reviews: The review links; None where there are no visitors.
        api_key: The key that programs send; None if there is none.
        framed_by_hub: Whether the page is shown in a frame of Hugging Face's.
        prefix: The path under which a reverse proxy has the studio; "" for the root.
    """

    studio: Studio
    hosts: OriginGuard
    sessions: VisitorSessions | None = None
    reviews: ReviewLinks | None = None
    api_key: str | None = field(default=None, repr=False)
    framed_by_hub: bool = False
    prefix: str = ""

    @property
    def studio_of(self) -> StudioOf:
        return (lambda _: self.studio) if self.sessions is None else studio_of_visitor

    async def require_login(self, request: Request) -> None:
        """Refuse a request that isn't signed in, if there is a login form."""
        if not is_signed_in(_server_of(request), request):
            raise HTTPException(401, "Sign in first.")

    async def require_key(self, request: Request) -> None:
        """Refuse a request without the key; without a sign-in where the studio has no key."""
        if self.api_key is None:
            await self.require_login(request)
        elif not self.has_key(request):
            raise HTTPException(
                401,
                "Incorrect API key provided; send Authorization: Bearer and the studio's key.",
                headers={"WWW-Authenticate": "Bearer"},
            )

    async def require_key_or_login(self, request: Request) -> None:
        """Refuse a request that has neither the key nor a sign-in that is needed."""
        if not self.has_key(request):
            await self.require_login(request)

    def build_middleware(self, routes: ASGIApp, server: FastAPI) -> ASGIApp:
        """Wrap the routes in the studio's middleware; the outermost is added last."""
        app: ASGIApp = JsonBoundsMiddleware(routes)
        if self.sessions is not None:
            app = VisitorMiddleware(
                app,
                self.sessions,
                signed_in=lambda asks: is_signed_in(server, asks),
                sign_in=lambda: sign_in(server),
                is_owner=self.has_key,
                framed=self.framed_by_hub,
            )
        app = ConcurrencyLimitMiddleware(
            LoginLimit(KeyLimit(app, self.has_key) if self.api_key else app),
            most_streams=most_connections() * 2 // 3,  # a third is left for what ends soon
            is_owner=self._is_owner,
            is_stranger=lambda asks: self._is_stranger(asks, server),
        )
        policies = RoutePolicies(server.routes)
        return SecurityMiddleware(
            app, self.hosts, policies, prefix=self.prefix, framed_by_hub=self.framed_by_hub
        )

    def _is_owner(self, asks: HTTPConnection) -> bool:
        """Whether a request is known to be the owner's, by the key or the owner's cookie."""
        if self.has_key(asks):
            return True
        return self.sessions is not None and self.sessions.is_owners(token_of(asks))

    def _is_stranger(self, asks: HTTPConnection, server: FastAPI) -> bool:
        """Whether a request needs the key or a sign-in and has neither."""
        is_guarded = policy_of(asks.scope).access in {Access.GUEST, Access.OWNER}
        return is_guarded and not (self.has_key(asks) or is_signed_in(server, asks))

    def has_key(self, asks: HTTPConnection) -> bool:
        """Whether a request has the owner's key."""
        given = given_key(asks)
        if self.api_key is None or given is None:
            return False
        return hmac.compare_digest(given.encode(), self.api_key.encode())


def _server_of(request: Request) -> FastAPI:
    """The page's server; under `/v1` the request's own `app` is another one."""
    server = request.scope["studio_server"]
    assert isinstance(server, FastAPI)
    return server


_SWITCH_INTERVAL_S = 0.0005
_MAX_ARENAS = 2
_MMAP_BYTES = 1 << 20
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
"""`mallopt`'s parameters, from glibc's `malloc.h`."""


_MAX_FILES = 65_536
_COLLECT_AFTER = (50_000, 10, 10)
"""Objects, and younger generations, after which garbage is collected. With Python's own 700, a
script of 20,000 lines took a fifth longer, and with 5,000 a tenth."""


def tune_process() -> None:
    """Make threads switch sooner, share two malloc arenas, and allow more open files.

    With Python's own switch interval of 5 ms, each response would wait that long whenever another
    thread computes. And glibc gives threads up to eight arenas a processor, each with its own
    fragmentation: with two, fifty people who write for ten minutes leave a third less of it.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    _allow_open_files()
    if sys.platform.startswith("linux"):
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # a stub in musl
        if set_option is not None:
            set_option(_M_ARENA_MAX, _MAX_ARENAS)
            set_option(_M_MMAP_THRESHOLD, _MMAP_BYTES)


def _allow_open_files() -> None:
    """Raise the soft limit of open files, connections included, which is often 1,024 or less."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # macOS has a further limit, which it doesn't tell
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def collect_garbage_again() -> None:
    """Switch the garbage collector on, with what the start made out of its sight.

    Hardly any of that ever goes, and to look through it takes a fifth of a second each time.
    """
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()


_GRADIO_POLLS_S = 0.25, 5.0
"""Between looks of Gradio for events, and for their progress, of which no function has any."""
_OPENING_SCRIPT = ASSETS / "dialogs" / "lighthouse.txt"


def serve(arguments: ServeArguments, studio: Studio, setup: SetupReport) -> int:
    """Serve the page until interrupted."""
    opening_script = _OPENING_SCRIPT.read_text(encoding="utf-8")
    os.umask(0o077)  # a workspace in a folder that others read is private all the same
    tune_process()
    with studio, closing(WorkspaceUse(studio.options.workspace)) as use:
        if use.is_alone():
            remove_temp_files(studio.options.workspace)
        _add_speakers(studio, opening_script)
        entry = _build_entry(arguments, studio, opening_script, use)
        if entry.sessions is not None:
            entry.sessions.start()
        page = create_ui(lambda: offer_functions(lambda: ProgramCalls(_studio_of_event(entry))))
        _launch(page, arguments, StudioServer(entry, setup))
        limit_logs()
        if page.share_url:
            entry.hosts.add(page.share_url)
        if entry.reviews is not None:
            entry.reviews.public_url = page.share_url or None
        with announced(
            page.local_url or "",
            replace(arguments, host=page.server_name),  # which a variable of Gradio's may set
            share_url=page.share_url,
            sessions=entry.sessions,
            workspace=studio.options.workspace,
        ):
            collect_garbage_again()
            studio.projects.start_resuming()
            if arguments.brings_voice:
                studio.bring_voice()
            wait_for_interrupt()
            end_in_time()
        page.close()
        if entry.sessions is not None:
            entry.sessions.close()
    return 0


class StudioServer(App):  # type: ignore[misc]  # Gradio's types are skipped
    """Gradio's server with the studio's routes and middleware."""

    def __init__(self, entry: ServerEntry, setup: SetupReport) -> None:
        self.page_assets = PageAssets(ASSETS)
        super().__init__(
            routes=[
                Route("/logout", self._sign_out),  # before Gradio's, which signs everybody out
                *studio_routes(
                    entry.studio_of,
                    setup,
                    guard=entry.require_login,
                    reviews=entry.reviews,
                ),
                *service_routes(entry.studio, entry.studio_of, guard=entry.require_key),
                *gradio_routes(
                    entry.studio_of,
                    guard=entry.require_key,
                    key_or_sign_in=entry.require_key_or_login,
                ),
            ],
            exception_handlers={
                **HANDLERS,
                **dict.fromkeys((KeyError, FnIndexInferError, TypeError), _answer_unknown),
            },
            default_response_class=ORJSONResponse,
            openapi_url=None,
        )
        self._entry = entry
        self._streams = OpenStreams()

    def _count_inputs(self, function: str | int) -> int:
        known = self.get_blocks().fns.values()
        found = (one for one in known if function in (one.api_name, one._id))
        return next((len(one.inputs) for one in found), 0)

    def build_middleware_stack(self) -> ASGIApp:
        """Wrap Gradio's own middleware in the studio's; called once Gradio has added its routes."""
        link_page(self.routes, self.page_assets.preload)
        self.router.routes.insert(0, DirectRoute(self.routes))
        routes = GradioCallMiddleware(super().build_middleware_stack(), self._count_inputs)

        async def known(scope: Scope, receive: Receive, send: Send) -> None:
            scope["studio_server"] = self
            if self._is_closed(scope):
                await error_response(scope["path"], 401, "Sign in first.")(scope, receive, send)
            elif self._ends_with_sign_in(scope):
                await self._streams.follow(routes, scope, receive, send)
            else:
                await routes(scope, receive, send)

        return self._entry.build_middleware(known, self)

    def _is_closed(self, scope: Scope) -> bool:
        """Whether a request isn't signed in, of a route of Gradio's that asks too late or never."""
        return (
            scope["type"] == "http"
            and (scope["path"].startswith("/gradio_api/heartbeat/") or is_call(scope["path"]))
            and not is_signed_in(self, HTTPConnection(scope))
        )

    def _ends_with_sign_in(self, scope: Scope) -> bool:
        """Whether a request may stream for as long as its browser is signed in."""
        policy = policy_of(scope)
        is_slow = policy.request_class is RequestClass.UNCOUNTED
        has_guard = policy.access in {Access.GUEST, Access.OWNER}
        return is_slow and has_guard and holds_token(self, HTTPConnection(scope))

    async def _sign_out(self, request: Request) -> Response:
        """End the sign-in of one browser and what streams to it, and lead it to the page."""
        response = sign_out(self, request)
        self._streams.end(lambda asks: not holds_token(self, asks))
        return response


class _Server(BoundedServer, http_server.Server):  # type: ignore[misc]  # Gradio's is untyped
    """Gradio's server with bounded connections."""


async def _answer_unknown(request: Request, error: Exception) -> Response:
    """Exception handler for Gradio's calls, which don't check that their function exists.

    A `TypeError` is about arguments that are missing or that it doesn't know.
    """
    if not is_call(request.url.path):
        raise error
    if isinstance(error, TypeError):
        return error_response(request.url.path, 400, str(error))
    return error_response(request.url.path, 404, "There is no such function here.", kind="NotFound")


def _build_entry(
    arguments: ServeArguments, studio: Studio, opening_script: str, use: WorkspaceUse
) -> ServerEntry:
    config = arguments.config
    sessions = None
    if arguments.is_shared:
        limits = VisitLimits(workspace_bytes=config.visitor_bytes)
        sessions = VisitorSessions(
            studio,
            limits,
            prepare=lambda new: _add_speakers(new, opening_script),
            is_alone=use.is_alone,
        )
    return ServerEntry(
        studio=studio,
        hosts=OriginGuard(arguments.host, config.all_hosts, is_local=arguments.is_local),
        sessions=sessions,
        reviews=ReviewLinks(studio) if sessions is not None else None,
        api_key=config.api_key,
        framed_by_hub=config.is_space,
        prefix=config.prefix,
    )


def _launch(page: Blocks, arguments: ServeArguments, server: StudioServer) -> None:
    page.api_open = False  # as `queue` would set, which makes another queue and server
    # Gradio's own are 1 and 10 ms, at which an idle studio takes 4 % of a processor.
    page._queue.sleep_when_free, page._queue.progress_update_sleep_when_free = _GRADIO_POLLS_S
    # Gradio takes no settings for its server, so it gets the studio's.
    # Visitors of a Space all come through the platform's proxies.
    proxies = PRIVATE_NETWORKS if arguments.config.is_space else None
    http_server.Server = partial(_Server, proxies=proxies)
    page.launch(
        server_name=arguments.host,
        server_port=arguments.port,
        root_path=arguments.config.root_path,
        share=arguments.share,
        auth=arguments.auth,
        prevent_thread_lock=True,
        quiet=True,
        # A visitor uploads recordings, which are checked when they are used.
        max_file_size="100mb",
        state_session_capacity=200,
        _app=server,
        **launch_look(server.page_assets.head),
    )
    # For Gradio's page *Use via API*; not earlier, as Gradio would print that it has a server.
    page.config["mcp_server"] = has_mcp()


def _studio_of_event(entry: ServerEntry) -> Studio:
    """The studio of the visitor whose event Gradio is handling outside of a request."""
    if entry.sessions is None:
        return entry.studio
    event: Any = LocalContext.request.get()
    if event is None:
        raise NotAllowed("Your visit is over; load the page again.")
    if entry.has_key(event.request):
        return entry.studio
    visitor = entry.sessions.find(token_of(event.request)) or entry.sessions.programs
    return visitor.studio


def _add_speakers(studio: Studio, opening_script: str) -> None:
    """Give a new library the speakers of the sample dialog."""
    if studio.speakers.list():
        return
    for name in parse_script(opening_script).dialog.speakers():
        studio.speakers.add(name)
