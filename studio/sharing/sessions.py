"""Sessions of a shared studio: each visitor has a workspace of their own on the one engine."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from studio.errors import EngineBusy
from studio.services.studio import Studio
from studio.sharing.metered_engine import MeteredEngine
from studio.sharing.quota import RateLimits, VisitLimits
from studio.storage.workspace import DiskQuota, remove_temp_files


class VisitorSession:
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
        room: DiskQuota,
        workspace: Path,
        open_studio: Callable[[], Studio],
        allowance: RateLimits | None,
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
        return isinstance(engine, MeteredEngine) and engine.is_at_work

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


log = logging.getLogger(__name__)

KEPT_S = 30 * 24 * 3600.0
"""How long a workspace and the token that leads to it are kept without a visit."""

_DAY_S = 24 * 3600.0
_IDLE_S = 3600.0
_PASSING_S = 60.0
_TIDY_EVERY_S = 60.0
_PROGRAMS = "programs"


class VisitorSessions:
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
        self.owner = VisitorSession(studio.room, workspace, lambda: studio, None)
        self.owner_token = secrets.token_urlsafe(24)
        self._limits = limits or VisitLimits()
        self._prepare = prepare
        self._clock = clock
        self._root = workspace / "visitors"
        # Guards the table.
        self._lock = threading.Lock()
        self._visitors: dict[str, VisitorSession] = {}
        self._swept_s = clock()
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="desks", daemon=True)
        self.programs = self._desk(_PROGRAMS)
        self.newcomers = RateLimits(self._limits, clock=clock)
        _remove_forgotten(self._root)

    def start(self) -> None:
        """Begin to put away, once a minute, what nobody uses."""
        self._keeper.start()

    def at_hand(self, token: str | None) -> VisitorSession | None:
        """The desk of a token if somebody sits there; never waits for the disk."""
        if not token:
            return None
        if secrets.compare_digest(token.encode(), self.owner_token.encode()):
            return self.owner
        with self._lock:
            return self._seen(self._visitors.get(_folder_name(token)))

    def find(self, token: str | None) -> VisitorSession | None:
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

    def welcome(self) -> tuple[str, VisitorSession]:
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

    def must_greet(self, visitor: VisitorSession) -> bool:
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

    def _desk(self, name: str) -> VisitorSession:
        allowance = RateLimits(self._limits, clock=self._clock)
        workspace = self._root / name
        room = DiskQuota(workspace, self._limits.workspace_bytes, clock=self._clock)
        return VisitorSession(
            room, workspace, lambda: self._studio(room, workspace, allowance), allowance
        )

    def _studio(self, room: DiskQuota, workspace: Path, allowance: RateLimits) -> Studio:
        shared = self.owner.studio
        remove_temp_files(workspace)
        options = replace(shared.options, workspace=workspace, backend_name=shared.backend_name)
        studio = VisitorStudio(options, MeteredEngine(shared.engine, allowance), room)
        self._prepare(studio)
        return studio

    def _seen(self, visitor: VisitorSession | None) -> VisitorSession | None:
        if visitor is not None:
            visitor.seen_s = self._clock()
            visitor.came_back = True
        return visitor

    def _is_idle(self, visitor: VisitorSession, idle_s: float) -> bool:
        return self._clock() - visitor.seen_s > idle_s and not visitor.is_at_work

    def _make_room(self) -> list[VisitorSession]:
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

    def _put_away(self, visitors: list[VisitorSession]) -> None:
        """Close desks; of who never came back nothing is kept, since nobody can find it again."""
        for visitor in visitors:
            visitor.close()
            if visitor.came_back or visitor is self.programs:
                remove_temp_files(visitor.workspace)
            else:
                _remove(visitor.workspace)


class VisitorStudio(Studio):
    """A workspace in which nobody can have anything downloaded."""

    def choose_backend(self, name: str) -> None:
        """As the studio does, where nothing has to be downloaded for it."""
        assert isinstance(self.engine, MeteredEngine)
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
