"""Refuses requests to host names that aren't the studio's, and those of other sites' pages."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from studio.storage.text_cache import text_cache

# A page of another site can make a browser send requests here (CSRF), and can have its own name
# resolve to this machine (DNS rebinding). Both show in headers that the page can't forge: Host,
# Origin and Sec-Fetch-Site.

_LOCAL_NAMES = frozenset({"localhost", "ip6-localhost"})
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not bound to
_OWN_PAGES = frozenset({"same-origin", "none"})
_NAVIGATES = ("navigate", "nested-navigate")


class OriginGuard:
    """Refuses requests to a host name that isn't the studio's, or from a page of another site."""

    def __init__(
        self, bound: str | None, more: Iterable[str] = (), *, is_local: bool = True
    ) -> None:
        """Start with the local names.

        Args:
            bound: The address that the server listens on; a wildcard is this machine's own names.
            more: Names from the settings.
            is_local: Whether only this machine reaches the server.
        """
        # Guards the set, which gets the share link's host once Gradio has made the link.
        self._lock = threading.Lock()
        self._is_local = is_local
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

    def may_be_forwarded(self, name: str | None) -> bool:
        """Whether a proxy may have got requests by this host name.

        Of addresses only those of this machine itself: anybody can write one into a header that
        isn't Host.
        """
        if not name:
            return False
        with self._lock:
            return name in self._names or (_is_address(name) and ip_address(name).is_loopback)

    def find_refusal(
        self, headers: Headers, *, is_visit: bool, is_probe: bool = False
    ) -> str | None:
        """Why a request is refused; None if it is allowed.

        Args:
            headers: The request's.
            is_visit: Whether it is for the page itself, which links on other sites may lead to.
            is_probe: Whether it asks for health or metrics. Where other machines reach the studio,
                these name it as they like, such as by its container.
        """
        host = headers.get("host", "")
        name = hostname_of(host)
        if not (self.is_known_host(name) or (is_probe and not self._is_local)):
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


_MOST_HOST_CHARS = 300
"""More than a name and a port have."""


@text_cache
def hostname_of(host: str) -> str | None:
    """The host name in a Host header, without the port and in lower case; None if malformed."""
    if not host or len(host) > _MOST_HOST_CHARS or any(char in host for char in "/\\@?# ,"):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname


@text_cache
def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
