"""Who may call a route and what it costs, as a `RoutePolicy` that each route declares itself.

The routes' dependencies are here too: the studio of a request, and the key of the speech API.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property, partial
from typing import Annotated, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from fastapi import Depends, Request
from fastapi.routing import iter_route_contexts
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Mount, compile_path
from starlette.types import Scope

from studio.services.studio import Studio
from studio.storage.guarded_child import is_abandoned

_LOOP_S = 5.0
_MB = 1_000_000
LOGIN_BYTES = 10_000
GRADIO_BYTES = 200_000
MCP_BYTES = 2 * _MB
JSON_BYTES = 12 * _MB
SPEECH_BYTES = 17 * _MB  # a text and a reference recording
UPLOAD_BYTES = 200 * _MB
PROJECT_BYTES = 100_000 * _MB  # the owner's; the route itself holds guests to UPLOAD_BYTES


class Access(Enum):
    """Who may call a route of a shared studio; of any other studio, everybody is the owner."""

    ANYBODY = auto()
    """Even callers who haven't signed in; the request gets no session."""

    REVIEWER = auto()
    """Holders of a review link, which the route itself looks up; the request gets no session."""

    GUEST = auto()
    """Callers who have signed in, if there is a password; the route's guard checks that."""

    OWNER = auto()


class RequestClass(Enum):
    """The queue of the admission control in which a request waits for its turn."""

    UNCOUNTED = auto()
    """None: the response is slow by design, and the route holds no thread or has its own bounds."""

    POLLED = auto()
    """Programs ask it again and again, so that it may be refused first."""

    SHORT = auto()
    LONG = auto()
    """Reads, writes or plays a whole file."""


class DiskUse(Enum):
    """How a request changes the size of a visitor's workspace."""

    NONE = auto()
    EDIT = auto()
    """Writes a little; may use the reserve that the quota keeps for edits."""

    FILL = auto()
    """Adds files: refused when the workspace is full; the workspace is measured again after it."""

    FREE = auto()
    """Removes files: the workspace is measured again after it."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RoutePolicy:
    """What the middleware needs to know about a route; the defaults are the strictest.

    An instance is a decorator that declares the policy on an endpoint, below the router's own.

    Attributes:
        access: Who may call the route.
        max_body_bytes: Limit of the body.
        request_class: Its queue in the admission control.
        disk: How it changes the size of the workspace.
        is_upload: Whether a call counts as one of a visitor's uploads.
        is_page: Whether it is the page itself, which links on other sites may lead to.
        starts_session: Whether a caller without a cookie gets a session of their own; on other
            routes such callers share one.
        opens_workspace: Whether the middleware opens the workspace first, off the event loop.
    """

    access: Access = Access.OWNER
    max_body_bytes: int = JSON_BYTES
    request_class: RequestClass = RequestClass.SHORT
    disk: DiskUse = DiskUse.NONE
    is_upload: bool = False
    is_page: bool = False
    starts_session: bool = False
    opens_workspace: bool = False

    def __call__(self, endpoint: T) -> T:
        """Declare the policy on an endpoint, or on the application of a mount."""
        setattr(endpoint, _DECLARED, self)
        return endpoint


_DECLARED = "route_policy"

page_policy = partial(RoutePolicy, starts_session=True, opens_workspace=True)
"""Policy of a route under `/studio`, which the page calls."""

upload_policy = partial(
    page_policy,
    Access.GUEST,
    max_body_bytes=UPLOAD_BYTES,
    request_class=RequestClass.LONG,
    disk=DiskUse.FILL,
    is_upload=True,
)
"""Policy of a route under `/studio` whose body is a file."""

reviewer_policy = partial(RoutePolicy, Access.REVIEWER)
"""Policy of a route under `/studio/review`, which pages of review links call."""

speech_policy = partial(
    RoutePolicy, Access.GUEST, request_class=RequestClass.UNCOUNTED, opens_workspace=True
)
"""Policy of a route under `/v1`, which programs call."""

UNDECLARED = RoutePolicy()
"""Policy of a route that declares none."""

ENTER = "/studio/enter"
"""Signs the owner in with the token that the terminal shows; handled by `VisitorMiddleware`."""

_OWN = ("/studio/", "/v1/", "/healthz", "/metrics")
"""Prefixes of the studio's own routes; all others are Gradio's, and in the table below."""

_READ = frozenset({"GET", "HEAD"})
_WRITE = frozenset({"POST"})
_PUBLIC = RoutePolicy(Access.ANYBODY)
_GUEST = RoutePolicy(Access.GUEST)
_GRADIO = RoutePolicy(Access.GUEST, GRADIO_BYTES)
_GRADIO_STREAM = RoutePolicy(Access.GUEST, GRADIO_BYTES, RequestClass.UNCOUNTED)

_GRADIO_FILE = RoutePolicy(Access.GUEST, GRADIO_BYTES, RequestClass.LONG, opens_workspace=True)
_GRADIO_UPLOAD = replace(
    _GRADIO_FILE, max_body_bytes=UPLOAD_BYTES, disk=DiskUse.FILL, is_upload=True
)

_MCP = RoutePolicy(
    Access.GUEST, MCP_BYTES, RequestClass.UNCOUNTED, DiskUse.EDIT, opens_workspace=True
)

_FOREIGN_ROUTES: tuple[tuple[frozenset[str], str, RoutePolicy], ...] = (
    (_READ, r"/", RoutePolicy(Access.GUEST, is_page=True, starts_session=True)),
    (_READ, ENTER, RoutePolicy(Access.ANYBODY, is_page=True)),
    (_READ, r"/(assets|static|svelte)/.+|/theme\.css|/favicon\.ico", _PUBLIC),
    (_READ, r"/(config/?|manifest\.json|robots\.txt|pwa_icon(/\d+)?|logout)", _GUEST),
    (_READ, r"/gradio_api/(startup-events|(info|user|login_check|app_id)/?|theme\.css)", _GRADIO),
    (_READ, r"/gradio_api/(heartbeat/[^/]+|queue/data)", _GRADIO_STREAM),
    (_READ, r"/gradio_api/call/(v2/)?\w+/\w+", _GRADIO_STREAM),
    (_WRITE, r"/gradio_api/(queue/join|call/(v2/)?\w+|reset/?)", _GRADIO),
    (_WRITE, r"/gradio_api/upload", _GRADIO_UPLOAD),
    (_READ, r"/gradio_api/mcp/schema", _GRADIO),
    (_READ | {"POST", "DELETE"}, r"/gradio_api/mcp/?", _MCP),
    (_READ, r"/gradio_api/file=spoken/[\w-]+/[\w.-]+", _GRADIO_FILE),
    (_WRITE, r"/login/?", RoutePolicy(Access.ANYBODY, LOGIN_BYTES)),
)
"""The allow-list of routes that aren't the studio's: Gradio's, and the owner's sign-in.

