"""Every write a project makes, in one place, so that a full disk can be tried at each of them."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

from studio.audio.atomic_file import storage_errors

LeaveOut = Callable[[Any, list[str]], Iterable[str]]
"""As `shutil.ignore_patterns` makes it."""


class Disk:
    """Writes files so that they are either whole or not there.

    Raises:
        StorageFailed: From every method: the disk is full, or may not be written.
    """

    def write_whole(self, path: Path, data: bytes) -> None:
        """Write a file anew; after any error what was there before is untouched."""
        unfinished = path.with_name(f".{secrets.token_hex(8)}.part")
        with storage_errors(path):
            try:
                with unfinished.open("xb") as file:
                    self._write(file, data)
                    self._sync(file)
                self._rename(unfinished, path)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise
        self._sync_folder(path.parent)

    def append(self, file: BinaryIO, data: bytes, path: Path) -> None:
        """Add to an open, unbuffered file; after an error a part of it may be there."""
        with storage_errors(path):
            self._write(file, data)

    def sync(self, file: BinaryIO, path: Path) -> None:
        """See that what was added is on the disk itself."""
        with storage_errors(path):
            self._sync(file)

    def move(self, source: Path, target: Path) -> None:
        """Give a finished file its place."""
        with storage_errors(target):
            self._rename(source, target)
        self._sync_folder(target.parent)

    def make_folder(self, path: Path) -> None:
        """Make a folder and those above it."""
        with storage_errors(path):
            path.mkdir(parents=True, exist_ok=True)

    def remove(self, path: Path) -> None:
        """Remove a file or a folder with all in it; one that isn't there is no fault."""
        with storage_errors(path):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def copy_tree(self, source: Path, target: Path, leave_out: LeaveOut) -> None:
        """Copy a folder with all in it but what `leave_out` names."""
        with storage_errors(target):
            shutil.copytree(
                source, target, ignore=leave_out, copy_function=self._copy, dirs_exist_ok=True
            )

    def _copy(self, source: str, target: str) -> None:
        shutil.copyfile(source, target)

    def _write(self, file: BinaryIO, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[file.write(left) or 0 :]

    def _sync(self, file: BinaryIO) -> None:
        file.flush()
        os.fsync(file.fileno())

    def _rename(self, source: Path, target: Path) -> None:
        source.replace(target)

    def _sync_folder(self, folder: Path) -> None:
        """A new name is on the disk when its folder is; Windows has nothing of the kind."""
        if os.name != "posix":
            return
        with storage_errors(folder):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
