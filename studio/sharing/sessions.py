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
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from studio.engine.engine import Engine, MeteredEngine
from studio.errors import EngineBusy
from studio.services.studio import Studio
from studio.sharing.quota import RateLimits, SharedLimits, VisitLimits, VisitorQuota, VisitorsDisk
from studio.storage.disk import DiskUsage, measure_folder
from studio.storage.workspace import DiskQuota, remove_temp_files


class VisitorSession:
    """One visitor's session.

    Attributes:
        rate_limits: None for the owner, who has no limits.
        network: The address of the last request; None if it isn't known.
        disk_quota: Limits the size of the workspace.
        seen_s: When the last request came, on the sessions' clock.
        open_requests: Requests under way; a page that follows its project has one all the time.
        cookie_sent_s: When the cookie was last sent.
        marked_s: When the workspace was last marked as in use.
        has_returned: Whether a later request has sent the cookie.
        has_acted: Whether a request has changed the workspace.
    """

    def __init__(
        self,
        disk_quota: DiskQuota,
        workspace: Path,
        open_studio: Callable[[], Studio],
        rate_limits: RateLimits | None,
    ) -> None:
        self.workspace = workspace
        self.rate_limits = rate_limits
        self.disk_quota = disk_quota
        self.seen_s = 0.0
        self.open_requests = 0
        self.cookie_sent_s = -math.inf
        self.marked_s = -math.inf
        self.has_returned = False
        self.has_acted = False
        self.network: str | None = None
        self._prepared: DiskUsage | None = None
        self._open_studio = open_studio
        # Held while the workspace is opened, so that one thread does it.
        self._lock = threading.Lock()
        self._studio: Studio | None = None

    @property
    def is_owner(self) -> bool:
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
        with self._lock:
            if self._studio is None:
                self._studio = self._open_studio()
                self.touch_workspace()
            return self._studio

    def note_prepared(self) -> None:
        """Remember how the new workspace looks before anything is done in it."""
        self._prepared = measure_folder(self.workspace)

    @property
    def is_untouched(self) -> bool:
        if not self.workspace.exists():
            return True
        return self._prepared is not None and self._prepared == measure_folder(self.workspace)

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
_COMING_BACK_S = 5.0
"""How long a new cookie may take to come back; a browser sends it with its next request."""

_TIDY_EVERY_S = 60.0
_PROGRAMS = "programs"
UNKNOWN_CALLER = (
    "This studio can't tell you from its other callers, so it keeps nothing for you. Send the "
    "cookie that its page sets, or the key that its owner has set (TABLEREAD_API_KEY)."
)


