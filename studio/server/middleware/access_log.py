"""What requests bring into the log: a line for each, and bounds for faults that they cause.

A line stands under the id that the response carries, and holds nothing that was sent but an id: the
route's template stands for the path. An error's traceback has a hundred lines.
"""

from __future__ import annotations

import logging
import math
import re
import secrets
import time
import traceback
from collections import Counter
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.server.middleware.admission import on_start
from studio.server.policies import RoutePolicies

log = logging.getLogger(__name__)

REQUEST_ID, JOB_ID = "X-Request-Id", "X-Job-Id"
_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_MINUTE_S = 60.0
_MOST = {False: 600, True: 120}
"""Lines a minute, of requests that were answered and of refused ones: 130 MB a day at most."""


class AccessLog:
    """Logs requests at their ends; to be used on the server's event loop only."""

    def __init__(
        self, policies: RoutePolicies, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._policies = policies
        self._clock = clock
        self._since_s = clock()
        self._seen: Counter[bool] = Counter()
        self._kinds: set[tuple[str, str, int]] = set()

    async def follow(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; its response gets the id that a proxy gave it, or a new one."""
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
        begun_s, status, job_id = self._clock(), 0, None

        def note(start: Message) -> None:
            nonlocal status, job_id
            headers = MutableHeaders(scope=start)
            headers[REQUEST_ID] = request_id
            status, job_id = start["status"], headers.get(JOB_ID)

        try:
            await app(scope, receive, on_start(send, note))
        finally:
            if status >= 400 or log.isEnabledFor(logging.INFO):
                self._write(scope, status, request_id, job_id, self._clock() - begun_s)

    def _is_due(self, kind: tuple[str, str, int]) -> bool:
        now_s, is_refused = self._clock(), kind[2] >= 400
        if now_s - self._since_s >= _MINUTE_S:
            left_out = self._seen - Counter(_MOST)
            self._since_s, self._seen, self._kinds = now_s, Counter(), set()
            if left_out:
                log.info("%d more requests weren't logged", left_out.total())
        if kind in self._kinds and not log.isEnabledFor(logging.INFO):
            return False  # who has the studio alone is told of each kind once a minute
        self._kinds.add(kind)
        self._seen[is_refused] += 1
        return self._seen[is_refused] <= _MOST[is_refused]

    def _write(
        self, scope: Scope, status: int, request_id: str, job_id: str | None, took_s: float
    ) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "?"
        route = self._policies.template_of(method, scope["path"])
        # Browsers ask for addresses that no studio has, such as a site's picture.
        is_warning = status >= 400 and (status, route) != (404, "unknown")
        level = logging.WARNING if is_warning else logging.INFO
        if not (log.isEnabledFor(level) and self._is_due((method, route, status))):
            return
        fields = {"method": method, "route": route, "status": status, "ms": round(took_s * 1e3, 1)}
        fields |= {"request_id": request_id} | ({"job_id": job_id} if job_id else {})
        text = f"{method} {route} {status} {fields['ms']} ms, request {request_id}"
        log.log(level, "%s%s", text, f", job {job_id}" if job_id else "", extra={"fields": fields})


_OWN = "studio."
_MOST_CHARS = 1_000
"""Of a foreign warning."""


class LogLimit(logging.Filter):
    """Logs each warning and each fault of the server's packages once a minute.

    Malformed requests cause them, as many as somebody likes. What the studio itself has to say is
    never left out.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._logged_s: dict[object, float] = {}

    def is_due(self, what: object) -> bool:
        """Whether to log something; true once a minute."""
        now_s = self._clock()
        is_due = now_s - self._logged_s.get(what, -math.inf) >= _MINUTE_S
        if is_due:
            self._logged_s[what] = now_s
        return is_due

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a record; those of one line of code are the same, whatever they say."""
        if record.levelno < logging.WARNING or record.name.startswith(_OWN):
            return True
        said = record.getMessage()
        if len(said) > _MOST_CHARS:  # it may hold what was sent
            record.msg, record.args = f"{said[:_MOST_CHARS]} …", None
        error = record.exc_info[1] if record.exc_info else None
        return self.is_due((record.pathname, record.lineno, error and _find_origin(error)))


def _find_origin(error: BaseException) -> tuple[object, ...]:
    """The kind of the first error of a chain, and where it was raised."""
    while error.__cause__ is not None:
        error = error.__cause__
    places = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return type(error), *places[-1:]


def limit_logs() -> None:
    """Set a limit for what is logged from now on, by uvicorn too, whose handler is its own.

    It logs in the studio's format.
    """
    limit, formats = LogLimit(), [one.formatter for one in logging.getLogger().handlers]
    for name in (None, "uvicorn"):
        for handler in logging.getLogger(name).handlers:
            handler.addFilter(limit)
            handler.setFormatter(next(iter(formats), handler.formatter))
