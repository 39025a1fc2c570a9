"""Atomic files, strict JSON, and the sizes of files on disk."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import math
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from studio.errors import DiskFull, StorageFailed

log = logging.getLogger(__name__)

_BLOCK_BYTES = 1 << 18
UNFINISHED = ".*.part"
"""What `Disk` leaves where the process ends meanwhile; who holds the folder's lock removes it."""


@contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a new, seekable file that replaces `path` when the block ends without an error.

    After any error the new file is deleted, and an earlier file at `path` is untouched.

    Raises:
        StorageFailed: The folder is missing, can't be written or is full.
    """
    with Disk().replacing(path, synced=True) as file:
        yield file


_FULL = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})

_LEAST_FREE_BYTES = 1_000_000


def is_full(folder: Path) -> bool:
    """Whether the disk of a folder has hardly room for a line; asks no more than its free space."""
    try:
        return shutil.disk_usage(folder).free < _LEAST_FREE_BYTES
    except OSError:
        return False


def is_full_error(error: OSError) -> bool:
    """Whether an error says that a disk has no room, or no more for this user or this file."""
    return error.errno in _FULL


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Raise a `StorageFailed` for an `OSError` in the block; it names a file that people know.

    It is a `DiskFull` if the disk has no room, or no more for this user.

    The folder's path goes to the log only, as the message may be shown to a visitor.
    """
    try:
        yield
    except OSError as error:
        log.info("%s: %s", path, error)
        reason = error.strerror or str(error)
        kind = DiskFull if is_full_error(error) else StorageFailed
        what = "This can't be saved" if _is_working(path) else f"“{path.name}” can't be written"
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not path.parent.is_dir():
            raise kind(f"{what}: there is no such folder. Create it, or choose another.") from error
        raise kind(
            f"{what}: {reason}. Free some space or choose a folder you may write to."
        ) from error


def _is_working(path: Path) -> bool:
    """Whether a file has a name of its own only when it is whole."""
    return path.name.startswith(".") or path.suffix == ".part"