class VisitorSessions:
    """Finds the session of a token. Safe from any thread.

    The browser keeps the token in a cookie. A workspace's folder is named by the token's digest, so
    that nobody who can list the folders learns a token.

    Attributes:
        owner: The session of the person who started the studio.
        programs: The one session of all callers without a token. The ids of what they make can't
            be guessed, and no list shows them; they can keep no voices, which all would share.
        shared_limits: Of each address, and of all visitors together.
    """

    def __init__(
        self,
        studio: Studio,
        limits: VisitLimits | None = None,
        *,
        prepare: Callable[[Studio], None] = lambda _: None,
        is_alone: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set up around the owner's studio.

        Args:
            studio: The owner's; the visitors' workspaces are in `visitors` of its workspace.
            limits: Of one visitor.
            prepare: Called with each new studio.
            is_alone: Whether no other studio uses the workspace, so that temporary files that are
                there are nobody's.
            clock: Monotonic seconds.
        """
        workspace = studio.options.workspace
        self.owner = VisitorSession(studio.disk_quota, workspace, lambda: studio, None)
        self.owner_token = secrets.token_urlsafe(24)
        self._limits = limits or VisitLimits()
        self._prepare = prepare
        self._is_alone = is_alone
        self._clock = clock
        self._root = workspace / "visitors"
        # Guards the table.
        self._lock = threading.Lock()
        self._visitors: dict[str, VisitorSession] = {}
        self._swept_s = clock()
        self._ended = threading.Event()
        self.shared_limits = SharedLimits(self._limits, clock=clock)
        self._disk = VisitorsDisk(self._limits)
        self._closer = threading.Thread(target=self._close_idle_loop, name="sessions", daemon=True)
        self.programs = self._create_session(_PROGRAMS)
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

    def find(self, token: str | None, network: str | None = None) -> VisitorSession | None:
        """The session of a token; None if no such token was ever issued.

        `network` is the visitor's address, if it is known.
        """
        visitor = self.find_open(token)
        if visitor is not None or not token:
            return visitor
        name = _folder_name(token)
        if not (self._root / name).is_dir():
            return None
        with self._lock:
            gone = [] if name in self._visitors else self._make_room(network)
            visitor = self._touch(self._visitors.setdefault(name, self._create_session(name)))
        self._close_sessions(gone)
        return visitor

    def create(self, network: str | None = None) -> tuple[str, VisitorSession]:
        """Create a session; returns it with its token."""
        token = secrets.token_urlsafe(24)
        name = _folder_name(token)
        with self._lock:
            gone = self._make_room(network)
            visitor = self._visitors[name] = self._create_session(name)
            visitor.seen_s = self._clock()
            self.place(visitor, network)
        self._close_sessions(gone)
        return token, visitor

    def place(self, visitor: VisitorSession, network: str | None) -> None:
        """Note the address of a visitor's request, which is charged with what the visitor does."""
        if visitor.rate_limits is None:
            return
        visitor.network = network
        visitor.rate_limits.wider = self.shared_limits.of_network(network)
        assert isinstance(visitor.disk_quota, VisitorQuota)
        visitor.disk_quota.network = network

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
            for workspace in _remove_forgotten(self._root, but=open_now):
                self._disk.forget(workspace)

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
        self._disk.add_known(_workspaces(self._root))
        while not self._ended.wait(_TIDY_EVERY_S):
            self.close_idle()

    def _create_session(self, name: str) -> VisitorSession:
        rate_limits = RateLimits(self._limits, clock=self._clock)
        workspace = self._root / name
        rate_limits.wider = self.shared_limits.of_network(None)
        quota = VisitorQuota(workspace, self._limits.workspace_bytes, self._disk, clock=self._clock)

        def open_studio() -> Studio:
            is_new = not workspace.exists()
            studio = self._open_studio(quota, workspace, rate_limits)
            if name == _PROGRAMS:
                studio.speakers.close(UNKNOWN_CALLER)
            if is_new:
                visitor.note_prepared()
            return studio

        visitor = VisitorSession(quota, workspace, open_studio, rate_limits)
        return visitor

    def _open_studio(self, quota: DiskQuota, workspace: Path, rate_limits: RateLimits) -> Studio:
        shared = self.owner.studio
        assert isinstance(shared.engine, Engine), "the owner's"
        self._remove_temp_files(workspace)
        options = replace(shared.options, workspace=workspace, backend_name=shared.backend_name)
        metered = MeteredEngine(shared.engine, rate_limits.spend_job)
        studio = Studio(options, metered, quota, aligner=shared.aligner)
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

    def _make_room(self, network: str | None) -> list[VisitorSession]:
        """Take a session out of memory if there are too many, in all or of one address.

        One in which nothing was done or whose cookie hasn't come back goes first, then the longest
        idle; `find` opens those again that have returned once.

        Raises:
            EngineBusy: All are in use.
        """
        known = (one.network for one in self._visitors.values() if one.network is not None)
        counts: Counter[str | None] = Counter(known)
        if network is not None and counts[network] >= self._limits.address_visitors:
            candidates = [name for name, one in self._visitors.items() if one.network == network]
        elif len(self._visitors) >= self._limits.visitors:
            candidates = list(self._visitors)
        else:
            return []

        def rank(name: str) -> tuple[bool, int, float]:
            visitor = self._visitors[name]
            is_at_home = visitor.has_acted and visitor.has_returned
            return is_at_home, -counts[visitor.network], visitor.seen_s

        ranked = sorted(candidates, key=rank)
        gone = next((name for name in ranked if self._may_go(self._visitors[name])), None)
        if gone is None:
            raise EngineBusy(
                "Too many people are here already; try again in a few minutes.", retry_after_s=300
            )
        return [self._visitors.pop(gone)]

    def _may_go(self, visitor: VisitorSession) -> bool:
        """Whether a session may make room for another one.

        A visit that changed nothing holds no place, even while its page is open for long: its next
        request gets another session.
        """
        if self._is_idle(visitor, _PASSING_S if visitor.has_returned else _COMING_BACK_S):
            return True
        if visitor.has_acted or visitor.is_at_work or not visitor.is_untouched:
            return False
        return not visitor.open_requests or self._clock() - visitor.seen_s > _PASSING_S

    def _close_sessions(self, visitors: list[VisitorSession]) -> None:
        """Close sessions; delete workspaces that hold nothing, or whose cookie never came back."""
        for visitor in visitors:
            visitor.close()
            is_used = visitor.has_acted or not visitor.is_untouched
            is_kept = visitor.has_returned and is_used
            if is_kept or visitor is self.programs:
                self._remove_temp_files(visitor.workspace)
            else:
                _remove(visitor.workspace)
                self._disk.forget(visitor.workspace)

    def _remove_temp_files(self, workspace: Path) -> None:
        if self._is_alone():
            remove_temp_files(workspace)


def _folder_name(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def _workspaces(root: Path) -> list[Path]:
    return [folder for folder in root.iterdir() if folder.is_dir()] if root.is_dir() else []


def _remove_forgotten(root: Path, but: set[str] | None = None) -> list[Path]:
    """Delete workspaces that nobody has used for `KEPT_S`, and return them."""
    oldest_s = time.time() - KEPT_S
    forgotten = [
        folder
        for folder in _workspaces(root)
        if folder.name not in (but or ()) and _used_s(folder) < oldest_s
    ]
    for folder in forgotten:
        _remove(folder)
    return forgotten


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
