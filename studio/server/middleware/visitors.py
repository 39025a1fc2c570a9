"""Finds the visitor of each request by its cookie, and enforces access and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.engine.engine import OWNERS_ONLY
from studio.errors import EngineBusy, NotAllowed
from studio.server.middleware.admission import on_start, stated_bytes
from studio.server.middleware.places import client_network
from studio.server.policies import ENTER, Access, DiskUse, RoutePolicy, policy_of
from studio.services.studio import Studio
from studio.sharing.sessions import KEPT_S, VisitorSession, VisitorSessions

COOKIE = "tableread_visitor"
"""Name of the visitor's cookie, which an underscore and the port may follow."""

_ACTS = frozenset({DiskUse.EDIT, DiskUse.FILL})


class VisitorMiddleware:
    """Finds each request's visitor; a new one gets a cookie with the response."""

    def __init__(
        self,
        app: ASGIApp,
        sessions: VisitorSessions,
        *,
        signed_in: Callable[[HTTPConnection], bool],
        is_owner: Callable[[HTTPConnection], bool] = lambda _: False,
        sign_in: Callable[[], str | None] = lambda: None,
        framed: bool = False,
    ) -> None:
        """Wrap all routes.

        Args:
            app: The routes.
            sessions: Those of the visitors and the owner.
            signed_in: Whether a request may have a session; if not, the routes refuse it.
            is_owner: Whether a request has the owner's key.
            sign_in: Makes a cookie that signs the owner in to the page's form, if there is one.
            framed: Whether the page is in a frame of another site, which needs third-party cookies.
        """
        self._app = app
        self._sessions = sessions
        self._signed_in = signed_in
        self._is_owner = is_owner
        self._sign_in = sign_in
        self._framed = framed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find the visitor and pass the request on; raises where the visitor may not do it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == ENTER:
            await self._enter(scope)(scope, receive, send)
            return
        policy = policy_of(scope)
        if policy.access is Access.ANYBODY:
            await self._app(scope, receive, send)
            return
        if policy.access is Access.REVIEWER:
            # Without a session, charged to the address.
            self._sessions.shared_limits.of_newcomers(client_network(scope)).spend_request()
            await self._app(scope, receive, send)
            return
        asks = HTTPConnection(scope)
        if not (self._is_owner(asks) or self._signed_in(asks)):
            await self._app(scope, receive, send)
            return
        token, visitor = await self._find_session(asks, policy)
        await self._admit(visitor, scope, policy)
        scope.setdefault("state", {})["visitor"] = visitor
        if token is not None and self._sessions.is_cookie_due(visitor):
            cookie = self._cookie(token, scope)
            send = on_start(
                send, lambda start: MutableHeaders(scope=start).append("Set-Cookie", cookie)
            )
        visitor.open_requests += 1
        try:
            await self._app(scope, receive, send)
        finally:
            visitor.open_requests -= 1
            if policy.disk in {DiskUse.FILL, DiskUse.FREE}:
                visitor.disk_quota.invalidate()

    async def _find_session(
        self, asks: HTTPConnection, policy: RoutePolicy
    ) -> tuple[str | None, VisitorSession]:
        """The visitor, and the token for the browser's cookie."""
        if self._is_owner(asks):
            return None, self._sessions.owner
        token = token_of(asks)
        visitor = self._sessions.find_open(token)
        network = client_network(asks.scope)
        try:
            if visitor is None and token:
                visitor = await asyncio.to_thread(self._sessions.find, token, network)
            if visitor is not None:
                return token, visitor
            if policy.starts_session:
                return await asyncio.to_thread(self._sessions.create, network)
        except EngineBusy:
            if not policy.is_page:  # the page itself is for everybody, and asks again for the rest
                raise
        return None, self._sessions.programs

    async def _admit(self, visitor: VisitorSession, scope: Scope, policy: RoutePolicy) -> None:
        """Enforce a visitor's limits, and open the workspace off the event loop."""
        if visitor.rate_limits is not None:
            self._charge(visitor, scope, policy)
            await _check_room(visitor, scope, policy)
            visitor.has_acted = visitor.has_acted or policy.disk in _ACTS
        if not visitor.is_open and policy.opens_workspace:
            await asyncio.to_thread(lambda: visitor.studio)

    def _charge(self, visitor: VisitorSession, scope: Scope, policy: RoutePolicy) -> None:
        if policy.access is Access.OWNER:
            raise NotAllowed(OWNERS_ONLY)
        network = client_network(scope)
        self._sessions.place(visitor, network)
        if policy.is_page and not visitor.has_returned:  # whoever comes gets the page
            return
        known = visitor.has_returned or visitor is self._sessions.programs
        shared = self._sessions.shared_limits
        limits = visitor.rate_limits if known else shared.of_newcomers(network)
        assert limits is not None
        limits.spend_request()
        if policy.is_upload:
            limits.spend_upload()

    def _enter(self, scope: Scope) -> RedirectResponse:
        """Sign the owner in with the token in the URL that the terminal shows."""
        response = RedirectResponse("..", status_code=303)
        token = QueryParams(scope["query_string"]).get("key")
        if token is not None and self._sessions.is_owners(token):
            response.headers.append("Set-Cookie", self._cookie(token, scope))
            signed_in = self._sign_in()
            if signed_in is not None:
                response.headers.append("Set-Cookie", signed_in)
        return response

    def _cookie(self, token: str, scope: Scope) -> str:
        # A Space has its host for itself.
        name = COOKIE if self._framed else _cookie_name(Headers(scope=scope))
        same_site = "SameSite=None; Secure; Partitioned" if self._framed else "SameSite=Lax"
        return f"{name}={token}; Path=/; Max-Age={KEPT_S:.0f}; HttpOnly; {same_site}"


def token_of(connection: HTTPConnection) -> str | None:
    """The session token in a request's cookies.

    A visitor who came before the cookie's name held the port has it under the name alone.
    """
    # Starlette's own parser: the standard library's drops all cookies at the first malformed one.
    cookies = connection.cookies
    return cookies.get(_cookie_name(connection.headers)) or cookies.get(COOKIE)


def _cookie_name(headers: Headers) -> str:
    """The cookie's name with the port, because browsers send cookies to all ports of a host."""
    _, colon, port = headers.get("host", "").rpartition(":")
    return f"{COOKIE}_{port}" if colon and port.isdecimal() else COOKIE


async def _check_room(visitor: VisitorSession, scope: Scope, policy: RoutePolicy) -> None:
    """Refuse a request that the visitor's workspace has no room for."""
    if policy.disk not in {DiskUse.EDIT, DiskUse.FILL}:
        return
    more_bytes = stated_bytes(Headers(scope=scope)) or 0
    is_edit = policy.disk is DiskUse.EDIT
    room = visitor.disk_quota
    if room.is_measured:
        room.reserve(more_bytes, as_edit=is_edit)
    else:
        await asyncio.to_thread(room.reserve, more_bytes, as_edit=is_edit)


def studio_of_visitor(request: Request) -> Studio:
    """The studio of the visitor that `VisitorMiddleware` found."""
    visitor = request.scope["state"]["visitor"]
    assert isinstance(visitor, VisitorSession)
    return visitor.studio
