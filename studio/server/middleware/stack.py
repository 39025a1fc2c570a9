"""The middleware stack of the page's server, and how the server is entered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from fastapi import FastAPI, HTTPException, Request
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp

from studio.server.deps import StudioOf, holds_key
from studio.server.middleware.admission import ConcurrencyLimitMiddleware, LoginLimit
from studio.server.middleware.security import OriginGuard, SecurityMiddleware
from studio.server.middleware.visitors import VisitorMiddleware, studio_of_visitor
from studio.services.studio import Studio
from studio.sharing.sessions import VisitorSessions


class LoginForm(Protocol):
    """The page's own form for name and password."""

    def is_signed_in(self, server: FastAPI, asks: HTTPConnection) -> bool:
        """Whether who asks has signed in, or need not."""
        ...

    def sign_in(self, server: FastAPI) -> str | None:
        """A cookie that stands for a sign-in; None when there is no form."""
        ...


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """How the server is entered.

    Attributes:
        studio: The owner's.
        hosts: By which names it may be reached.
        desks: Where visitors sit; None when all who come work in the owner's studio.
        api_key: What programs send; None when there is none.
        form: Where people sign in.
        framed_by_hub: Whether the page is shown inside Hugging Face's.
    """

    studio: Studio
    hosts: OriginGuard
    form: LoginForm
    desks: VisitorSessions | None = None
    api_key: str | None = field(default=None, repr=False)
    framed_by_hub: bool = False

    @property
    def studio_of(self) -> StudioOf:
        """Whose studio a request works with."""
        return (lambda _: self.studio) if self.desks is None else studio_of_visitor

    async def require_login(self, request: Request) -> None:
        """Refuse who hasn't signed in at the page's form, when there is one."""
        if not self.form.is_signed_in(_server_of(request), request):
            raise HTTPException(401, "Sign in first.")

    def layers(self, routes: ASGIApp, server: FastAPI) -> ASGIApp:
        """Put everything before the routes, the outermost last."""
        app: ASGIApp = routes
        if self.desks is not None:
            app = VisitorMiddleware(
                app,
                self.desks,
                signed_in=lambda asks: self.form.is_signed_in(server, asks),
                sign_in=lambda: self.form.sign_in(server),
                is_owner=self._has_key,
                framed=self.framed_by_hub,
            )
        app = ConcurrencyLimitMiddleware(LoginLimit(app))
        return SecurityMiddleware(app, self.hosts, framed_by_hub=self.framed_by_hub)

    def _has_key(self, asks: HTTPConnection) -> bool:
        return self.api_key is not None and holds_key(asks, self.api_key)


def _server_of(request: Request) -> FastAPI:
    """The page's server; under `/v1` the request's own application is another one."""
    server = request.scope["studio_server"]
    assert isinstance(server, FastAPI)
    return server
