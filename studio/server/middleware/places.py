"""Who a request comes from, and how many streams and downloads are open, in all and for each."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable
from functools import lru_cache

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.server.error_responses import busy_response
from studio.server.policies import Access, RequestClass, policy_of

_THIS_MACHINE = frozenset({"127.0.0.1", "::1"})
_IPV6_PREFIX = 64


@lru_cache(1_000)
def network_of(host: str | None) -> str | None:
    """What counts as one address: an IPv4 address, or the /64 of an IPv6 address.

    Returns:
        None for this machine, through which a tunnel or a proxy may bring everybody, and for what
        isn't an address.
    """
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if str(address) in _THIS_MACHINE:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((int(address), _IPV6_PREFIX), strict=False))


def client_network(scope: Scope) -> str | None:
    """The network that a request comes from.

    uvicorn has put there what a trusted proxy says in `X-Forwarded-For`.
    """
    client = scope.get("client")
    return network_of(client[0]) if client else None


class Places:
    """A number of places: one network gets half of them, and a quarter is kept for this machine."""

    def __init__(self, in_all: int) -> None:
        self._in_all = in_all
        self._of_one = in_all // 2
        self._of_others = in_all * 3 // 4
        self._held: Counter[str | None] = Counter()

    def is_full_for(self, network: str | None) -> bool:
        """Whether a network gets no further place."""
        others = self._held.total() - self._held[None]
        full_for_others = network is not None and others >= self._of_others
        return self._is_full or full_for_others or self._has_too_many(network)

    def is_in_the_way(self, holder: str | None, network: str | None) -> bool:
        """Whether a network that holds places may have to give one up for `network`."""
        if self._has_too_many(network):
            return holder == network
        return self._is_full or holder is not None

    @property
    def _is_full(self) -> bool:
        return self._held.total() >= self._in_all

    def _has_too_many(self, network: str | None) -> bool:
        return network is not None and self._held[network] >= self._of_one

    def take(self, network: str | None) -> None:
        """Take a place."""
        self._held[network] += 1

    def leave(self, network: str | None) -> None:
        """Free a place."""
        self._held[network] -= 1
        if not self._held[network]:
            del self._held[network]


_SLOW = frozenset({RequestClass.UNCOUNTED, RequestClass.LONG})
_FULL = "Too many pages and downloads are open in this studio now. Try again in 10 s."


class StreamLimitMiddleware:
    """Bounds the streams and downloads that are open, which last as long as their reader likes."""

    def __init__(
        self,
        app: ASGIApp,
        at_most: int,
        *,
        is_exempt: Callable[[HTTPConnection], bool] = lambda _: False,
    ) -> None:
        self._app = app
        self._places = Places(at_most)
        self._is_exempt = is_exempt

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if not self._is_counted(scope):
            await self._app(scope, receive, send)
            return
        network = client_network(scope)
        if self._places.is_full_for(network):
            await busy_response(scope["path"], _FULL, 10)(scope, receive, send)
            return
        self._places.take(network)
        try:
            await self._app(scope, receive, send)
        finally:
            self._places.leave(network)

    def _is_counted(self, scope: Scope) -> bool:
        if scope["type"] != "http":
            return False
        policy = policy_of(scope)
        is_slow = policy.request_class in _SLOW and policy.access is not Access.ANYBODY
        return is_slow and not self._is_exempt(HTTPConnection(scope))
