"""What stands before every route: names, origins, closed addresses, sizes and headers."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.api.body_limits import BodyLimits, counted, stated_bytes, too_large
from studio.api.gates import is_open, is_visit
from studio.api.hosts import HostNames
from studio.api.refusals import refusal

# Gradio's page has scripts in it and compiles templates, so those two can't be forbidden; what is
# forbidden is to load anything from elsewhere, or to send anything there.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "media-src 'self' data: blob:; worker-src 'self' blob:; connect-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors {ancestors}"
)
_HUB = "'self' https://huggingface.co https://*.hf.space"


class Doors:
    """The outermost layer of the server."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: HostNames,
        *,
        limits: BodyLimits | None = None,
        framed_by_hub: bool = False,
    ) -> None:
        """Stand before an application.

        Args:
            app: All routes.
            hosts: By which names it may be reached.
            limits: How large bodies may be.
            framed_by_hub: Whether the page is shown inside Hugging Face's.
        """
        self._app = app
        self._hosts = hosts
        self._limits = limits or BodyLimits()
        self._headers = _headers(framed_by_hub=framed_by_hub)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, self._dressed(send))
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        refusal = self._refusal(headers, method, path)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        limit_bytes = self._limits.of(path)
        try:
            await self._app(scope, counted(receive, limit_bytes), send)
        except HTTPException as error:
            # From a layer that reads the body before any route does.
            await _refuse(path, error.status_code, error.detail)(scope, receive, send)

    def _refusal(self, headers: Headers, method: str, path: str) -> Response | None:
        reason = self._hosts.refuses(headers, is_visit=is_visit(method, path))
        if reason is not None:
            return _refuse(path, 403, reason)
        if not is_open(method, path):
            return _refuse(path, 404, "There is nothing at this address.")
        limit_bytes = self._limits.of(path)
        try:
            size_bytes = stated_bytes(headers)
        except ValueError:
            return _refuse(path, 400, "The request's length can't be read.")
        if size_bytes is not None and size_bytes > limit_bytes:
            return _refuse(path, 413, too_large(limit_bytes))
        return None

    def _dressed(self, send: Send) -> Send:
        async def send_dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        return send_dressed


def _headers(*, framed_by_hub: bool) -> Mapping[str, str]:
    headers = {
        "Content-Security-Policy": _POLICY.format(ancestors=_HUB if framed_by_hub else "'self'"),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "microphone=(self), camera=(), geolocation=(), payment=()",
    }
    return headers if framed_by_hub else headers | {"X-Frame-Options": "SAMEORIGIN"}


def _refuse(path: str, status: int, message: str) -> Response:
    # Unread bytes of a body would be taken for the next request.
    return refusal(path, status, message, headers={"Connection": "close"})
