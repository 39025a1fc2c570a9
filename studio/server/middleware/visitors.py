"""Who asks: tells visitors of a shared studio apart by a cookie, and holds them to their share."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.errors import NotAllowed, StudioError
from studio.server.middleware.request_bodies import is_upload, stated_bytes
from studio.server.v1.speech_errors import response_for_error
from studio.services.studio import Studio
from studio.sharing.sessions import KEPT_S, VisitorSession, VisitorSessions

COOKIE = "tableread_visitor"
ENTER = "/studio/enter"

_OWNERS_ONLY = frozenset(
    {
        "/metrics",
        "/studio/model/load",
        "/studio/model/unload",
        "/studio/model/timeout",
        "/studio/model/concurrency",
        "/studio/model/cancel",
        "/studio/setup/start",
    }
)
_WORKED_IN = ("/studio", "/v1")
"""Where a request works with the workspace; it is opened before, away from the loop."""

_PAGES = ("/studio",)
"""Where somebody without a cookie gets a desk; elsewhere those who have none share one."""

_WRITES = frozenset({"POST", "PUT", "PATCH"})
_EDITS = re.compile(r"/studio/projects/[^/]+(/(edits|undo|redo|script))?")
_FILLS = re.compile(
    r"/studio/(uploads|speakers(/.*)?|projects(/import|/[^/]+/(audio|render))?)|/v1/(audio|dialogs).*"
)
"""What brings files into a workspace; the rest leaves it as large as it is."""

_RESIZES = re.compile(rf"{_FILLS.pattern}|/studio/space/.*")

_NO_DESK = ("/healthz", "/studio/assets", "/assets", "/static", "/svelte", "/theme.css", "/favicon")


class VisitorMiddleware:
    """Gives every request its visitor; a new one gets a cookie with the answer."""

    def __init__(
        self,
        app: ASGIApp,
        desks: VisitorSessions,
        *,
        signed_in: Callable[[HTTPConnection], bool],
        is_owner: Callable[[HTTPConnection], bool] = lambda _: False,
        sign_in: Callable[[], str | None] = lambda: None,
        framed: bool = False,
    ) -> None:
        """Stand before an application.

        Args:
            app: All routes.
            desks: Where visitors sit.
            signed_in: Whether a request may have a desk; the routes refuse who may not.
            is_owner: Whether a request proves by itself that it is the owner's.
            sign_in: A cookie that signs the owner in at the page's form, when there is one.
            framed: Whether the page is shown inside another site's, whose cookies are strangers.
        """
        self._app = app
        self._desks = desks
        self._signed_in = signed_in
        self._is_owner = is_owner
        self._sign_in = sign_in
        self._framed = framed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find the visitor, refuse what a visitor may not, and go on."""
        if scope["type"] != "http" or scope["path"].startswith(_NO_DESK):
            await self._app(scope, receive, send)
            return
        if scope["path"] == ENTER:
            await self._enter(scope)(scope, receive, send)
            return
        asks = HTTPConnection(scope)
        if not (self._is_owner(asks) or self._signed_in(asks)):
            await self._app(scope, receive, send)
            return
        try:
            token, visitor = await self._seat(asks, scope)
            await self._admit(visitor, scope)
        except StudioError as error:
            await response_for_error(scope["path"], error)(scope, receive, send)
            return
        scope.setdefault("state", {})["visitor"] = visitor
        greets = token is not None and self._desks.must_greet(visitor)
        send = self._greeting(token, scope, send) if token is not None and greets else send
        try:
            await self._app(scope, receive, send)
        finally:
            if _resizes(scope):
                visitor.room.measure_anew()

    async def _seat(self, asks: HTTPConnection, scope: Scope) -> tuple[str | None, VisitorSession]:
        """The visitor, and the token that the browser keeps of the visit."""
        if self._is_owner(asks):
            return None, self._desks.owner
        token = token_of(asks)
        visitor = self._desks.at_hand(token)
        if visitor is None and token:
            visitor = await asyncio.to_thread(self._desks.find, token)
        if visitor is not None:
            return token, visitor
        path = scope["path"]
        if path != "/" and not path.startswith(_PAGES):
            return None, self._desks.programs
        return await asyncio.to_thread(self._desks.welcome)

    async def _admit(self, visitor: VisitorSession, scope: Scope) -> None:
        """Hold a visitor to what one may, and open the workspace away from the loop."""
        if visitor.allowance is not None:
            self._spend(visitor, scope)
            await _check_room(visitor, scope)
        if not visitor.is_open and scope["path"].startswith(_WORKED_IN):
            await asyncio.to_thread(lambda: visitor.studio)

    def _spend(self, visitor: VisitorSession, scope: Scope) -> None:
        path = scope["path"].rstrip("/")
        if path in _OWNERS_ONLY:
            raise NotAllowed("Only the owner of this studio may do that.")
        known = visitor.came_back or visitor is self._desks.programs
        allowance = visitor.allowance if known else self._desks.newcomers
        assert allowance is not None
        allowance.spend_request()
        if scope["method"] == "POST" and is_upload(path):
            allowance.spend_upload()

    def _enter(self, scope: Scope) -> RedirectResponse:
        """The owner's way in: the address that the terminal shows."""
        response = RedirectResponse("..", status_code=303)
        token = QueryParams(scope["query_string"]).get("key")
        visitor = self._desks.find(token)
        if token is not None and visitor is not None and visitor.is_owner:
            response.headers.append("Set-Cookie", self._cookie(token, scope))
            signed_in = self._sign_in()
            if signed_in is not None:
                response.headers.append("Set-Cookie", signed_in)
        return response

    def _greeting(self, token: str, scope: Scope, send: Send) -> Send:
        async def send_greeting(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("Set-Cookie", self._cookie(token, scope))
            await send(message)

        return send_greeting

    def _cookie(self, token: str, scope: Scope) -> str:
        parts = [f"{COOKIE}={token}", "Path=/", f"Max-Age={KEPT_S:.0f}", "HttpOnly"]
        if self._framed:
            parts += ["SameSite=None", "Secure", "Partitioned"]
        else:
            parts.append("SameSite=Lax")
            if _is_secure(scope):
                parts.append("Secure")
        return "; ".join(parts)


def token_of(connection: HTTPConnection) -> str | None:
    """What a browser keeps of its visit."""
    # Starlette's own reading: the standard library's gives all up at the first odd cookie.
    return connection.cookies.get(COOKIE)


def _resizes(scope: Scope) -> bool:
    """Whether a request may have left the workspace at another size than it found it."""
    if scope["method"] == "DELETE":
        return True
    return scope["method"] in _WRITES and _RESIZES.fullmatch(scope["path"].rstrip("/")) is not None


async def _check_room(visitor: VisitorSession, scope: Scope) -> None:
    """Refuse what a workspace has no room for.

    Raises:
        NoRoom: It has none.
    """
    path = scope["path"].rstrip("/")
    is_edit = _EDITS.fullmatch(path) is not None
    if scope["method"] not in _WRITES or not (is_edit or _FILLS.fullmatch(path)):
        return
    more_bytes = stated_bytes(Headers(scope=scope)) or 0
    room = visitor.room
    if room.is_known:
        room.take(more_bytes, as_edit=is_edit)
    else:
        await asyncio.to_thread(room.take, more_bytes, as_edit=is_edit)


def studio_of_visitor(request: Request) -> Studio:
    """The studio of who asks, as `VisitorMiddleware` found it."""
    visitor = request.scope["state"]["visitor"]
    assert isinstance(visitor, VisitorSession)
    return visitor.studio


def _is_secure(scope: Scope) -> bool:
    return "https" in {scope["scheme"], Headers(scope=scope).get("x-forwarded-proto")}
