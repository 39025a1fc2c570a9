"""What a reading may spend, and what ends it: time, and that nobody waits for it.

A thread can't be stopped from outside, so that a reader has to ask. It does whenever it spends.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum

from studio.dialog.model import MAX_LINES
from studio.errors import Cancelled, ScriptError
from studio.storage.json_bounds import MAX_VALUES

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


MAX_TEXT_LINES = 6 * MAX_LINES  # a cue of subtitles has four or five
_MOST_CELLS = 500_000
_LINES = f"A dialog has at most {MAX_LINES:,} lines. Divide it into parts."
_ROWS = (
    f"This holds more than {MAX_TEXT_LINES:,} lines of text; a dialog has at most {MAX_LINES:,}. "
    "Divide it into parts."
)
_FILLED = (
    f"This holds more than {3 * MAX_LINES:,} lines of text; a dialog has at most {MAX_LINES:,}. "
    "Divide it into parts."
)
_CELLS = f"This holds more than {_MOST_CELLS:,} cells. Divide it into parts."
_TAGS = (
    "The page's source holds {} tags, which are more than can be read at once. Divide it into "
    "parts, or copy the text that the page shows."
)


_MARKS = (
    "This holds {} marks of Markdown, such as stars and links, which are more than can be read at "
    "once. Divide it into parts."
)
_BLOCKS = (
    f"This Markdown holds more than {MAX_LINES:,} headings, quotes, items and paragraphs. "
    "Divide it into parts."
)
_VALUES = f"This holds more than {MAX_VALUES:,} values. Divide it into parts."


class Cost(Enum):
    """What is spent: the most of it that is read in about a second, and what says so."""

    LINES = (MAX_LINES, _LINES)
    """Of the dialog, with those that nobody says."""
    ROWS = (MAX_TEXT_LINES, _ROWS)
    """Of text that a source shows."""
    FILLED_ROWS = (3 * MAX_LINES, _FILLED)
    """Of a script or a screenplay: three for each line of the longest dialog."""
    CELLS = (_MOST_CELLS, _CELLS)
    TAGS = (1_000_000, _TAGS)
    READ_TAGS = (100_000, _TAGS)
    """Of those that aren't cut: a page may have five a line."""
    MARKS = (200_000, _MARKS)
    """Of emphasis that isn't nested: a script of 20,000 lines may have five signs of it in each."""
    NESTED_MARKS = (60_000, _MARKS)
    PARAGRAPHS = (2 * MAX_LINES, _BLOCKS)
    BLOCK_SIGNS = (60_000, _BLOCKS)
    BLOCKS = (MAX_LINES, _BLOCKS)
    VALUES = (MAX_VALUES, _VALUES)
    """Of JSON, names included."""


class Budget:
    """What one text may cost; what it holds, such as a page in an answer, has one a level deeper.

    Attributes:
        depth: In how many texts it is.
    """

    _DEEPEST = 3

    def __init__(self, depth: int = 0) -> None:
        self.depth = depth
        self._spent = Counter[Cost]()

    def spend(self, cost: Cost, amount: int = 1) -> None:
        """Spend some of it, before the work is done that it costs.

        Raises:
            ScriptError: There is too much; the message says how to go on.
            TimeoutError: The reading takes too long.
            Cancelled: Nobody waits for it.
        """
        check_reading()
        self._spent[cost] += amount
        most, message = cost.value
        if self._spent[cost] > most:
            raise ScriptError(message.format(f"{self._spent[cost]:,}"))

    def deeper(self) -> Budget:
        """That of a text inside of this one."""
        return Budget(self.depth + 1)

    @property
    def may_hold(self) -> bool:
        """Whether a text of this depth may hold another one."""
        return self.depth < self._DEEPEST
