"""What a route asks of a request before it is called; each route declares its own `RoutePolicy`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, TypeVar

from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, Mount, compile_path
from starlette.types import Scope

_MB = 1_000_000
LOGIN_BYTES = 10_000
GRADIO_BYTES = 2 * _MB
JSON_BYTES = 12 * _MB
SPEECH_BYTES = 17 * _MB  # a text and a reference recording
UPLOAD_BYTES = 200 * _MB
PROJECT_BYTES = 100_000 * _MB  # the owner's; the route itself holds guests to UPLOAD_BYTES


class Access(Enum):
    """Who may call a route of a shared studio; where it isn't shared, everybody is the owner."""

    ANYBODY = auto()
    """Also who hasn't signed in; the request belongs to no session."""

    GUEST = auto()
    """Who has signed in, where there is a password; the route's guard checks that."""

    OWNER = auto()


class RequestClass(Enum):
    """In which queue of the admission control a request waits for its turn."""

    UNCOUNTED = auto()
    """In none: it answers late by design, and holds no thread or has bounds of its own."""

    POLLED = auto()
    """Asked again every second, so that it may be refused first."""

    SHORT = auto()
    LONG = auto()
    """Reads, makes or plays a file as a whole."""


class DiskUse(Enum):
    """What a request does to the size of a visitor's workspace."""

    NONE = auto()
    EDIT = auto()
    """Writes a little, and may use the spare room that is kept for edits."""

    FILL = auto()
    """Brings files in: refused where the workspace is full, which is measured again afterwards."""

    FREE = auto()
    """Removes files: the workspace is measured again afterwards."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RoutePolicy:
    """What the middleware needs to know about a route; what isn't declared is the strictest.

    An instance is the decorator that declares it on an endpoint, below the one of the router.

    Attributes:
        access: Who may call it.
        max_body_bytes: How large a body may be.
        request_class: Its queue in the admission control.
        disk: What it does to the size of the workspace.
        is_upload: It counts as one of the uploads that a visitor has in an hour.
        is_page: It is the page itself, to which links on other sites may lead.
        starts_session: Who has no cookie gets a session; elsewhere all of them share one.
        opens_workspace: It works with the workspace, which is opened before, off the event loop.
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
        """Declare it on an endpoint, or on the application of a mount."""
        setattr(endpoint, _DECLARED, self)
        return endpoint


_DECLARED = "route_policy"

page_policy = partial(RoutePolicy, starts_session=True, opens_workspace=True)
"""Of a route under `/studio`, which the page calls."""

upload_policy = partial(
    page_policy,
    Access.GUEST,
    max_body_bytes=UPLOAD_BYTES,
    request_class=RequestClass.LONG,
    disk=DiskUse.FILL,
    is_upload=True,
)
"""Of a route under `/studio` whose body is a file."""

speech_policy = partial(
    RoutePolicy, Access.GUEST, request_class=RequestClass.UNCOUNTED, opens_workspace=True
)
"""Of a route under `/v1`, which programs call."""

UNDECLARED = RoutePolicy()
"""Of a route of the studio that declares nothing."""

ENTER = "/studio/enter"
"""Where the owner comes in; `VisitorMiddleware` answers."""

_OWN = ("/studio/", "/v1/", "/healthz", "/metrics")
"""Where the studio's own routes are; all others are Gradio's, and in the table below."""

_READ = frozenset({"GET", "HEAD"})
_WRITE = frozenset({"POST"})
_PUBLIC = RoutePolicy(Access.ANYBODY)
_GUEST = RoutePolicy(Access.GUEST)
_GRADIO = RoutePolicy(Access.GUEST, GRADIO_BYTES)
_GRADIO_STREAM = RoutePolicy(Access.GUEST, GRADIO_BYTES, RequestClass.UNCOUNTED)

