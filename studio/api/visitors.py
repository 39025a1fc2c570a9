"""Who asks: tells visitors of a shared studio apart by a cookie, and holds them to their share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie

from fastapi.responses import JSONResponse, RedirectResponse
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.api.body_limits import is_upload
from studio.api.errors import error_body, headers_of, status_of
from studio.desks import Desks, Visitor
from studio.errors import NotAllowed, StudioError
from studio.service import Studio

COOKIE = "tableread_visitor"
ENTER = "/studio/enter"

_KEPT_S = 30 * 24 * 3600
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

_NO_DESK = ("/healthz", "/studio/assets", "/assets", "/static", "/svelte", "/theme.css", "/favicon")


class Visitors:
    """Gives every request its visitor; a new one gets a cookie with the answer."""

    def __init__(
        self,
        app: ASGIApp,
        desks: Desks,
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
            token, visitor = self._seat(asks)
            self._admit(visitor, scope)
            if not visitor.is_open and scope["path"].startswith(_WORKED_IN):
                await asyncio.to_thread(lambda: visitor.studio)
        except StudioError as error:
            refused = JSONResponse(error_body(error), status_of(error), headers=headers_of(error))
            await refused(scope, receive, send)
            return
        scope.setdefault("state", {})["visitor"] = visitor
        await self._app(scope, receive, self._greeting(token, scope, send) if token else send)

    def _seat(self, asks: HTTPConnection) -> tuple[str | None, Visitor]:
        """The visitor, and the token to hand out when it is a new one."""
        if self._is_owner(asks):
            return None, self._desks.owner
        visitor = self._desks.find(token_of(asks))
        return (None, visitor) if visitor is not None else self._desks.welcome()

    def _admit(self, visitor: Visitor, scope: Scope) -> None:
        """Hold a visitor to what one may."""
        if visitor.allowance is None:
            return
        path = scope["path"].rstrip("/")
        if path in _OWNERS_ONLY:
            raise NotAllowed("Only the owner of this studio may do that.")
        visitor.allowance.spend_request()
        if scope["method"] == "POST" and is_upload(path):
            visitor.allowance.spend_upload()

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
        parts = [f"{COOKIE}={token}", "Path=/", f"Max-Age={_KEPT_S}", "HttpOnly"]
        if self._framed:
            parts += ["SameSite=None", "Secure", "Partitioned"]
        else:
            parts.append("SameSite=Lax")
            if _is_secure(scope):
                parts.append("Secure")
        return "; ".join(parts)


def token_of(connection: HTTPConnection) -> str | None:
    """What a browser keeps of its visit."""
    jar: SimpleCookie = SimpleCookie()
    try:
        jar.load(connection.headers.get("cookie", ""))
    except CookieError:
        return None
    return jar[COOKIE].value if COOKIE in jar else None


def studio_of_visitor(request: Request) -> Studio:
    """The studio of who asks, as `Visitors` found it."""
    visitor = request.scope["state"]["visitor"]
    assert isinstance(visitor, Visitor)
    return visitor.studio


def _is_secure(scope: Scope) -> bool:
    return "https" in {scope["scheme"], Headers(scope=scope).get("x-forwarded-proto")}
