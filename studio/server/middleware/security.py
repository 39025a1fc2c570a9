"""The outermost middleware: origin check, route allow-list, body limits, security headers."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.server.error_responses import error_response
from studio.server.middleware.admission import limit_body, stated_bytes, too_large
from studio.server.policies import RoutePolicies, RoutePolicy, keep_policy

# A page of another site can make a browser send requests here (CSRF), and can have its own name
# resolve to this machine (DNS rebinding). Both show in headers that the page can't forge: Host,
# Origin and Sec-Fetch-Site.

_LOCAL_NAMES = frozenset({"localhost", "ip6-localhost"})
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not bound to
_OWN_PAGES = frozenset({"same-origin", "none"})
_NAVIGATES = ("navigate", "nested-navigate")


class OriginGuard:
    """Refuses requests to a host name that isn't the studio's, or from a page of another site."""

    def __init__(self, bound: str | None, more: Iterable[str] = ()) -> None:
        """Start with the local names.

        Args:
            bound: The address that the server listens on; a wildcard stands for this machine's
                own names.
            more: Names from the settings.
        """
        # Guards the set, which gets the share link's host once Gradio has made the link.
        self._lock = threading.Lock()
        self._names = set(_LOCAL_NAMES) | {name.casefold() for name in more}
        if bound is not None and bound.strip("[]") in _WILDCARDS:
            own = {socket.gethostname().casefold(), socket.getfqdn().casefold()}
            self._names |= own | {f"{name}.local" for name in own if "." not in name}
        elif bound is not None:
            self._names.add(bound.strip("[]").casefold())

    def add(self, url: str) -> None:
        """Allow the host of a URL, such as a share link's."""
        name = urlsplit(url).hostname
        if name:
            with self._lock:
                self._names.add(name)

    def is_known_host(self, name: str | None) -> bool:
        """Whether requests may use this host name; any IP address is allowed.

        Another site can make its name resolve to this machine, but an IP address in the Host
        header is the address that the browser really connected to.
        """
        if not name:
            return False
        with self._lock:
            return name in self._names or _is_address(name)

    def find_refusal(self, headers: Headers, *, is_visit: bool) -> str | None:
        """Why a request is refused; None if it is allowed.

        Args:
            headers: The request's.
            is_visit: Whether it is for the page itself, which links on other sites may lead to.
        """
        host = headers.get("host", "")
        name = _hostname(host)
        if not self.is_known_host(name):
            return (
                f"This studio isn't reached by the name “{(name or host)[:80]}”. Use its own "
                "address, or add the name to TABLEREAD_ALLOWED_HOSTS."
            )
        if is_visit and headers.get("sec-fetch-mode") in _NAVIGATES:
            return None
        is_foreign = headers.get("sec-fetch-site", "none") not in _OWN_PAGES
        if is_foreign or not self._is_own_page(headers, host):
            return "Pages of other sites can't use this studio."
        return None

    def _is_own_page(self, headers: Headers, host: str) -> bool:
        origin = headers.get("origin")
        if origin is None:
            return True
        try:
            parts = urlsplit(origin)
            port = parts.port
        except ValueError:
            return False
        if parts.scheme not in {"http", "https"} or parts.hostname is None:
            return False
        default = 443 if parts.scheme == "https" else 80
        asked = urlsplit(f"//{host}")
        return parts.hostname == asked.hostname and (port or default) in {asked.port or default}


def _hostname(host: str) -> str | None:
    """The host name in a Host header, without the port; None if the header is malformed."""
    if not host or any(char in host for char in "/\\@?# ,"):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


# Gradio's page has inline scripts and compiles templates, so those two can't be forbidden; the
# page may load nothing from other sites, and send nothing there.
_CSP = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "media-src 'self' data: blob:; worker-src 'self' blob:; connect-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors {ancestors}"
)
_HUB = "'self' https://huggingface.co https://*.hf.space"


class SecurityMiddleware:
    """The outermost middleware: refuses requests by origin, route and size, and adds headers."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: OriginGuard,
        policies: RoutePolicies,
        *,
        framed_by_hub: bool = False,
    ) -> None:
        """Wrap an application.

        Args:
            app: All routes.
            hosts: The allowed host names.
            policies: Of the routes; a request without one gets 404.
            framed_by_hub: Whether the page is shown in a frame of Hugging Face's.
        """
        self._app = app
        self._hosts = hosts
        self._policies = policies
        self._headers = _headers(framed_by_hub=framed_by_hub)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, self._add_headers(send))
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        policy = self._policies.find(method, path)
        refusal = self._find_refusal(headers, path, policy)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        assert policy is not None  # a request without one was refused
        keep_policy(scope, policy)
        try:
            await self._app(scope, limit_body(receive, policy.max_body_bytes), send)
        except HTTPException as error:
            # From a middleware that reads the body before any route does.
            await _reject(path, error.status_code, error.detail)(scope, receive, send)

    def _find_refusal(
        self, headers: Headers, path: str, policy: RoutePolicy | None
    ) -> Response | None:
        is_visit = policy is not None and policy.is_page
        reason = self._hosts.find_refusal(headers, is_visit=is_visit)
        if reason is not None:
            return _reject(path, 403, reason)
        if policy is None:
            if path.startswith("/studio/"):  # as the router itself responds
                return JSONResponse({"detail": "Not Found"}, 404, {"Connection": "close"})
            return _reject(path, 404, "There is nothing at this address.")
        limit_bytes = policy.max_body_bytes
        try:
            size_bytes = stated_bytes(headers)
        except ValueError:
            return _reject(path, 400, "The request's length can't be read.")
        if size_bytes is not None and size_bytes > limit_bytes:
            return _reject(path, 413, too_large(limit_bytes))
        return None

    def _add_headers(self, send: Send) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        return send_with_headers


def _headers(*, framed_by_hub: bool) -> Mapping[str, str]:
    headers = {
        "Content-Security-Policy": _CSP.format(ancestors=_HUB if framed_by_hub else "'self'"),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "microphone=(self), camera=(), geolocation=(), payment=()",
    }
    return headers if framed_by_hub else headers | {"X-Frame-Options": "SAMEORIGIN"}


def _reject(path: str, status: int, message: str) -> Response:
    # The connection is closed, since unread bytes of a body would be taken for the next request.
    return error_response(path, status, message, headers={"Connection": "close"})
