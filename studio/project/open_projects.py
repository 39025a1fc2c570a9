"""The projects in memory: each opened once, kept twice a second, closed when nobody uses it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from studio.project.session import Session

OPEN_AT_MOST = 16
"""Projects in memory that nobody looks at and nothing is made of."""

LATELY_S = 30.0
"""A project that was asked for since then stays open: a request may be at work with it."""

_TIDY_EVERY_S = 0.5
_SWEEP_EVERY_S = 3600.0


class OpenProjects:
    """A table by id; methods may be called from any thread but the engine's own."""

    def __init__(self, start: Callable[[Path], Session], sweep: Callable[[], object]) -> None:
        """Nothing is open, and nothing runs, before the first project.

        Args:
            start: Makes a session of a project's folder.
            sweep: Called once an hour from the first project on, by the thread that keeps them.
        """
        self._start = start
        self._sweep = sweep
        # Guards the table; a project is opened once, whoever asks.
        self.lock = threading.RLock()
        self._sessions: dict[str, Session] = {}
        self._used_s: dict[str, float] = {}
        self._ended = threading.Event()
        self._keeper: threading.Thread | None = None

    def get(self, project_id: str) -> Session | None:
        """The project, when it is open; that it was asked for changes nothing."""
        return self._sessions.get(project_id)

    def used(self, project_id: str) -> Session | None:
        """The project, when it is open, and without waiting for anything; it stays open a while."""
        if project_id in self._sessions:
            self._used_s[project_id] = time.monotonic()  # first, so that it stays open
        return self._sessions.get(project_id)

    def open(self, project_id: str, place: Callable[[], Path]) -> Session:
        """The project, opened when it isn't yet.

        Args:
            project_id: Which.
            place: Finds its folder; may raise where there is none.

        Raises:
            Conflict: Another studio has it open.
            StorageFailed: It can't be read.
        """
        with self.lock:
            session = self._sessions.get(project_id)
            if session is None:
                session = self._sessions[project_id] = self._start(place())
                session.resume()
                self._keep_from_now_on()
            self._used_s[project_id] = time.monotonic()
            return session

    def put_away(self, project_id: str) -> None:
        """Stop what is made of a project and close it, when it is open."""
        with self.lock:
            session = self._sessions.get(project_id)
            if session is not None:
                session.cancel()
                session.close()
                self._forget(project_id)

    def close(self) -> None:
        """Keep and close all."""
        self._ended.set()
        if self._keeper is not None:
            self._keeper.join()
        with self.lock:
            for session in self._sessions.values():
                session.close()
            self._sessions.clear()

    def _forget(self, project_id: str) -> None:
        self._sessions.pop(project_id, None)
        self._used_s.pop(project_id, None)

    def _keep_from_now_on(self) -> None:
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep, name="projects", daemon=True)
            self._keeper.start()

    def _keep(self) -> None:
        swept_s = -_SWEEP_EVERY_S
        while not self._ended.wait(_TIDY_EVERY_S):
            if time.monotonic() - swept_s >= _SWEEP_EVERY_S:
                swept_s = time.monotonic()
                self._sweep()
            with self.lock:
                sessions = list(self._sessions.values())
            for session in sessions:
                session.tidy()
            self._close_idle()

    def _close_idle(self) -> None:
        with self.lock:
            used_s = self._used_s
            longest = sorted(self._sessions.items(), key=lambda one: used_s.get(one[0], 0.0))
        idle = [one for one in longest if self._is_idle(*one)]
        for project_id, session in idle[: max(0, len(idle) - OPEN_AT_MOST)]:
            # Written before the lock is taken, so that nobody who opens a project waits for that.
            session.tidy(now=True)
            with self.lock:
                if self._sessions.get(project_id) is session and self._is_idle(project_id, session):
                    session.close()
                    self._forget(project_id)

    def _is_idle(self, project_id: str, session: Session) -> bool:
        unused_s = time.monotonic() - self._used_s.get(project_id, 0.0)
        return unused_s >= LATELY_S and not session.in_use