class Disk:
    """Writes files so that each is whole or absent.

    Raises:
        StorageFailed: From every method: the disk is full, or can't be written.
    """

    def write_whole(
        self, path: Path, data: bytes | Iterable[bytes], *, synced: bool = True
    ) -> None:
        """Write a file, or replace it; after any error an earlier file is untouched.

        Errors that `data` raises pass through.

        Args:
            path: The file.
            data: Its content.
            synced: Wait until the disk has it. Without that, a crash of the process does the file
                no harm, but after a power failure it may be empty.
        """
        with self.replacing(path, synced=synced) as file:
            for block in (data,) if isinstance(data, bytes) else data:
                self._write(file, block)
        if synced:
            self._sync_folder(path.parent)

    @contextmanager
    def replacing(self, path: Path, *, synced: bool) -> Iterator[BinaryIO]:
        """Open a new file that replaces `path` when the block ends, and is deleted on an error."""
        unfinished = path.with_name(f".{secrets.token_hex(8)}.part")
        with storage_errors(path):
            try:
                with unfinished.open("xb") as file:
                    yield file
                    if synced:
                        self._sync(file)
                self._rename(unfinished, path)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise

    def append(self, file: BinaryIO, data: bytes, path: Path) -> None:
        """Append to an open, unbuffered file; after an error it may have a part of the data."""
        with storage_errors(path):
            self._write(file, data)

    def sync(self, file: BinaryIO, path: Path) -> None:
        """Wait until the disk has what was appended."""
        with storage_errors(path):
            self._sync(file)

    def move(self, source: Path, target: Path) -> None:
        """Move a finished file to its place."""
        with storage_errors(target):
            self._rename(source, target)
        self._sync_folder(target.parent)

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents."""
        with storage_errors(path):
            path.mkdir(parents=True, exist_ok=True)

    def remove(self, path: Path) -> None:
        """Delete a file or a whole folder; no error if it doesn't exist, or is moved meanwhile."""
        with storage_errors(path), suppress(FileNotFoundError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def check_free_space(self, folder: Path, wanted_bytes: int) -> None:
        """Refuse a write for which the disk has no room; the folder need not exist yet."""
        existing = next(one for one in (folder, *folder.parents) if one.exists())
        with storage_errors(folder):
            free_bytes = shutil.disk_usage(existing).free
        if wanted_bytes > free_bytes:
            needed_bytes = max(wanted_bytes, _LEAST_FREE_BYTES)  # never “0 MB”
            raise DiskFull(
                f"This needs {format_bytes(needed_bytes)}, and the disk has "
                f"{format_bytes(free_bytes)} left. Free some space first."
            )

    def copy(self, source: Path, target: Path) -> None:
        """Copy a file, which appears whole; does nothing if it has been deleted meanwhile."""
        unfinished = target.with_name(f".{secrets.token_hex(8)}.part")
        with storage_errors(target):
            try:
                self._copy(source, unfinished)
                self._rename(unfinished, target)
            except FileNotFoundError:
                pass
            finally:
                unfinished.unlink(missing_ok=True)

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
        """Sync a folder, which holds the names of its files; Windows can't do that."""
        if os.name != "posix":
            return
        with storage_errors(folder):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def format_bytes(size_bytes: int) -> str:
    """A size for people, in GB or MB."""
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"


_SURROGATE_ESCAPE = b"\\ud"
"""Start of a lone surrogate's escape, which JSON can hold and UTF-8 can't."""


def read_json(data: bytes) -> Any:
    """Read JSON that the studio itself could have written.

    Raises:
        ValueError: It isn't valid JSON, or holds NaN, infinite numbers, lone surrogates, or too
            deep a nesting.
    """
    try:
        value = _DECODER.decode(data.decode(json.detect_encoding(data), "surrogatepass"))
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


_DECODER = json.JSONDecoder(parse_constant=_reject_number, parse_float=_parse_finite)


def list_folders(root: Path, *, links: bool = False) -> list[str]:
    """The names of the folders in a folder, in their order, without hidden ones.

    With `links`, links to folders count, too.
    """
    with os.scandir(root) as entries:
        return sorted(
            one.name for one in entries if one.name[0] != "." and one.is_dir(follow_symlinks=links)
        )


def check_is_file(path: str | os.PathLike[str]) -> None:
    """Check that a path is a file's: opening a pipe would wait for ever.

    Raises:
        OSError: There is none; an `IsADirectoryError` where something else is in its place.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - a string, for thousands of files
        raise IsADirectoryError(errno.EISDIR, "Something else is in the place of this file")


def open_file(path: Path) -> BufferedReader:
    """Open a file to be read; raises as `check_is_file`, or if it can't be opened."""
    check_is_file(path)
    return path.open("rb")


def read_file(path: Path) -> bytes:
    """Read a whole file; raises as `open_file`."""
    with open_file(path) as file:
        return file.read()


def hash_file(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits; raises as `open_file`."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def measure_checksum(path: Path) -> int:
    """The CRC-32 of a file, which is read block by block; raises as `open_file`."""
    checksum = 0
    with open_file(path) as file:
        while block := file.read(_BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """A number of files, or of projects, and their total size."""

    count: int = 0
    size_bytes: int = 0

    def __add__(self, other: DiskUsage) -> DiskUsage:
        return DiskUsage(self.count + other.count, self.size_bytes + other.size_bytes)


def measure_folder(folder: Path) -> DiskUsage:
    """Count and measure all files of a folder."""
    # Not `rglob`, which fails on a folder that is deleted or moved during the walk.
    return measure_files(Path(at) / name for at, _, names in os.walk(folder) for name in names)


def measure_files(files: Iterable[Path]) -> DiskUsage:
    """Count and measure those of some files that exist."""
    sizes: list[int] = []
    for path in files:
        with suppress(FileNotFoundError):  # a render may rename its files meanwhile
            sizes.append(path.stat().st_size)
    return DiskUsage(len(sizes), sum(sizes))