_FOREIGN_ROUTES: tuple[tuple[frozenset[str], str, RoutePolicy], ...] = (
    (_READ, r"/", RoutePolicy(Access.GUEST, is_page=True, starts_session=True)),
    (_READ, ENTER, RoutePolicy(Access.ANYBODY, is_page=True)),
    (_READ, r"/(assets|static|svelte)/.+|/theme\.css|/favicon\.ico", _PUBLIC),
    (_READ, r"/(config/?|manifest\.json|robots\.txt|pwa_icon(/\d+)?|logout)", _GUEST),
    (_READ, r"/gradio_api/(startup-events|(info|user|login_check|app_id)/?|theme\.css)", _GRADIO),
    (_READ, r"/gradio_api/(heartbeat/[^/]+|queue/data)", _GRADIO_STREAM),
    (_WRITE, r"/gradio_api/(queue/join|reset/?)", _GRADIO),
    (_WRITE, r"/login/?", RoutePolicy(Access.GUEST, LOGIN_BYTES)),
)
"""The allow-list of what the studio doesn't route itself: Gradio's, and the owner's way in.

Gradio brings more: `run`, `call`, `proxy`, `upload`, `file`, `process_recording`, deep links,
monitoring, documents. They stay closed.
"""

_MAX_SEGMENT_BYTES = 255
"""No file's name is longer, and looking for one that is fails."""


@dataclass(frozen=True, slots=True)
class DeclaredRoute:
    """A route of the studio with its policy.

    Attributes:
        path: From the root, with the names of its parts in braces.
        methods: None where it answers all.
        policy: None where none is declared.
    """

    path: str
    methods: frozenset[str] | None
    policy: RoutePolicy | None


_Own = tuple[re.Pattern[str], frozenset[str] | None, RoutePolicy]


def _area(path: str) -> tuple[str, ...]:
    """The first two parts of a path, which no route of the studio leaves open."""
    return tuple(path.split("/", 3)[1:3])


class RoutePolicies:
    """Finds the policy of a request; built once, when all routes are there."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        """Read the policies off an application's routes."""
        self.routes = tuple(_declared(routes))
        self._own: dict[tuple[str, ...], list[_Own]] = {}
        for one in self.routes:
            own = (compile_path(one.path)[0], one.methods, one.policy or UNDECLARED)
            self._own.setdefault(_area(one.path), []).append(own)
        self._foreign = [
            (methods, re.compile(pattern), policy) for methods, pattern, policy in _FOREIGN_ROUTES
        ]

    def find(self, method: str, path: str) -> RoutePolicy | None:
        """The policy of a request; None where nothing answers.

        Args:
            method: As in the request; one that a route doesn't have gets that route's policy.
            path: Decoded, from the root.
        """
        if any(len(part.encode(errors="replace")) > _MAX_SEGMENT_BYTES for part in path.split("/")):
            return None
        if not path.startswith(_OWN) or path == ENTER:
            return next(
                (
                    policy
                    for methods, pattern, policy in self._foreign
                    if method in methods and pattern.fullmatch(path)
                ),
                None,
            )
        found = self._find_own(method, path)
        if found is None:  # the router redirects between the two ways of writing it
            found = self._find_own(method, path[:-1] if path.endswith("/") else f"{path}/")
        return found

    def _find_own(self, method: str, path: str) -> RoutePolicy | None:
        """As Starlette's router chooses: the first that fits, else the first by its path alone."""
        by_path = None
        for pattern, methods, policy in self._own.get(_area(path), ()):
            if pattern.match(path):
                if methods is None or method in methods:
                    return policy
                by_path = by_path or policy
        return by_path


def policy_of(scope: Scope) -> RoutePolicy:
    """The policy that `SecurityMiddleware` found for a request."""
    policy = scope.get(_DECLARED, UNDECLARED)
    assert isinstance(policy, RoutePolicy)
    return policy


def keep_policy(scope: Scope, policy: RoutePolicy) -> None:
    """Let the layers behind see a request's policy."""
    scope[_DECLARED] = policy


def _declared(routes: Iterable[BaseRoute], prefix: str = "") -> Iterator[DeclaredRoute]:
    """The studio's own routes, those of mounted applications too."""
    for route in iter_route_contexts(list(routes)):
        path = f"{prefix}{route.path}"
        if isinstance(route.route, Mount):
            if route.route.routes:
                yield from _declared(route.route.routes, path)
            elif path.startswith(_OWN):
                yield DeclaredRoute(f"{path}/{{path:path}}", None, _read(route.route.app))
        elif path.startswith(_OWN):
            methods = None if route.methods is None else frozenset(route.methods)
            yield DeclaredRoute(path, methods, _read(route.endpoint))


def _read(endpoint: Callable[..., Any] | None) -> RoutePolicy | None:
    policy = getattr(endpoint, _DECLARED, None)
    assert policy is None or isinstance(policy, RoutePolicy)
    return policy
