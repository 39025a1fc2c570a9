"""The trash: removed folders stay there for a month and can be restored."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from studio.errors import NotFound, StorageFailed
from studio.storage.disk import Disk, DiskUsage, list_folders, measure_folder, storage_errors
from studio.storage.file_cache import StateCache, read_state, stat_or_none

TRASH_RETENTION_S = 30 * 24 * 3600.0
"""How long a removed folder stays in the trash."""

_DELETING_PREFIX = ".gone-"
"""Prefix of a folder that is being deleted, so that a half-deleted one is never listed."""


class TrashFolder:
    """A folder with one folder for each removed thing; safe from any thread."""

    def __init__(
        self, root: Path, disk: Disk, gone: str, *, now_s: Callable[[], float] = time.time
    ) -> None:
        """Use a folder, which is created with the first removed thing.

        Args:
            root: The folder.
            disk: Moves and deletes.
            gone: The message for something that isn't in the trash any more.
            now_s: The current time in seconds since 1970.
        """
        self._root = root
        self._disk = disk
        self._gone = gone
        self._now_s = now_s
        # Held during deletions; a folder that is added meanwhile is seen whole or not at all.
        self._emptying = threading.Lock()
        # By the state of the folder itself, as nothing changes a removed one until it goes whole.
        self._sizes: StateCache[int] = StateCache()

    def put(self, folder: Path) -> None:
        """Move a folder to the trash; its month starts now."""
        self._disk.make_folder(self._root)
        now_s = self._now_s()
        with storage_errors(folder):
            # A folder's time is that of its removal, which moving doesn't change.
            os.utime(folder, (now_s, now_s))
        self._disk.move(folder, self._root / folder.name)

    def get(self, name: str) -> Path:
        """The path of a removed folder.

        Raises:
            NotFound: It isn't in the trash any more.
        """
        # The name comes from outside, so it is looked up, and never becomes part of a path.
        for own in self._names():
            if own == name:
                return self._root / own
        raise NotFound(self._gone)

    def restore(self, name: str, target: Path) -> None:
        """Move a removed folder back."""
        with self._emptying:
            self._disk.move(self.get(name), target)

    def list_removed(self) -> list[tuple[Path, float]]:
        """The removed folders with the time of removal, in seconds since 1970; the latest first."""
        found = []
        for name in self._names():
            status = stat_or_none(f"{self._root}/{name}")
            if status is not None:  # else it is being deleted, or moved back
                found.append((self._root / name, status.st_mtime))
        return sorted(found, key=lambda one: one[1], reverse=True)

    def measure(self) -> DiskUsage:
        """The number of removed folders, and their bytes; each is measured once."""
        names = self._names()
        return DiskUsage(len(names), sum(map(self._measure, names)))

    def _measure(self, name: str) -> int:
        path = f"{self._root}/{name}"
        state = read_state(path)
        return self._sizes.get(name, state, lambda: measure_folder(Path(path)).size_bytes)

    def delete(self, name: str) -> None:
        """Delete a removed folder for good."""
        with self._emptying:
            self._delete([self.get(name)])

    def empty(self, *, older_than_s: float = 0.0) -> DiskUsage:
        """Delete for good what was removed at least that long ago; returns what was freed."""
        with self._emptying, storage_errors(self._root):
            now_s = self._now_s()
            removed = self.list_removed()
            old = [one for one, removed_s in removed if now_s - removed_s >= older_than_s]
            sizes = [self._measure(one.name) for one in old]
            self._delete(old)
        return DiskUsage(len(old), sum(sizes))

    def _delete(self, folders: list[Path]) -> None:
        """Delete folders, and those that an earlier process was deleting when it ended."""
        for folder in folders:
            try:
                self._disk.move(folder, folder.with_name(f"{_DELETING_PREFIX}{folder.name}"))
            except StorageFailed:
                if folder.exists():
                    raise
                # Another process has emptied the trash, too, or brought it back.
        for going in self._root.glob(f"{_DELETING_PREFIX}*"):
            self._disk.remove(going)

    def _names(self) -> list[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            return list_folders(self._root, links=True)
        return []
