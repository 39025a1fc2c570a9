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
        rate_limits: None for the owner, who has no limits.
        disk_quota: Limits the size of the workspace.
        seen_s: When the last request came, on the sessions' clock.
        open_requests: Requests under way; a page that follows its project has one all the time.
        cookie_sent_s: When the cookie was last sent.
        marked_s: When the workspace was last marked as in use.
        has_returned: Whether a later request has sent the cookie.
    """

    def __init__(
        self,
        disk_quota: DiskQuota,
        workspace: Path,
        open_studio: Callable[[], Studio],
        rate_limits: RateLimits | None,
    ) -> None:
        """Start a session; the workspace is created when it is first needed."""
        self.workspace = workspace
        self.rate_limits = rate_limits
        self.disk_quota = disk_quota
        self.seen_s = 0.0
        self.open_requests = 0
        self.cookie_sent_s = -math.inf
        self.marked_s = -math.inf
        self.has_returned = False
        self._open_studio = open_studio
        # Held while the workspace is opened, so that one thread does it.
        self._lock = threading.Lock()
        self._studio: Studio | None = None

    @property
    def is_owner(self) -> bool:
        """Whether it is the session of the person who started the studio."""
        return self.rate_limits is None

    @property
    def is_open(self) -> bool:
        """Whether the workspace is open, so that nobody waits for the disk."""
        return self._studio is not None

    @property
    def is_at_work(self) -> bool:
        """Whether the engine has work for this visitor."""
        studio = self._studio
        engine = studio.engine if studio is not None else None
        return isinstance(engine, MeteredEngine) and engine.is_at_work

    @property
    def studio(self) -> Studio:
        """The visitor's studio, on a workspace of its own.

        Raises:
            StorageFailed: The workspace can't be created.
        """
        with self._lock:
            if self._studio is None:
                self._studio = self._open_studio()
                self.touch_workspace()
            return self._studio

    def touch_workspace(self) -> None:
        """Mark the workspace as in use; one that isn't is removed after `KEPT_S`."""
        with suppress(OSError):  # not created yet, or on a disk that can't set times
            os.utime(self.workspace)

    def close(self) -> None:
        """Close the workspace; it is opened again when the visitor comes back."""
        with self._lock:
            studio, self._studio = self._studio, None
        if studio is not None:
            studio.projects.close()


log = logging.getLogger(__name__)

KEPT_S = 30 * 24 * 3600.0
"""How long a workspace and its token last without a visit."""

_DAY_S = 24 * 3600.0
_IDLE_S = 3600.0
_PASSING_S = 60.0
_TIDY_EVERY_S = 60.0
_PROGRAMS = "programs"


class VisitorSessions:
    """Finds the session of a token. Safe from any thread.

    The browser keeps the token in a cookie. A workspace's folder is named by the token's digest, so
    that nobody who can list the folders learns a token.

    Attributes:
        owner: The session of the person who started the studio.
        programs: The one session of all callers without a token. The ids of what they make can't
            be guessed, and no list shows them.
        newcomer_limits: Limits that all new visitors share until their cookie comes back.
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
            studio: The owner's; the visitors' workspaces are in `visitors` of its workspace.
            limits: Of one visitor.
            prepare: Called with each new studio.
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
        """Close idle sessions once a minute from now on."""
        self._closer.start()

    def is_owners(self, token: str | None) -> bool:
        """Whether a token is the owner's, compared in constant time."""
        return secrets.compare_digest((token or "").encode(), self.owner_token.encode())

    def find_open(self, token: str | None) -> VisitorSession | None:
        """The session of a token, if it is in memory; never waits for the disk."""
        if not token:
            return None
        if self.is_owners(token):
            return self.owner
        with self._lock:
            return self._touch(self._visitors.get(_folder_name(token)))

    def find(self, token: str | None) -> VisitorSession | None:
        """The session of a token; None if no such token was ever issued.

        Raises:
            EngineBusy: It isn't in memory, and there are too many sessions already.
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
        """Create a session; returns it with its token.

        Raises:
            EngineBusy: There are too many sessions already.
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
        """Whether to send the cookie again, which renews its lifetime; true once a day."""
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
            active = [*self._visitors.values(), self.programs]
        for visitor in active:
            if visitor.is_open and now_s - visitor.marked_s >= _IDLE_S:
                visitor.marked_s = now_s
                visitor.touch_workspace()
        self._close_sessions(closed)
        if now_s - self._swept_s >= _DAY_S:
            self._swept_s = now_s
            open_now = {visitor.workspace.name for visitor in active}
            _remove_forgotten(self._root, but=open_now)

    def close(self) -> None:
        """Close all visitors' workspaces; to be called before the engine is closed."""
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
        in_use = visitor.open_requests or visitor.is_at_work
        return self._clock() - visitor.seen_s > idle_s and not in_use

    def _make_room(self) -> list[VisitorSession]:
        """Take idle sessions out of memory; `find` opens those again that have returned once."""
        if len(self._visitors) < self._limits.visitors:
            return []
        gone = [
            name
            for name, visitor in self._visitors.items()
            if self._is_idle(visitor, _IDLE_S if visitor.has_returned else _PASSING_S)
        ]
        if not gone:
            # One without a workspace loses nothing: its next request gets another token.
            gone = [name for name, one in self._visitors.items() if not one.workspace.exists()][:1]
        if not gone:
            raise EngineBusy(
                "Too many people are here already; try again in a few minutes.", retry_after_s=300
            )
        return [self._visitors.pop(name) for name in gone]

    def _close_sessions(self, visitors: list[VisitorSession]) -> None:
        """Close sessions; delete the workspaces of those whose cookie never came back."""
        for visitor in visitors:
            visitor.close()
            if visitor.has_returned or visitor is self.programs:
                remove_temp_files(visitor.workspace)
            else:
                _remove(visitor.workspace)


def _folder_name(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def _remove_forgotten(root: Path, but: set[str] | None = None) -> None:
    """Delete workspaces that nobody has used for `KEPT_S`."""
    if not root.is_dir():
        return
    oldest_s = time.time() - KEPT_S
    for folder in root.iterdir():
        if folder.is_dir() and folder.name not in (but or ()) and _used_s(folder) < oldest_s:
            _remove(folder)


def _used_s(folder: Path) -> float:
    """When a workspace was last marked, or a project or speaker in it last changed."""
    files = [folder, *folder.glob("*/*/*.json*")]
    return max(file.lstat().st_mtime for file in files)


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("a visitor's folder can't be removed: %s", error)
