"""Visitors of a shared studio: each has a workspace of its own on the one engine."""

from __future__ import annotations

import hashlib
import logging
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from studio.allowance import Allowance, VisitLimits
from studio.errors import EngineBusy
from studio.room import Room, sweep_passing
from studio.service import Studio
from studio.visitor import Visitor
from studio.visitors_engine import VisitorsEngine

log = logging.getLogger(__name__)

KEPT_S = 30 * 24 * 3600.0
"""How long a workspace and the token that leads to it are kept without a visit."""

_DAY_S = 24 * 3600.0
_IDLE_S = 3600.0
_PASSING_S = 60.0
_TIDY_EVERY_S = 60.0
_PROGRAMS = "programs"


class Desks:
    """Finds the desk that a token belongs to. Safe from many threads.

    The token is what the browser keeps; folders are named by its digest, so that who reads their
    names learns no token.

    Attributes:
        owner: Who started the studio.
        programs: The one desk of all that call without a token. What they make has ids that
            nobody can guess, and no list shows it.
        newcomers: What all who come for the first time have together until they come back.
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
        workspace = studio.options.workspace
        self.owner = Visitor(studio.room, workspace, lambda: studio, None)
        self.owner_token = secrets.token_urlsafe(24)
        self._limits = limits or VisitLimits()
        self._prepare = prepare
        self._clock = clock
        self._root = workspace / "visitors"
        # Guards the table.
        self._lock = threading.Lock()
        self._visitors: dict[str, Visitor] = {}
        self._swept_s = clock()
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="desks", daemon=True)
        self.programs = self._desk(_PROGRAMS)
        self.newcomers = Allowance(self._limits, clock=clock)
        _remove_forgotten(self._root)

    def start(self) -> None:
        """Begin to put away, once a minute, what nobody uses."""
        self._keeper.start()

    def at_hand(self, token: str | None) -> Visitor | None:
        """The desk of a token if somebody sits there; never waits for the disk."""
        if not token:
            return None
        if secrets.compare_digest(token.encode(), self.owner_token.encode()):
            return self.owner
        with self._lock:
            return self._seen(self._visitors.get(_folder_name(token)))

    def find(self, token: str | None) -> Visitor | None:
        """The desk of a token; None for a token that nobody was given.

        Raises:
            EngineBusy: It is put away, and there are too many visitors already.
        """
        visitor = self.at_hand(token)
        if visitor is not None or not token:
            return visitor
        name = _folder_name(token)
        if not (self._root / name).is_dir():
            return None
        with self._lock:
            gone = [] if name in self._visitors else self._make_room()
            visitor = self._seen(self._visitors.setdefault(name, self._desk(name)))
        self._put_away(gone)
        return visitor

    def welcome(self) -> tuple[str, Visitor]:
        """A new desk, and the token that leads to it.

        Raises:
            EngineBusy: There are too many visitors already.
        """
        token = secrets.token_urlsafe(24)
        name = _folder_name(token)
        with self._lock:
            gone = self._make_room()
            visitor = self._visitors[name] = self._desk(name)
            visitor.seen_s = self._clock()
        self._put_away(gone)
        return token, visitor

    def must_greet(self, visitor: Visitor) -> bool:
        """Whether the browser is to be told anew how long to keep its token: once a day."""
        now_s = self._clock()
        is_due = now_s - visitor.greeted_s >= _DAY_S
        if is_due:
            visitor.greeted_s = now_s
        return is_due

    def tidy(self) -> None:
        """Mark what is in use, close desks that nobody has sat at for an hour, sweep once a day."""
        now_s = self._clock()
        with self._lock:
            gone = [name for name, one in self._visitors.items() if self._is_idle(one, _IDLE_S)]
            closed = [self._visitors.pop(name) for name in gone]
            sitting = [*self._visitors.values(), self.programs]
        for visitor in sitting:
            if visitor.is_open and now_s - visitor.marked_s >= _IDLE_S:
                visitor.marked_s = now_s
                visitor.mark()
        self._put_away(closed)
        if now_s - self._swept_s >= _DAY_S:
            self._swept_s = now_s
            open_now = {visitor.workspace.name for visitor in sitting}
            _remove_forgotten(self._root, but=open_now)

    def close(self) -> None:
        """Close all visitors' workspaces; before the engine."""
        self._ended.set()
        if self._keeper.is_alive():
            self._keeper.join()
        with self._lock:
            visitors = list(self._visitors.values())
            self._visitors.clear()
        self._put_away([*visitors, self.programs])

    def _keep(self) -> None:
        while not self._ended.wait(_TIDY_EVERY_S):
            self.tidy()

    def _desk(self, name: str) -> Visitor:
        allowance = Allowance(self._limits, clock=self._clock)
        workspace = self._root / name
        room = Room(workspace, self._limits.workspace_bytes, clock=self._clock)
        return Visitor(room, workspace, lambda: self._studio(room, workspace, allowance), allowance)

    def _studio(self, room: Room, workspace: Path, allowance: Allowance) -> Studio:
        shared = self.owner.studio
        sweep_passing(workspace)
        options = replace(shared.options, workspace=workspace, backend_name=shared.backend_name)
        studio = _VisitorsStudio(options, VisitorsEngine(shared.engine, allowance), room)
        self._prepare(studio)
        return studio

    def _seen(self, visitor: Visitor | None) -> Visitor | None:
        if visitor is not None:
            visitor.seen_s = self._clock()
            visitor.came_back = True
        return visitor

    def _is_idle(self, visitor: Visitor, idle_s: float) -> bool:
        return self._clock() - visitor.seen_s > idle_s and not visitor.is_at_work

    def _make_room(self) -> list[Visitor]:
        """Forget who has not been seen for long; who once came back is found again."""
        if len(self._visitors) < self._limits.visitors:
            return []
        gone = [
            name
            for name, visitor in self._visitors.items()
            if self._is_idle(visitor, _IDLE_S if visitor.came_back else _PASSING_S)
        ]
        if not gone:
            # Who only looked in has nothing to lose: the next request brings another token.
            gone = [name for name, one in self._visitors.items() if not one.workspace.exists()][:1]
        if not gone:
            raise EngineBusy(
                "Too many people are here already; try again in a few minutes.", retry_after_s=300
            )
        return [self._visitors.pop(name) for name in gone]

    def _put_away(self, visitors: list[Visitor]) -> None:
        """Close desks; of who never came back nothing is kept, since nobody can find it again."""
        for visitor in visitors:
            visitor.close()
            if visitor.came_back or visitor is self.programs:
                sweep_passing(visitor.workspace)
            else:
                _remove(visitor.workspace)


class _VisitorsStudio(Studio):
    """A workspace in which nobody can have anything downloaded."""

    def choose_backend(self, name: str) -> None:
        assert isinstance(self.engine, VisitorsEngine)
        self.engine.check_ready(name)
        super().choose_backend(name)


def _folder_name(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def _remove_forgotten(root: Path, but: set[str] | None = None) -> None:
    """Remove workspaces that nobody has used for a month."""
    if not root.is_dir():
        return
    oldest_s = time.time() - KEPT_S
    for folder in root.iterdir():
        if folder.is_dir() and folder.name not in (but or ()) and _used_s(folder) < oldest_s:
            _remove(folder)


def _used_s(folder: Path) -> float:
    """When a workspace was used last: when it was marked, or a project or speaker changed."""
    files = [folder, *folder.glob("*/*/*.json*")]
    return max(file.lstat().st_mtime for file in files)


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("a visitor's folder can't be removed: %s", error)
