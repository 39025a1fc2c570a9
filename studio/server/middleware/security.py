"""The outermost middleware: origin check, route allow-list, body limits, security headers."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.errors import StudioError
from studio.server.error_responses import error_response, response_for_error
from studio.server.middleware.access_log import AccessLog
from studio.server.middleware.admission import limit_body, on_start, stated_bytes, too_large
from studio.server.middleware.origin_guard import OriginGuard
from studio.server.middleware.reverse_proxy import ReverseProxy
from studio.server.policies import Access, RoutePolicies, RoutePolicy, keep_policy, policy_of

# Gradio's page has inline scripts and compiles templates, so those two can't be forbidden; the
# page may load nothing from other sites, and send nothing there.
_CSP = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "media-src 'self' data: blob:; worker-src 'self' blob:; connect-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors {ancestors}"
)
_PROBED = frozenset({"/healthz", "/healthz/live", "/metrics"})
_HUB = "'self' https://huggingface.co https://*.hf.space"


class SecurityMiddleware:
    """The outermost middleware: refuses requests by origin, route and size, and adds headers.

    A request without a policy gets 404. The prefix is that of a `ReverseProxy`.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: OriginGuard,
        policies: RoutePolicies,
        *,
        prefix: str = "",
        framed_by_hub: bool = False,
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._proxy = ReverseProxy(hosts, prefix)
        self._policies = policies
        self._access_log = AccessLog(policies)
        self._headers = _headers(framed_by_hub=framed_by_hub)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            scope = self._proxy.read(scope)
            send = self._proxy.respond(scope, send)
            send = self._add_headers(scope, send)
            await self._access_log.follow(self._http, scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, path = Headers(scope=scope), scope["path"]
        policy = self._policies.find(scope["method"], path)
        try:
            self._check_origin(headers, path, policy)
            if path == "":
                await RedirectResponse(f"{self._proxy.prefix}/")(scope, receive, send)
            elif policy is not None:
                _check_size(headers, policy.max_body_bytes)
                keep_policy(scope, policy)
                await self._app(scope, limit_body(receive, policy.max_body_bytes), send)
            elif path.startswith("/studio/"):  # as the router itself responds
                close = {"Connection": "close"}
                await JSONResponse({"detail": "Not Found"}, 404, close)(scope, receive, send)
            else:
                raise HTTPException(404, "There is nothing at this address.")
        except StudioError as error:
            await response_for_error(path, error)(scope, receive, send)
        except HTTPException as error:
            # Also from a middleware that reads the body before any route does. The connection is
            # closed, since unread bytes of a body would be taken for the next request.
            kind = "EngineBusy" if error.status_code == 429 else "Refused"
            more = {**(error.headers or {}), "Connection": "close"}
            refused = error_response(path, error.status_code, error.detail, kind=kind, headers=more)
            await refused(scope, receive, send)
        except ClientDisconnect:
            pass  # while a middleware read the body

    def _check_origin(self, headers: Headers, path: str, policy: RoutePolicy | None) -> None:
        is_visit = policy is not None and policy.is_page
        is_probe = path in _PROBED
        reason = self._hosts.find_refusal(headers, is_visit=is_visit, is_probe=is_probe)
        if reason is not None:
            raise HTTPException(403, reason)

    def _add_headers(self, scope: Scope, send: Send) -> Send:
        def add(start: Message) -> None:
            headers = MutableHeaders(scope=start)
            for name, value in self._headers.items():
                headers.setdefault(name, value)
            if policy_of(scope).access is not Access.ANYBODY:
                headers.setdefault("Cache-Control", "private, no-cache")

        return on_start(send, add)


def _headers(*, framed_by_hub: bool) -> Mapping[str, str]:
    headers = {
        "Content-Security-Policy": _CSP.format(ancestors=_HUB if framed_by_hub else "'self'"),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "microphone=(self), camera=(), geolocation=(), payment=()",
    }
    return headers if framed_by_hub else headers | {"X-Frame-Options": "SAMEORIGIN"}


def _check_size(headers: Headers, limit_bytes: int) -> None:
    try:
        size_bytes = stated_bytes(headers) or 0
    except ValueError:
        raise HTTPException(400, "The request's length can't be read.") from None
    if size_bytes > limit_bytes:
        raise HTTPException(413, too_large(limit_bytes))
