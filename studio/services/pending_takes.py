"""Takes that somebody waits for: cancelled means that there is none, at whatever moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from studio.audio.clip import Clip
from studio.errors import Cancelled
from studio.project.history import Author
from studio.project.line_states import EditEvent
from studio.project.ops import Choose, DeleteTake, Op
from studio.project.session import ProjectSession
from studio.project.takes import Take

_MAX_REMEMBERED = 100
"""Of the latest takes, which can be withdrawn: somebody who cancels does so within seconds."""


@dataclass(slots=True)
class PendingTake:
    """A take that is being made.

    Attributes:
        stopped: Set once nobody wants it any more.
        lock: Held while it is added and while it is withdrawn: either sees what the other did.
        way_back: Edits that leave the line as it was before; none until it is added.
    """

    stopped: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    way_back: Sequence[Op] = ()

    def check_wanted(self) -> None:
        """Check that somebody still wants it.

        Raises:
            Cancelled: Nobody does.
        """
        if self.stopped.is_set():
            raise Cancelled("It was stopped.")

    @contextmanager
    def unless_cancelled(self) -> Iterator[None]:
        """Stop it when the task is cancelled in which the block waits for it."""
        try:
            yield
        except asyncio.CancelledError:
            self.stopped.set()
            raise

    def add(self, session: ProjectSession, take: Take, clip: Clip, author: Author) -> EditEvent:
        """Add it to its line as `ProjectSession.add_take`, unless it is withdrawn."""
        with self.lock:
            self.check_wanted()
            line = session.document.lines.get(take.line_id)
            news = session.add_take(take, clip, author, check=self.check_wanted)
            self.way_back = (
                Choose(op="choose", line_id=take.line_id, take_id=line.chosen if line else None),
                DeleteTake(op="delete_take", take_id=take.take_id),
            )
            if self.stopped.is_set():
                self._take_back(session, author)
                self.check_wanted()
        return news

    def withdraw(self, session: ProjectSession, author: Author) -> None:
        """Stop it, and take back what became of it."""
        self.stopped.set()
        with self.lock:
            self._take_back(session, author)

    def _take_back(self, session: ProjectSession, author: Author) -> None:
        if self.way_back:
            # Without the edit's id, which has taken effect; of its group, so both are one step.
            session.edit(self.way_back, replace(author, edit_id=None), session.rev)
            self.way_back = ()


class PendingTakes:
    """The takes that are being made, and those that just were; from any thread."""

    def __init__(self) -> None:
        # Guards the latest ones, by the ids of the edits that choose them.
        self._lock = threading.Lock()
        self._latest: dict[str, PendingTake] = {}

    def find(self, author: Author) -> PendingTake:
        """The take of an edit, also if it was withdrawn before it came.

        Args:
            author: With an `edit_id` if it can be withdrawn.
        """
        if author.edit_id is None:
            return PendingTake()
        with self._lock:
            found = self._latest.setdefault(author.edit_id, PendingTake())
            if len(self._latest) > _MAX_REMEMBERED:
                del self._latest[next(iter(self._latest))]
        return found

    def withdraw(self, session: ProjectSession, author: Author) -> None:
        """Stop a take's work: none comes of it, and one that was added is taken back.

        Args:
            session: Its project.
            author: As in `find`; with the `group` of its edit both are one step of undo.
        """
        self.find(author).withdraw(session, author)
