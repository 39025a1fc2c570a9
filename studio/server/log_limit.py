"""Bounds what requests can bring into the log, where an error's traceback has a hundred lines."""

from __future__ import annotations

import logging
import math
import time
import traceback
from collections.abc import Callable

_EVERY_S = 60.0
_OWN = "studio."


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
        is_due = now_s - self._logged_s.get(what, -math.inf) >= _EVERY_S
        if is_due:
            self._logged_s[what] = now_s
        return is_due

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a record; those of one line of code are the same, whatever they say."""
        if record.levelno < logging.WARNING or record.name.startswith(_OWN):
            return True
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
