"""By which names the studio may be reached, and from which pages.

A page of another site can make a browser send requests here, and can have its own name point to
this machine. Both show in headers that the page can't forge: Host, Origin and Sec-Fetch-Site.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers

_LOCAL_NAMES = frozenset({"localhost", "ip6-localhost"})
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not bound to
_OWN_PAGES = frozenset({"same-origin", "none"})
_NAVIGATES = ("navigate", "nested-navigate")


class HostNames:
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
