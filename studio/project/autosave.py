"""Autosave: a project reaches the disk within a second of every change, and when it is closed."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from studio.errors import StorageFailed
from studio.project.event_log import StorageEvent
from studio.project.folder import ProjectSnapshot
from studio.project.project_state import ProjectState

SNAPSHOT_INTERVAL_S = 5.0
"""How old a snapshot may get; what is newer is in the journal."""


class EditIdSource(Protocol):
    """Knows which edits took effect."""

    @property
    def edit_ids(self) -> tuple[str, ...]:
        """Their ids, the latest last."""
        ...


@dataclass(frozen=True, slots=True)
class FlushTask:
    """What is to be brought to the disk, as it was at one moment.

    Attributes:
        turn: Chores are done in this order; one that comes late is left out.
        wanted: What a render still had to make.
        snapshot: None when the one on the disk is young enough.
    """

    turn: int
    wanted: Mapping[str, int | None]
    snapshot: ProjectSnapshot | None = None


class Autosave:
    """Chores are made under the session's lock and done without it.

    Attributes:
        message: Why the project can't be kept; None while it can.
    """

    def __init__(self, core: ProjectState, seen: EditIdSource) -> None:
        """Everything is on the disk: it was read from there."""
        self._core = core
        self._seen = seen
        # Guards what is below, and the files. Taken after the session's lock, never before it.
        self._writing = threading.Lock()
        self._turns = 0
        self._done_turn = 0
        self._marks = core.history.marks
        self._kept_s = time.monotonic()
        self._pending: Mapping[str, int | None] | None = core.folder.read_pending()
        self._closed = False
        self.message: str | None = None

    @property
    def pending(self) -> Mapping[str, int | None]:
        """What the disk says is still to be made."""
        return self._pending or {}

    def chore(self, *, now: bool) -> FlushTask:
        """What there is to be done; with a snapshot when it is time for one, or `now`."""
        self._turns += 1
        wanted = dict(self._core.wanted)
        history = self._core.history
        is_time = now or time.monotonic() - self._kept_s > SNAPSHOT_INTERVAL_S
        if not is_time or history.marks == self._marks:
            return FlushTask(self._turns, wanted)
        size_bytes = self._core.journal.size_bytes
        audio_s = self._core.lines.audio_s(history.document)
        seen = self._seen.edit_ids
        snapshot = ProjectSnapshot(history.document, history.marks, size_bytes, seen, audio_s)
        return FlushTask(self._turns, wanted, snapshot)

    def do(self, chore: FlushTask) -> None:
        """Bring a chore to the disk; a failure is told to everybody, and tried again later."""
        with self._writing:
            if self._closed or chore.turn < self._done_turn:
                return
            try:
                self._core.journal.sync()
                self._write_pending(chore.turn, chore.wanted)
                if chore.snapshot is not None:
                    self._core.folder.keep(chore.snapshot)
                    self._marks, self._kept_s = chore.snapshot.marks, time.monotonic()
            except StorageFailed as error:
                self.say(str(error))
            else:
                self.say(None)

    def sync(self) -> None:
        """See that every edit is on the disk itself; under the session's lock.

        Raises:
            StorageFailed: The disk can't take them.
        """
        with self._writing:
            self._core.journal.sync()

    def keep_pending(self, wanted: Mapping[str, int | None]) -> None:
        """Keep at once what a render still has to make; under the session's lock.

        Raises:
            StorageFailed: It can't be written.
        """
        self._turns += 1
        with self._writing:
            self._write_pending(self._turns, dict(wanted))

    def say(self, message: str | None) -> None:
        """Tell everybody that the project can't be kept, or can again."""
        if message != self.message:
            self.message = message
            self._core.news.post(StorageEvent())

    def close(self) -> None:
        """Write nothing more, and close the journal."""
        with self._writing:
            self._closed = True
            self._core.journal.close()

    def _write_pending(self, turn: int, wanted: Mapping[str, int | None]) -> None:
        self._done_turn = turn
        if wanted == self._pending:
            return
        self._pending = None  # unknown, should the next line fail
        self._core.folder.write_pending(wanted)
        self._pending = wanted
