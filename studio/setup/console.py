"""What the launcher says, all of it on standard error: standard output belongs to the command."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from studio.setup.progress import Progress

_EVERY_S = 5.0


class Console:
    """Prints progress: every new message, and details a few times a minute."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        """Print to `stream`; `clock` counts seconds."""
        self._stream = stream
        self._clock = clock
        self._lock = threading.Lock()  # guards the fields below and keeps lines whole
        self._message = ""
        self._last = ""
        self._said_s = 0.0
        self._took: dict[str, float] = {}

    def say(self, text: str) -> None:
        """Print a line."""
        with self._lock:
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def show(self, progress: Progress) -> None:
        """Print a step, unless it says little new."""
        now_s = self._clock()
        if progress.message == self._message and now_s - self._said_s < _EVERY_S:
            return
        self._message, self._said_s = progress.message, now_s
        share = f" {progress.fraction:.0%}" if progress.fraction is not None else ""
        detail = f" ({progress.detail})" if progress.detail else ""
        text = f"{progress.message}{share}{detail}"
        if text != self._last:
            self._last = text
            self.say(text)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the seconds of a stage for `summary`."""
        began_s = self._clock()
        try:
            yield
        finally:
            self._took[name] = self._took.get(name, 0.0) + self._clock() - began_s

    def summary(self) -> None:
        """Print the seconds every stage took, if any did."""
        if self._took:
            stages = ", ".join(f"{name} {took_s:.1f} s" for name, took_s in self._took.items())
            self.say(f"Set up: {stages}.")