Gradio has more: `run`, `proxy`, `process_recording`, deep links, monitoring, documents.
They stay closed. Its `upload`, `file` and `mcp` are the studio's own here.
"""

_MAX_SEGMENT_BYTES = 255
"""The most that file systems take for a name; looking up a longer one is an error."""


@dataclass(frozen=True)
class DeclaredRoute:
    """A route of the studio with its policy.

    Attributes:
        path: From the root, with its parameters in braces.
        methods: None if it takes any method.
        policy: None if it declares none.
        holder: The route of the server that leads to it: itself, a router or a mount.
    """

    path: str
    methods: frozenset[str] | None
    policy: RoutePolicy | None
    holder: BaseRoute

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return compile_path(self.path)[0]

    def takes(self, method: str, path: str) -> bool:
        """Whether it is the route of a request; else another one may be."""
        is_method = self.methods is None or method in self.methods
        return is_method and self.pattern.match(path) is not None


_FOREIGN_WORDS = frozenset(
    re.findall(r"[\w.=-]{2,}", " ".join(row[1] for row in _FOREIGN_ROUTES).replace("\\.", "."))
)
"""What stands in paths of the foreign routes; the rest of such a path is the caller's."""


def _area_of(path: str) -> tuple[str, ...]:
    """The first two segments of a path, which no route of the studio has as parameters."""
    return tuple(path.split("/", 3)[1:3])


class RoutePolicies:
    """Finds the policy of a request; built once, after all routes are registered."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self.routes = tuple(list_declared(routes))
        self._own: dict[tuple[str, ...], list[DeclaredRoute]] = {}
        for one in self.routes:
            self._own.setdefault(_area_of(one.path), []).append(one)

    def find(self, method: str, path: str) -> RoutePolicy | None:
        """The policy of a request; None if there is no route.

        Args:
            method: If a route with this path doesn't take it, that route's policy is returned.
            path: Decoded, from the root.
        """
        if "\n" in path:  # a mount's pattern matches none, so the router would find no route
            return None
        if any(len(part.encode(errors="replace")) > _MAX_SEGMENT_BYTES for part in path.split("/")):
            return None
        if not path.startswith(_OWN) or path == ENTER:
            return next(
                (
                    policy
                    for methods, pattern, policy in _FOREIGN_ROUTES
                    if method in methods and re.fullmatch(pattern, path)
                ),
                None,
            )
        found = self._find_own(method, path)
        return None if found is None else found.policy or UNDECLARED

    def template_of(self, method: str, path: str) -> str:
        """The path of a request's route, with a brace for each part that the caller chose."""
        if not self.find(method, path):
            return "unknown"
        if found := self._find_own(method, path):
            return found.path
        parts = path.split("/")
        return "/".join(one if not one or one in _FOREIGN_WORDS else "{}" for one in parts)

    def find_route(self, method: str, path: str) -> DeclaredRoute | None:
        """The first route of the studio that has a request's path and method."""
        own = self._own.get(_area_of(path), ())
        return next((one for one in own if one.takes(method, path)), None)

    def _find_own(self, method: str, path: str) -> DeclaredRoute | None:
        """As Starlette's router chooses: the first full match, else the first match of the path.

        It redirects to the path with or without the slash.
        """
        for asked in (path, path[:-1] if path.endswith("/") else f"{path}/"):
            of_path = [
                one for one in self._own.get(_area_of(asked), ()) if one.pattern.match(asked)
            ]
            if of_path:
                return self.find_route(method, asked) or of_path[0]
        return None


