"""The studio's folders: its own files, its workspace, and how much of the disk that may take."""

from __future__ import annotations

import math
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from studio.errors import NoRoom, StorageFailed
from studio.storage.disk import format_bytes, measure_folder, storage_errors

_PRIVATE = 0o700
_STUDIO_FOLDERS = ("projects", "speakers")


def ensure_writable(folder: Path) -> Path:
    """Create a folder that only this user can read, and check that files can be written to it.

    A folder that isn't a studio's yet keeps its permissions.

    Raises:
        StorageFailed: They can't; the message says how to choose another workspace.
    """
    try:
        if any((folder / name).is_dir() for name in _STUDIO_FOLDERS):
            with suppress(OSError):  # somebody else's, or a file system without permissions
                folder.chmod(_PRIVATE)
        folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        probe = folder / f".probe-{secrets.token_hex(4)}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StorageFailed(
            f"The folder {folder} can't be written ({error.strerror}); choose another with "
            "--workspace or TABLEREAD_WORKSPACE."
        ) from error
    return folder


_MEASURED_EVERY_S = 30.0
SPARE = 0.05
"""Share of the quota reserved for edits, since making room takes an edit, too: a deletion."""

EXPORTS = "exports"
READINGS = "readings"
OPENING = "opening-"
"""Prefix of the files that lead the browser to the owner's page."""

TEMP_DIRS = (EXPORTS, READINGS)
"""Folders of a workspace whose files are deleted with the response that they are made for."""


class DiskQuota:
    """Limits the size of a workspace: measured at times, and counted by request in between.

    Safe from any thread; measuring takes milliseconds for every thousand files.
    """

    def __init__(
        self,
        workspace: Path,
        size_bytes: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start unmeasured; `size_bytes` is the limit, None for no limit."""
        self._workspace = workspace
        self._size_bytes = size_bytes
        self._clock = clock
        # Guards the two fields below.
        self._lock = threading.Lock()
        self._held_bytes = 0
        self._measured_s = -math.inf

    @property
    def left_bytes(self) -> int | None:
        """The bytes left now, measured; None without a limit."""
        if self._size_bytes is None:
            return None
        self.invalidate()
        return max(0, self._size_bytes - self._held())

    @property
    def is_measured(self) -> bool:
        unmeasured_s = self._clock() - self._measured_s
        return self._size_bytes is None or unmeasured_s < _MEASURED_EVERY_S

    def invalidate(self) -> None:
        """Have the workspace measured again when its size is next needed."""
        self._measured_s = -math.inf

    def reserve(self, more_bytes: int, *, as_edit: bool = False) -> None:
        """Count bytes that are about to be written.

        Args:
            more_bytes: How many.
            as_edit: Whether they may use the share reserved for edits.

        Raises:
            NoRoom: There aren't that many left.
        """
        if self._size_bytes is None:
            return
        most_bytes = self._size_bytes * (1 + SPARE * as_edit)
        held_bytes = self._held()
        with self._lock:
            if held_bytes + more_bytes > most_bytes:
                raise NoRoom(
                    f"A visitor may keep {format_bytes(self._size_bytes)} here, and "
                    f"{format_bytes(held_bytes)} are in use. Delete projects, takes or voices you "
                    "don't need, then free their space in the list of projects; or use a studio "
                    "of your own."
                )
            self._held_bytes += more_bytes

    def _held(self) -> int:
        if not self.is_measured:
            held_bytes = sum(
                measure_folder(folder).size_bytes
                for folder in self._workspace.glob("*")
                if folder.name not in TEMP_DIRS
            )
            with self._lock:
                self._held_bytes, self._measured_s = held_bytes, self._clock()
        return self._held_bytes


class WorkspaceUse:
    """Tells a studio whether other ones use its workspace, which have temporary files there, too.

    Each has a lock of its own, which the system releases when its process ends in any way.
    """

    def __init__(self, workspace: Path) -> None:
        folder = workspace / ".studios"
        self._own = folder / f"{secrets.token_hex(8)}.lock"
        self._lock = FileLock(self._own, timeout=0, thread_local=False)
        with storage_errors(self._own):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()

    def is_alone(self) -> bool:
        """Whether no other studio uses the workspace now."""
        return all(map(self._is_gone, self._own.parent.glob("*.lock")))

    def close(self) -> None:
        """Use it no more."""
        self._lock.release()
        self._own.unlink(missing_ok=True)

    def _is_gone(self, path: Path) -> bool:
        if path == self._own:
            return True
        try:
            with FileLock(path, timeout=0):
                path.unlink(missing_ok=True)
        except OSError:  # a `Timeout`, or it can't be told
            return False
        return True


def remove_temp_files(workspace: Path) -> None:
    """Delete temporary files that remain after the process ended before it could.

    Only where no other studio uses the workspace: `WorkspaceUse` tells.
    """
    for name in TEMP_DIRS:
        shutil.rmtree(workspace / name, ignore_errors=True)
    for file in workspace.glob(f"{OPENING}*.html"):
        file.unlink(missing_ok=True)


_PACKAGE = Path(__file__).resolve().parents[1]

IS_PACKAGED = (_PACKAGE / "assets").is_dir()
"""Whether this is the wheel, which has `assets` inside `studio`; a clone has them next to it."""

ASSETS = (_PACKAGE if IS_PACKAGED else _PACKAGE.parent) / "assets"
"""Folder of `page` (scripts, styles, HTML) and `dialogs` (samples)."""


def default_workspace() -> Path:
    """The workspace of somebody who names none.

    Returns:
        `workspace` in the clone; `Tableread` in the user's home where the studio is a package,
        because upgrading a package's environment deletes everything in it.
    """
    return Path.home() / "Tableread" if IS_PACKAGED else _PACKAGE.parent / "workspace"
