"""The throttle of sign-ins and of the key: an address with ten wrong ones waits.

Guesses from very many addresses make every sign-in slow, the right one too: a guesser who sees that
a right password is answered at once doesn't wait for the other answers.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.errors import NotAllowed
from studio.server.error_responses import busy_response
from studio.server.middleware.admission import leave_place, on_start, receive_once
from studio.server.middleware.places import Places, client_network
from studio.server.policies import Access, given_key, policy_of

_MOST_FAILED = 10
_MOST_OF_SITE = 20
"""Of all networks of a /48, which is what a provider gives to one customer."""

_WINDOW_S = 300.0
_MOST_ADDRESSES = 1_000
"""Addresses that are remembered; each try looks through them."""


class FailedTries:
    """The wrong tries of each address in the last five minutes.

    What comes through a tunnel or proxy that names no address counts as one.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # When each came, the first one first; the address of the latest is the last.
        self._tries: dict[str | None, dict[Hashable, float]] = {}

    def find_wait_s(self, network: str | None) -> int:
        """Seconds until an address may try again; 0 if it may now."""
        now_s = self._clock()
        self._forget_old(now_s)
        first_s = [
            next(iter(tries.values()))
            for counted, most in _counted(network)
            if len(tries := self._tries.get(counted, {})) >= most
        ]
        return math.ceil(max(first_s) + _WINDOW_S - now_s) if first_s else 0

    def add(self, network: str | None, tried: Hashable) -> None:
        """Count a wrong try, each one once."""
        for counted, _ in _counted(network):
            tries = self._tries.pop(counted, {})
            tries.setdefault(tried, self._clock())
            self._tries[counted] = tries

    def take_back(self, network: str | None, tried: Hashable) -> None:
        """Count a try no longer: it was a right one."""
        for counted, _ in _counted(network):
            self._tries.get(counted, {}).pop(tried, None)

    def has_any(self, network: str | None) -> bool:
        """Whether an address has tried wrongly, or tries now."""
        return bool(self._tries.get(network))

    def _forget_old(self, now_s: float) -> None:
        for network, tries in list(self._tries.items()):
            for tried in [one for one, at_s in tries.items() if now_s - at_s >= _WINDOW_S]:
                del tries[tried]
            if not tries:
                del self._tries[network]
        while len(self._tries) > _MOST_ADDRESSES:
            del self._tries[next(iter(self._tries))]


def _counted(network: str | None) -> Iterator[tuple[str | None, int]]:
    """What a try of a network counts for, with how many wrong ones make it wait."""
    yield network, _MOST_FAILED
    if network is not None and ":" in network:
        yield str(ipaddress.ip_network(network).supernet(new_prefix=48)), _MOST_OF_SITE


_MANY, _MANY_S = 300, 60.0
"""So many wrong passwords in that time come from somebody who guesses."""

_SLOW_S = 5.0
_MOST_SLOW = 64


class LoginLimit:
    """Login throttle: after ten wrong passwords, an address waits for a while.

    Others still sign in, and whoever is signed in already isn't affected. While hundreds of wrong
    ones come in a minute, each sign-in takes 5 s, and only so many are under way.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._app = app
        self._clock, self._sleep = clock, sleep
        self._failed = FailedTries(clock)
        self._wrong_s: deque[float] = deque(maxlen=_MANY)
        self._slow = Places(_MOST_SLOW)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse a sign-in."""
        if scope["type"] != "http" or scope["path"].rstrip("/") != "/login":
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()  # before it counts: it may come slowly
        network, tried = client_network(scope), object()
        wait_s = self._failed.find_wait_s(network)
        is_slow = len(self._wrong_s) == _MANY and self._clock() - self._wrong_s[0] < _MANY_S
        if is_slow and self._slow.is_full_for(network) and self._failed.has_any(network):
            wait_s = wait_s or int(_SLOW_S)  # an address without a wrong one always gets in
        if wait_s:
            message = f"There were too many wrong passwords. Try again in {wait_s} s."
            await busy_response("/login", message, wait_s)(scope, receive, send)
            return
        # Counted as failed until its response is known, so that parallel attempts count too.
        self._failed.add(network, tried)

        def note(start: Message) -> None:
            if start["status"] < 400:
                self._failed.take_back(network, tried)
            else:
                self._wrong_s.append(self._clock())

        if is_slow:
            leave_place(scope)
            self._slow.take(network)
            try:
                await self._sleep(_SLOW_S)
            finally:
                self._slow.leave(network)
        await self._app(scope, receive_once(body, receive), on_start(send, note))


class KeyLimit:
    """The same for the key, of which a program sends a wrong one again and again: it counts once.

    The requests of an address that waits are those of somebody without a key: a proxy may sign
    people in by a token of its own in the same header, and their page goes on. An address that had
    the right key doesn't wait, so that nobody can keep the owner's programs out.
    """

    def __init__(
        self,
        app: ASGIApp,
        holds_key: Callable[[HTTPConnection], bool],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._holds_key = holds_key
        self._failed = FailedTries(clock)
        self._known: set[str | None] = set()  # only the owner's addresses come in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse one that needs the key."""
        given = _given_key(scope)
        if given is None:
            await self._app(scope, receive, send)
            return
        network, is_right = client_network(scope), self._holds_key(HTTPConnection(scope))
        wait_s = 0 if is_right and network in self._known else self._failed.find_wait_s(network)
        if wait_s:
            await self._without_key(wait_s, scope, receive, send)
            return
        if is_right:
            self._known.add(network)
        else:
            self._failed.add(network, hash(given))
        await self._app(scope, receive, send)

    async def _without_key(self, wait_s: int, scope: Scope, receive: Receive, send: Send) -> None:
        is_refused = False

        async def send_unless_refused(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start":
                is_refused = message["status"] in {401, 403}
            if not is_refused:
                await send(message)

        kept = [one for one in scope["headers"] if one[0] != b"authorization"]
        try:
            await self._app({**scope, "headers": kept}, receive, send_unless_refused)
        except NotAllowed:
            is_refused = True
        if is_refused:
            message = f"There were too many wrong API keys. Try again in {wait_s} s."
            await busy_response(scope["path"], message, wait_s)(scope, receive, send)


def _given_key(scope: Scope) -> str | None:
    """The key that a request gives to a route that looks at it; None if there is none."""
    if scope["type"] != "http" or policy_of(scope).access not in {Access.GUEST, Access.OWNER}:
        return None
    return given_key(HTTPConnection(scope))
