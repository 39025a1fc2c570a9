"""Removed projects: they stay in a folder for a month and can be restored."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from studio.errors import NotFound
from studio.storage.disk import Disk, DiskUsage, measure_folder, storage_errors

TRASH_RETENTION_S = 30 * 24 * 3600.0
"""How long a removed project waits."""

DELETED_MESSAGE = "This project was deleted for good, so it can't be brought back."

_DELETING_PREFIX = ".gone-"
"""Begins the name of a project that is being deleted, so that none is found half."""


class ProjectTrash:
    """A folder with one folder for each removed project; safe from several threads."""

    def __init__(self, root: Path, disk: Disk, *, now_s: Callable[[], float] = time.time) -> None:
        """Use a folder, which is made with the first removed project."""
        self._root = root
        self._disk = disk
        self._now_s = now_s
        # Lets one thread at a time delete; what comes in meanwhile is seen whole or not at all.
        self._emptying = threading.Lock()

    def put(self, project: Path) -> None:
        """Take a project's folder away; its month begins now.

        Raises:
            StorageFailed: It can't be moved; it stays where it is.
        """
        self._disk.make_folder(self._root)
        now_s = self._now_s()
        with storage_errors(project):
            # A moved folder keeps its time, which then tells when it was removed.
            os.utime(project, (now_s, now_s))
        self._disk.move(project, self._root / project.name)

    def take(self, project_id: str, target: Path) -> None:
        """Give a removed project its place back.

        Raises:
            NotFound: It isn't here any more.
            StorageFailed: It can't be moved; it stays where it is.
        """
        with self._emptying:
            if not (self._root / project_id).is_dir():
                raise NotFound(DELETED_MESSAGE)
            self._disk.move(self._root / project_id, target)

    def waiting(self) -> list[tuple[Path, float]]:
        """Removed projects with when they were, in seconds since 1970; the latest first."""
        found = []
        for project in self._projects():
            with suppress(FileNotFoundError):  # it is just being deleted, or moved back
                found.append((project, project.stat().st_mtime))
        return sorted(found, key=lambda one: one[1], reverse=True)

    def held(self) -> DiskUsage:
        """How many projects wait, and their bytes."""
        return sum(
            (DiskUsage(1, measure_folder(one).size_bytes) for one in self._projects()), DiskUsage()
        )

    def empty(self, *, older_than_s: float = 0.0) -> DiskUsage:
        """Delete for good what was removed at least that long ago; returns what that freed.

        Raises:
            StorageFailed: Something can't be deleted.
        """
        freed = DiskUsage()
        with self._emptying, storage_errors(self._root):
            for project in self._projects():
                if self._now_s() - project.stat().st_mtime >= older_than_s:
                    freed += DiskUsage(1, measure_folder(project).size_bytes)
                    self._disk.move(project, project.with_name(f"{_DELETING_PREFIX}{project.name}"))
            for going in self._root.glob(f"{_DELETING_PREFIX}*"):
                self._disk.remove(going)
        return freed

    def _projects(self) -> list[Path]:
        if not self._root.is_dir():
            return []
        return [one for one in self._root.iterdir() if one.is_dir() and one.name[0] != "."]
