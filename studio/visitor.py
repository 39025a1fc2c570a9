"""Somebody who uses a shared studio, with a workspace of their own."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from studio.allowance import Allowance
from studio.room import Room
from studio.service import Studio
from studio.visitors_engine import VisitorsEngine


class Visitor:
    """Somebody at a desk.

    Attributes:
        allowance: None for the owner, who may have everything.
        room: How much of the disk the workspace may take.
        seen_s: When last anything was asked, on the desks' clock.
        greeted_s: When the browser was last told how long to keep its token.
        marked_s: When the workspace was last marked as in use.
        came_back: Whether the token was ever shown again.
    """

    def __init__(
        self,
        room: Room,
        workspace: Path,
        open_studio: Callable[[], Studio],
        allowance: Allowance | None,
    ) -> None:
        """Seat somebody; the workspace is made when it is first needed."""
        self.workspace = workspace
        self.allowance = allowance
        self.room = room
        self.seen_s = 0.0
        self.greeted_s = -math.inf
        self.marked_s = -math.inf
        self.came_back = False
        self._open_studio = open_studio
        # Lets one thread at a time open the workspace.
        self._lock = threading.Lock()
        self._studio: Studio | None = None

    @property
    def is_owner(self) -> bool:
        """Whether it is who started the studio."""
        return self.allowance is None

    @property
    def is_open(self) -> bool:
        """Whether the workspace can be had without waiting for the disk."""
        return self._studio is not None

    @property
    def is_at_work(self) -> bool:
        """Whether something is being spoken for them."""
        studio = self._studio
        engine = studio.engine if studio is not None else None
        return isinstance(engine, VisitorsEngine) and engine.is_at_work

    @property
    def studio(self) -> Studio:
        """The workspace this one sees.

        Raises:
            StorageFailed: It can't be made.
        """
        with self._lock:
            if self._studio is None:
                self._studio = self._open_studio()
                self.mark()
            return self._studio

    def mark(self) -> None:
        """Leave a trace in the workspace that it is in use; one that isn't is removed one day."""
        with suppress(OSError):  # not made yet, or a disk that takes no times
            os.utime(self.workspace)

    def close(self) -> None:
        """Close what is open of the workspace; it is opened anew when the visitor comes back."""
        with self._lock:
            studio, self._studio = self._studio, None
        if studio is not None:
            studio.projects.close()