def policy_of(scope: Scope) -> RoutePolicy:
    """The policy that `SecurityMiddleware` found for a request."""
    policy = scope.get(_DECLARED, UNDECLARED)
    assert isinstance(policy, RoutePolicy)
    return policy


def keep_policy(scope: Scope, policy: RoutePolicy) -> None:
    """Store a request's policy for the inner layers."""
    scope[_DECLARED] = policy


def list_declared(routes: Iterable[BaseRoute]) -> Iterator[DeclaredRoute]:
    """The studio's own routes, including those of mounted applications."""
    for holder in routes:
        yield from _list_held([holder], "", holder)


def _list_held(
    routes: Sequence[BaseRoute], prefix: str, holder: BaseRoute
) -> Iterator[DeclaredRoute]:
    for route in iter_route_contexts(routes):
        path = f"{prefix}{route.path}"
        if isinstance(route.route, Mount):
            if route.route.routes:
                yield from _list_held(route.route.routes, path, holder)
            elif path.startswith(_OWN):
                yield DeclaredRoute(f"{path}/{{path:path}}", None, _read(route.route.app), holder)
        elif path.startswith(_OWN):
            methods = None if route.methods is None else frozenset(route.methods)
            yield DeclaredRoute(path, methods, _read(route.endpoint), holder)


def _read(endpoint: Callable[..., Any] | None) -> RoutePolicy | None:
    policy = getattr(endpoint, _DECLARED, None)
    assert policy is None or isinstance(policy, RoutePolicy)
    return policy


StudioOf = Callable[[Request], Studio]
"""Finds the studio of a request, or raises if its visitor has none.

Every route gets its studio this way and no other, so that one place decides what a visitor sees.
"""


def current_studio(studio_of: StudioOf) -> Callable[[Request], Awaitable[None]]:
    """Make the dependency that finds each request's studio before its handler runs.

    It is `async` although it awaits nothing: FastAPI runs any other dependency in a thread.
    """

    async def find_studio(request: Request) -> None:
        request.state.studio = studio_of(request)
        is_abandoned.set(partial(_is_gone, request, asyncio.get_running_loop()))

    return find_studio


def _is_gone(request: Request, loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the client of a request has disconnected; for threads, when its body was read."""
    looked = asyncio.run_coroutine_threadsafe(request.is_disconnected(), loop)
    with suppress(TimeoutError):
        return looked.result(_LOOP_S)
    return False  # the loop is busy, or ends


def spend_upload(request: Request, count: int = 1) -> None:
    """Count recordings inside a request as uploads of the visitor."""
    visitor = getattr(request.state, "visitor", None)
    if visitor is not None and visitor.rate_limits is not None:
        visitor.rate_limits.spend_upload(count)


async def _request_studio(request: Request) -> Studio:
    """The studio that `current_studio` found."""
    studio = request.state.studio
    assert isinstance(studio, Studio)
    return studio


StudioDep = Annotated[Studio, Depends(_request_studio)]
"""Type of a handler's `studio`: that of the visitor who sent the request."""


class PerStudio(Generic[T]):
    """One object for each studio, made on first use; safe from any thread."""

    def __init__(self, make: Callable[[Studio], T]) -> None:
        self._make = make
        # Guards the table, which requests in several threads read and change.
        self._lock = threading.Lock()
        self._made: WeakKeyDictionary[Studio, T] = WeakKeyDictionary()

    def get(self, studio: Studio) -> T:
        """The object of a studio."""
        with self._lock:
            if studio not in self._made:
                self._made[studio] = self._make(studio)
            return self._made[studio]


def given_key(asks: HTTPConnection) -> str | None:
    """The key that a request carries; None if there is none."""
    scheme, _, given = asks.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else None
