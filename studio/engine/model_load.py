"""One load of a model: its progress, and the wish to stop it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from studio.backends.base import Backend, LoadProgress
from studio.engine.memory import Memory, MemoryChange
from studio.errors import Cancelled

log = logging.getLogger(__name__)

TELL_EVERY_S = 1.0

Listener = Callable[[LoadProgress], None]


class ModelLoad:
    """Runs `backend.load` in a thread; belongs to the event loop it was made on.

    Attributes:
        latest: The latest progress; None before the first.
        waiting: Callers that wait for this load.
        stopped: Done when the load was asked to stop; those who wait needn't any longer.
    """

    def __init__(
        self, backend: Backend, listeners: list[Listener], clock: Callable[[], float]
    ) -> None:
        """Get ready; `listeners` are told the progress at most once a second, in the thread."""
        self.latest: LoadProgress | None = None
        self.waiting = 0
        self.stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._backend = backend
        self._listeners = listeners
        self._stop = threading.Event()
        self._clock = clock
        self._told_s = clock()

    def stop(self) -> None:
        """Ask the load to end at its next progress, and let go who waits for it."""
        self._stop.set()
        if not self.stopped.done():
            self.stopped.set_result(None)

    def run(self, measure: Callable[[], Memory]) -> MemoryChange:
        """Load; runs in a thread.

        Raises:
            ModelUnavailable: It can't be loaded here.
            Cancelled: It was stopped, and is not loaded.
        """
        self._raise_if_stopped()
        before = measure()
        try:
            self._backend.load(self._report)
            self._raise_if_stopped()
        except Cancelled:
            # It may have been stopped at its very last word, with all in memory.
            self._backend.unload()
            raise
        return MemoryChange(before, measure())

    def _report(self, progress: LoadProgress) -> None:
        """Take the backend's word; the only place where a load in a thread can be stopped."""
        self._raise_if_stopped()
        self.latest = progress
        now_s = self._clock()
        if now_s - self._told_s >= TELL_EVERY_S:
            self._told_s = now_s
            log.info("model %s: %s", self._backend.name, progress.message)
            for listener in self._listeners:
                listener(progress)

    def _raise_if_stopped(self) -> None:
        if self._stop.is_set():
            raise Cancelled("The load was stopped; what was downloaded is kept.")
