"""Who a request comes from, and how many places its network may hold."""

from __future__ import annotations

import ipaddress
from collections import Counter
from functools import lru_cache

from starlette.types import Scope

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
