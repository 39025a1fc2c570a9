"""What ends the reading of a text, whatever stands in it: time, and that nobody waits for it.

A thread can't be stopped from outside, so that a reader has to ask.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from studio.errors import Cancelled, ScriptError

_MOST_S = 20.0
"""Of processor time; the longest text that is no attack takes a tenth of it."""
PATTERN_S = 10.0 + 2 * (os.cpu_count() or 1)
"""For one search of a whole text, by the clock of `regex`, which counts the time of all threads. To
look at it takes longer than a pattern on a row."""

_TOO_SLOW = (
    "This text takes too long to read. Divide it into parts, or paste what it shows without its "
    "tags and markup."
)
_LOOK_EVERY_S = 0.1

is_awaited: ContextVar[Callable[[], bool]] = ContextVar("is_awaited", default=lambda: True)
"""Tells whether somebody waits for what is read now; a server sets it for each request."""
_clocks_s: ContextVar[list[float]] = ContextVar("clocks_s")
"""The thread's time at which a reading has to end, and when that was looked at."""


@contextmanager
def limited_reading() -> Iterator[None]:
    """Bound the time of what is read in the block, where `check_reading` may end it."""
    token = _clocks_s.set([time.thread_time() + _MOST_S, 0.0])
    try:
        yield
    except TimeoutError:
        raise ScriptError(_TOO_SLOW) from None
    finally:
        _clocks_s.reset(token)


def check_reading() -> None:
    """Ask whether to go on reading; once a line at most.

    Raises:
        TimeoutError: It takes too long; `limited_reading` says so.
        Cancelled: Nobody waits for it.
    """
    clocks_s, now_s = _clocks_s.get(None), time.monotonic()
    if clocks_s is None or now_s < clocks_s[1] + _LOOK_EVERY_S:
        return
    clocks_s[1] = now_s
    if time.thread_time() > clocks_s[0]:
        raise TimeoutError  # which no reader takes for a text of another kind
    if not is_awaited.get()():
        raise Cancelled("Nobody waits for this text any more.")
