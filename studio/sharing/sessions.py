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
    """One visitor's session.

    Attributes:
        rate_limits: None for the owner, who may have everything.
        disk_quota: How much of the disk the workspace may take.
        seen_s: When the last request came, on the sessions' clock.
        cookie_sent_s: When the cookie was last sent.
        marked_s: When the workspace was last marked as in use.
        has_returned: Whether the token was ever shown again.
    """

    def __init__(
        self,
        disk_quota: DiskQuota,
        workspace: Path,
        open_studio: Callable[[], Studio],
        rate_limits: RateLimits | None,
    ) -> None:
        """Start a session; the workspace is made when it is first needed."""
        self.workspace = workspace
        self.rate_limits = rate_limits
        self.disk_quota = disk_quota
        self.seen_s = 0.0
        self.cookie_sent_s = -math.inf
        self.marked_s = -math.inf
        self.has_returned = False
        self._open_studio = open_studio
        # Lets one thread at a time open the workspace.
        self._lock = threading.Lock()
        self._studio: Studio | None = None

    @property
    def is_owner(self) -> bool:
        """Whether it is who started the studio."""
        return self.rate_limits is None

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
                self.touch_workspace()
            return self._studio

    def touch_workspace(self) -> None:
        """Leave a trace in the workspace that it is in use; one that isn't is removed one day."""
        with suppress(OSError):  # not made yet, or a disk that takes no times
            os.utime(self.workspace)

    def close(self) -> None:
        """Close what is open of the workspace; it is opened again when the visitor comes back."""
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
    """Finds the session that a token belongs to. Safe from many threads.

    The token is what the browser keeps; folders are named by its digest, so that who reads their
    names learns no token.

    Attributes:
        owner: Who started the studio.
        programs: The one session of all that call without a token. What they make has ids that
            nobody can guess, and no list shows it.
        newcomer_limits: What all who come for the first time have together until they come back.
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
        self.owner = VisitorSession(studio.disk_quota, workspace, lambda: studio, None)
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
        self._closer = threading.Thread(target=self._close_idle_loop, name="sessions", daemon=True)
        self.programs = self._create_session(_PROGRAMS)
        self.newcomer_limits = RateLimits(self._limits, clock=clock)
        _remove_forgotten(self._root)

    def start(self) -> None:
        """Begin to close idle sessions once a minute."""
        self._closer.start()

    def find_open(self, token: str | None) -> VisitorSession | None:
        """The session of a token if it is open; never waits for the disk."""
        if not token:
            return None
        if secrets.compare_digest(token.encode(), self.owner_token.encode()):
            return self.owner
        with self._lock:
            return self._touch(self._visitors.get(_folder_name(token)))

    def find(self, token: str | None) -> VisitorSession | None:
        """The session of a token; None for a token that nobody was given.

        Raises:
            EngineBusy: It is put away, and there are too many visitors already.
        """
        visitor = self.find_open(token)
        if visitor is not None or not token:
            return visitor
        name = _folder_name(token)
        if not (self._root / name).is_dir():
            return None
        with self._lock:
            gone = [] if name in self._visitors else self._make_room()
            visitor = self._touch(self._visitors.setdefault(name, self._create_session(name)))
        self._close_sessions(gone)
        return visitor

    def create(self) -> tuple[str, VisitorSession]:
        """A new session, and the token that leads to it.

        Raises:
            EngineBusy: There are too many visitors already.
        """
        token = secrets.token_urlsafe(24)
        name = _folder_name(token)
        with self._lock:
            gone = self._make_room()
            visitor = self._visitors[name] = self._create_session(name)
            visitor.seen_s = self._clock()
        self._close_sessions(gone)
        return token, visitor

    def is_cookie_due(self, visitor: VisitorSession) -> bool:
        """Whether the cookie has to be sent again, which renews its lifetime: once a day."""
        now_s = self._clock()
        is_due = now_s - visitor.cookie_sent_s >= _DAY_S
        if is_due:
            visitor.cookie_sent_s = now_s
        return is_due

    def close_idle(self) -> None:
        """Mark workspaces in use, close sessions idle for an hour, remove old ones once a day."""
        now_s = self._clock()
        with self._lock:
            gone = [name for name, one in self._visitors.items() if self._is_idle(one, _IDLE_S)]
            closed = [self._visitors.pop(name) for name in gone]
            sitting = [*self._visitors.values(), self.programs]
        for visitor in sitting:
            if visitor.is_open and now_s - visitor.marked_s >= _IDLE_S:
                visitor.marked_s = now_s
                visitor.touch_workspace()
        self._close_sessions(closed)
        if now_s - self._swept_s >= _DAY_S:
            self._swept_s = now_s
            open_now = {visitor.workspace.name for visitor in sitting}
            _remove_forgotten(self._root, but=open_now)

    def close(self) -> None:
        """Close all visitors' workspaces; before the engine."""
        self._ended.set()
        if self._closer.is_alive():
            self._closer.join()
        with self._lock:
            visitors = list(self._visitors.values())
            self._visitors.clear()
        self._close_sessions([*visitors, self.programs])

    def _close_idle_loop(self) -> None:
        while not self._ended.wait(_TIDY_EVERY_S):
            self.close_idle()

    def _create_session(self, name: str) -> VisitorSession:
        rate_limits = RateLimits(self._limits, clock=self._clock)
        workspace = self._root / name
        quota = DiskQuota(workspace, self._limits.workspace_bytes, clock=self._clock)
        return VisitorSession(
            quota, workspace, lambda: self._open_studio(quota, workspace, rate_limits), rate_limits
        )

    def _open_studio(self, quota: DiskQuota, workspace: Path, rate_limits: RateLimits) -> Studio:
        shared = self.owner.studio
        remove_temp_files(workspace)
        options = replace(shared.options, workspace=workspace, backend_name=shared.backend_name)
        studio = Studio(options, MeteredEngine(shared.engine, rate_limits), quota)
        self._prepare(studio)
        return studio

    def _touch(self, visitor: VisitorSession | None) -> VisitorSession | None:
        if visitor is not None:
            visitor.seen_s = self._clock()
            visitor.has_returned = True
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
            if self._is_idle(visitor, _IDLE_S if visitor.has_returned else _PASSING_S)
        ]
        if not gone:
            # Who only looked in has nothing to lose: the next request brings another token.
            gone = [name for name, one in self._visitors.items() if not one.workspace.exists()][:1]
        if not gone:
            raise EngineBusy(
                "Too many people are here already; try again in a few minutes.", retry_after_s=300
            )
        return [self._visitors.pop(name) for name in gone]

    def _close_sessions(self, visitors: list[VisitorSession]) -> None:
        """Close sessions; the workspace of a token that was never shown again is removed."""
        for visitor in visitors:
            visitor.close()
            if visitor.has_returned or visitor is self.programs:
                remove_temp_files(visitor.workspace)
            else:
                _remove(visitor.workspace)


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
