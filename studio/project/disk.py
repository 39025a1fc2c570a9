"""Every write a project makes, in one place, so that a full disk can be tried at each of them."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from studio.audio.atomic_file import storage_errors
from studio.errors import StorageFailed


class Disk:
    """Writes files so that they are either whole or not there.

    Raises:
        StorageFailed: From every method: the disk is full, or may not be written.
    """

    def write_whole(
        self, path: Path, data: bytes | Iterable[bytes], *, synced: bool = True
    ) -> None:
        """Write a file anew; after any error what was there before is untouched.

        Any error of `data` itself comes through.

        Args:
            path: The file.
            data: What will be in it.
            synced: Wait until it is on the disk itself. Else the end of the process can't harm it,
                and after a power failure it may be empty.
        """
        blocks = (data,) if isinstance(data, bytes) else data
        unfinished = path.with_name(f".{secrets.token_hex(8)}.part")
        with storage_errors(path):
            try:
                with unfinished.open("xb") as file:
                    for block in blocks:
                        self._write(file, block)
                    if synced:
                        self._sync(file)
                self._rename(unfinished, path)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise
        if synced:
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

    def check_room(self, folder: Path, wanted_bytes: int) -> None:
        """See that the disk of a folder, which need not be there yet, has room."""
        there = next(one for one in (folder, *folder.parents) if one.exists())
        with storage_errors(folder):
            free_bytes = shutil.disk_usage(there).free
        if wanted_bytes > free_bytes:
            raise StorageFailed(
                f"This needs {_in_words(wanted_bytes)}, and the disk has {_in_words(free_bytes)} "
                "left. Free some space first."
            )

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file into a folder that is being filled; one that is gone by then is left out."""
        with storage_errors(target), suppress(FileNotFoundError):
            self._copy(source, target)

    def _copy(self, source: Path, target: Path) -> None:
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


def _in_words(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"
