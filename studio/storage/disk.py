"""Files written whole or not at all, strict JSON, and how much of the disk files take."""

from __future__ import annotations

import json
import logging
import math
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from studio.errors import StorageFailed

log = logging.getLogger(__name__)


@contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when the block ends without an error.

    The file is seekable, lies beside `path` until then, and is gone again after any error, which
    leaves an earlier file at `path` as it was.

    Raises:
        StorageFailed: The folder is missing, can't be written or is full.
    """
    unfinished = path.with_name(f".{secrets.token_hex(8)}.part")
    with storage_errors(path):
        try:
            with unfinished.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Tell an `OSError` of the block as a `StorageFailed` that names the file.

    Its folder goes to the log alone: whoever reads the message may be a stranger.
    """
    try:
        yield
    except OSError as error:
        log.info("%s: %s", path, error)
        reason = error.strerror or str(error)
        raise StorageFailed(
            f"“{path.name}” can't be written: {reason}. Free some space or choose a folder you may"
            " write to."
        ) from error


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
                f"This needs {_format_bytes(wanted_bytes)}, and the disk has "
                f"{_format_bytes(free_bytes)} left. Free some space first."
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


def _format_bytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"


_SURROGATE_ESCAPE = b"\\ud"
"""Begins every half of a character that JSON can hold and UTF-8 can't."""


def read_json(data: bytes) -> Any:
    """Read JSON that this studio could have written.

    Raises:
        ValueError: It isn't JSON, or holds what other JSON can't: NaN, endless numbers, halves of
            characters, endless nesting.
    """
    try:
        value = json.loads(data, parse_constant=_reject_number, parse_float=_parse_finite)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if _SURROGATE_ESCAPE in data.lower():
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _parse_finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _reject_number(text)


def _reject_number(text: str) -> float:
    raise ValueError(f"{text} is no number that can be kept")


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """A number of files, or of projects, and their bytes together."""

    count: int = 0
    size_bytes: int = 0

    def __add__(self, other: DiskUsage) -> DiskUsage:
        """Both together."""
        return DiskUsage(self.count + other.count, self.size_bytes + other.size_bytes)


def measure_folder(folder: Path) -> DiskUsage:
    """All files of a folder."""
    # Not `rglob`, which trips over what is deleted or moved back while it looks.
    return measure_files(Path(at) / name for at, _, names in os.walk(folder) for name in names)


def measure_files(files: Iterable[Path]) -> DiskUsage:
    """Those of some files that are there."""
    sizes: list[int] = []
    for path in files:
        with suppress(FileNotFoundError):  # a render finishes its files while they are counted
            sizes.append(path.stat().st_size)
    return DiskUsage(len(sizes), sum(sizes))
