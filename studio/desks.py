"""Visitors of a shared studio: each has a workspace of its own on the one engine."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from studio.allowance import Allowance, VisitLimits, VisitorsEngine
from studio.errors import EngineBusy
from studio.service import Studio

_KEPT_S = 30 * 24 * 3600.0
_IDLE_S = 3600.0
_PASSING_S = 60.0


class Visitor:
    """Somebody at a desk.

    Attributes:
        allowance: None for the owner, who may have everything.
        seen_s: When last anything was asked, on the desks' clock.
        came_back: Whether the token was ever shown again.
    """

    def __init__(
        self, workspace: Path, open_studio: Callable[[], Studio], allowance: Allowance | None
    ) -> None:
        """Seat somebody; the workspace is made when it is first needed."""
        self.workspace = workspace
        self.allowance = allowance
        self.seen_s = 0.0
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
    def studio(self) -> Studio:
        """The workspace this one sees.

        Raises:
            StorageFailed: It can't be made.
        """
        with self._lock:
            if self._studio is None:
                self._studio = self._open_studio()
            return self._studio

    def close(self) -> None:
        """Close what is open of the workspace; it is opened anew when the visitor comes back."""
        with self._lock:
            studio, self._studio = self._studio, None
        if studio is not None:
            studio.projects.close()


class Desks:
    """Finds the desk that a token belongs to. Safe from many threads.

    The token is what the browser keeps; folders are named by its digest, so that who reads their
    names learns no token.
    """

    def __init__(
        self,
        studio: Studio,
        limits: VisitLimits | None = None,
        *,
        prepare: Callable[[Studio], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set up around the owner's studio.

        Args:
            studio: The owner's; visitors' workspaces lie in `visitors` of its workspace.
            limits: What one visitor may have.
            prepare: Called for each new workspace.
            clock: Monotonic seconds.
        """
        self.owner = Visitor(studio.options.workspace, lambda: studio, None)
        self.owner_token = secrets.token_urlsafe(24)
        self._limits = limits or VisitLimits()
        self._prepare = prepare
        self._clock = clock
        self._root = studio.options.workspace / "visitors"
        # Guards the table.
        self._lock = threading.Lock()
        self._visitors: dict[str, Visitor] = {}
        _remove_forgotten(self._root)

    def find(self, token: str | None) -> Visitor | None:
        """The desk of a token; None for a token that nobody was given."""
        if not token:
            return None
        if secrets.compare_digest(token.encode(), self.owner_token.encode()):
            return self.owner
        name = _folder_name(token)
        with self._lock:
            visitor = self._visitors.get(name)
            if visitor is None and (self._root / name).is_dir():
                visitor = self._open(name)
            if visitor is not None:
                visitor.seen_s = self._clock()
                visitor.came_back = True
            return visitor

    def welcome(self) -> tuple[str, Visitor]:
        """A new desk, and the token that leads to it.

        Raises:
            EngineBusy: There are too many visitors already.
        """
        token = secrets.token_urlsafe(24)
        with self._lock:
            gone = self._make_room()
            visitor = self._open(_folder_name(token))
            visitor.seen_s = self._clock()
        for one in gone:
            one.close()
        return token, visitor

    def close(self) -> None:
        """Close all visitors' workspaces; before the engine."""
        with self._lock:
            visitors = list(self._visitors.values())
            self._visitors.clear()
        for visitor in visitors:
            visitor.close()

    def _open(self, name: str) -> Visitor:
        allowance = Allowance(self._limits, clock=self._clock)
        workspace = self._root / name
        visitor = Visitor(workspace, lambda: self._studio(workspace, allowance), allowance)
        self._visitors[name] = visitor
        return visitor

    def _studio(self, workspace: Path, allowance: Allowance) -> Studio:
        shared = self.owner.studio
        options = replace(shared.options, workspace=workspace, backend_name=shared.backend_name)
        studio = Studio(options, VisitorsEngine(shared.engine, allowance))
        self._prepare(studio)
        return studio

    def _make_room(self) -> list[Visitor]:
        """Forget who has not been seen for long; their folders stay and are found again."""
        if len(self._visitors) < self._limits.visitors:
            return []
        now_s = self._clock()
        gone = [
            name
            for name, visitor in self._visitors.items()
            if now_s - visitor.seen_s > (_IDLE_S if visitor.came_back else _PASSING_S)
        ]
        if not gone:
            raise EngineBusy(
                "Too many people are here already; try again in a few minutes.", retry_after_s=300
            )
        return [self._visitors.pop(name) for name in gone]


def _folder_name(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def _remove_forgotten(root: Path) -> None:
    """Remove workspaces that nobody has changed for a month."""
    if not root.is_dir():
        return
    oldest_s = time.time() - _KEPT_S
    for folder in root.iterdir():
        if folder.is_dir() and folder.stat().st_mtime < oldest_s:
            shutil.rmtree(folder)
