"""The outermost layer: origin check, route allow-list, body limits and security headers."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.server.middleware.request_bodies import BodyLimits, limit_body, stated_bytes, too_large
from studio.server.v1.speech_errors import error_response

# By which names the studio may be reached, and from which pages.
#
# A page of another site can make a browser send requests here, and can have its own name point to
# this machine. Both show in headers that the page can't forge: Host, Origin and Sec-Fetch-Site.

_LOCAL_NAMES = frozenset({"localhost", "ip6-localhost"})
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not bound to
_OWN_PAGES = frozenset({"same-origin", "none"})
_NAVIGATES = ("navigate", "nested-navigate")


class OriginGuard:
    """The names under which requests are answered; a share link adds its own later."""

    def __init__(self, bound: str | None, more: Iterable[str] = ()) -> None:
        """Start with the local names.

        Args:
            bound: The address the server was started with; a wildcard stands for this machine's
                own names.
            more: Names from the settings.
        """
        # Guards the set, which grows when the share link is known.
        self._lock = threading.Lock()
        self._names = set(_LOCAL_NAMES) | {name.casefold() for name in more}
        if bound is not None and bound.strip("[]") in _WILDCARDS:
            own = {socket.gethostname().casefold(), socket.getfqdn().casefold()}
            self._names |= own | {f"{name}.local" for name in own if "." not in name}
        elif bound is not None:
            self._names.add(bound.strip("[]").casefold())

    def add(self, url: str) -> None:
        """Let the host of an address in, as a share link's."""
        name = urlsplit(url).hostname
        if name:
            with self._lock:
                self._names.add(name)

    def knows(self, name: str | None) -> bool:
        """Whether a host may be asked by this name; any address in figures may.

        A foreign page can make its own name lead here, but not an address in figures: that
        address is then the page's own host.
        """
        if not name:
            return False
        with self._lock:
            return name in self._names or _is_address(name)

    def refuses(self, headers: Headers, *, is_visit: bool) -> str | None:
        """Why a request is refused; None when it isn't.

        Args:
            headers: Of the request.
            is_visit: Whether it only asks for the page, which links elsewhere may lead to.
        """
        host = headers.get("host", "")
        name = _hostname(host)
        if not self.knows(name):
            return (
                f"This studio isn't reached by the name “{(name or host)[:80]}”. Use its own "
                "address, or add the name to TABLEREAD_ALLOWED_HOSTS."
            )
        if is_visit and headers.get("sec-fetch-mode") in _NAVIGATES:
            return None
        if not self._is_own_page(headers, host) or _is_foreign(headers):
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


def _is_foreign(headers: Headers) -> bool:
    site = headers.get("sec-fetch-site")
    return site is not None and site not in _OWN_PAGES


def _hostname(host: str) -> str | None:
    """The name of a Host header, without the port; None when it is none."""
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


_OWN = re.compile(r"/(studio|v1|healthz|metrics)(/.*)?")

_PAGE_FILES = (
    r"",
    r"config/?",
    r"theme\.css",
    r"favicon\.ico",
    r"manifest\.json",
    r"robots\.txt",
    r"pwa_icon(/\d+)?",
    r"logout",
    r"(assets|static|svelte)/.+",
)
_GRADIO_READS = (
    r"startup-events",
    r"info/?",
    r"user/?",
    r"login_check/?",
    r"app_id/?",
    r"theme\.css",
    r"heartbeat/[^/]+",
    r"queue/data",
)
_GRADIO_WRITES = (r"queue/join", r"reset/?")

_MAX_PART_BYTES = 255
"""No file's name is longer, and looking for one that is fails."""

_READ = re.compile(rf"/({'|'.join(_PAGE_FILES)})|/gradio_api/({'|'.join(_GRADIO_READS)})")
_WRITE = re.compile(rf"/login/?|/gradio_api/({'|'.join(_GRADIO_WRITES)})")


def is_allowed_route(method: str, path: str) -> bool:
    """Whether anything answers there.

    Gradio brings more: `run`, `call`, `proxy`, `upload`, `file`, `process_recording`, deep links,
    monitoring, documents. They stay closed.

    Args:
        method: As in the request.
        path: Decoded, from the root.
    """
    if any(len(part.encode(errors="replace")) > _MAX_PART_BYTES for part in path.split("/")):
        return False
    if _OWN.fullmatch(path):
        return True
    if method in {"GET", "HEAD"}:
        return _READ.fullmatch(path) is not None
    return method == "POST" and _WRITE.fullmatch(path) is not None


def is_page_request(method: str, path: str) -> bool:
    """Whether it only asks for the page itself."""
    return method in {"GET", "HEAD"} and path in {"/", "/studio/enter"}


# Gradio's page has scripts in it and compiles templates, so those two can't be forbidden; what is
# forbidden is to load anything from elsewhere, or to send anything there.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "media-src 'self' data: blob:; worker-src 'self' blob:; connect-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors {ancestors}"
)
_HUB = "'self' https://huggingface.co https://*.hf.space"


class SecurityMiddleware:
    """The outermost layer of the server."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: OriginGuard,
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
            await self._app(scope, limit_body(receive, limit_bytes), send)
        except HTTPException as error:
            # From a layer that reads the body before any route does.
            await _reject(path, error.status_code, error.detail)(scope, receive, send)

    def _refusal(self, headers: Headers, method: str, path: str) -> Response | None:
        reason = self._hosts.refuses(headers, is_visit=is_page_request(method, path))
        if reason is not None:
            return _reject(path, 403, reason)
        if not is_allowed_route(method, path):
            return _reject(path, 404, "There is nothing at this address.")
        limit_bytes = self._limits.of(path)
        try:
            size_bytes = stated_bytes(headers)
        except ValueError:
            return _reject(path, 400, "The request's length can't be read.")
        if size_bytes is not None and size_bytes > limit_bytes:
            return _reject(path, 413, too_large(limit_bytes))
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


def _reject(path: str, status: int, message: str) -> Response:
    # Unread bytes of a body would be taken for the next request.
    return error_response(path, status, message, headers={"Connection": "close"})
