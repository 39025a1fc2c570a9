"""What a reverse proxy changes about a request and its response.

Gradio believes headers that any client can send: it makes the page's root of `X-Forwarded-Host` or
`X-Gradio-Server`. Here the headers become the request's own host and scheme, or are dropped.
"""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Scope, Send

from studio.server.middleware.admission import on_start
from studio.server.middleware.origin_guard import OriginGuard, hostname_of

_READ_HERE = frozenset({b"x-forwarded-host", b"x-forwarded-proto", b"x-gradio-server"})
_SCHEMES = frozenset({"http", "https"})


class ReverseProxy:
    """Restores what the browser requested, and answers in the same terms."""

    def __init__(self, hosts: OriginGuard, prefix: str = "") -> None:
        """Take the names that a proxy may forward, and the path of the studio, such as "/tts"."""
        self._hosts = hosts
        self.prefix = prefix

    def read(self, scope: Scope) -> Scope:
        """The request without prefix, its host and scheme as the browser sees them.

        Proxies may strip the prefix or keep it. The path is "" if it was the prefix alone, without
        the slash on which the page's relative addresses depend.
        """
        headers = Headers(scope=scope)
        scheme = _first(headers, "x-forwarded-proto")
        read = {
            **scope,
            "headers": self._read_headers(scope, headers),
            "scheme": scheme if scheme in _SCHEMES else scope["scheme"],
            "root_path": "",  # else the router would look for the prefix in each path
            "app_root_path": self.prefix,  # of `request.base_url`
        }
        if self.prefix and f"{scope['path']}/".startswith(f"{self.prefix}/"):
            read["path"] = scope["path"][len(self.prefix) :]
            read["raw_path"] = scope.get("raw_path", b"").removeprefix(self.prefix.encode())
        return read

    def respond(self, scope: Scope, send: Send) -> Send:
        """Wrap `send`, so that redirects and cookies fit the address that the browser requested.

        The scope is as returned by `read`.
        """
        is_secure = scope["scheme"] == "https"
        return on_start(send, lambda start: self._write_headers(start, is_secure=is_secure))

    def _read_headers(self, scope: Scope, headers: Headers) -> list[tuple[bytes, bytes]]:
        kept = [one for one in scope["headers"] if one[0] not in _READ_HERE]
        forwarded = _first(headers, "x-forwarded-host")
        # The Host header is checked all the same: a page whose name resolves to this machine could
        # send a forwarded name that is known.
        is_known = self._hosts.is_known_host(hostname_of(headers.get("host", "")))
        if not (is_known and self._hosts.may_be_forwarded(hostname_of(forwarded))):
            return kept
        return [(b"host", forwarded.encode("latin-1")), *(one for one in kept if one[0] != b"host")]

    def _write_headers(self, message: Message, *, is_secure: bool) -> None:
        headers = MutableHeaders(scope=message)
        if message["status"] == 200 and "content-length" not in headers:
            # A stream: nginx would hold it back until its buffers are full.
            headers["X-Accel-Buffering"] = "no"
        if "location" in headers:
            headers["location"] = self._location(headers["location"])
        cookies = headers.getlist("set-cookie")
        if cookies and (self.prefix or is_secure):
            del headers["set-cookie"]
            for cookie in cookies:
                headers.append("set-cookie", self._cookie(cookie, is_secure=is_secure))

    def _location(self, location: str) -> str:
        """A redirect's target without scheme and host, which the browser knows better."""
        parts = urlsplit(location)
        if not (parts.netloc or location.startswith("/")):
            return location
        path = f"/{parts.path.lstrip('/')}"  # two slashes would begin a host's name
        if not f"{path}/".startswith(f"{self.prefix}/"):
            path = f"{self.prefix}{path}"
        return urlunsplit(("", "", path, parts.query, parts.fragment))

    def _cookie(self, cookie: str, *, is_secure: bool) -> str:
        name, *attributes = cookie.split("; ")
        if self.prefix:
            own = (f"Path={self.prefix}", *(one for one in attributes if one.lower() != "path=/"))
            attributes = [*own]
        if is_secure and "secure" not in map(str.lower, attributes):
            attributes.append("Secure")
        return "; ".join((name, *attributes))


def _first(headers: Headers, name: str) -> str:
    """The value that the proxy next to the browser wrote; each further one appends its own."""
    return headers.get(name, "").split(",")[0].strip()
