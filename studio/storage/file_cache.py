"""Values computed from files, computed again only when one of the files has changed.

A file's state is its inode, size and times of change. A file can change twice within one tick of
its file system's clock and keep its size, so the state is settled only once the last change is
further than a tick from now: then any later one has another time. Until then the content decides.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from studio.storage.disk import hash_file

T = TypeVar("T")

_FINE_TICK_NS = 100_000_000
"""More than a tick of Linux (10 ms) and of Windows (16 ms)."""

_COARSE_TICK_NS = 2_000_000_000
"""A tick of FAT; other file systems with times in whole seconds have shorter ones."""

_SECOND_NS = 1_000_000_000
_MAX_VALUES = 20_000


@dataclass(frozen=True, slots=True)
class FileState:
    """The state of some files when it was read.

    Attributes:
        files: Of each file the hash of inode, size and times of change, which takes a sixth of
            their memory; None for one that doesn't exist.
        is_settled: Whether any later change gives another state.
    """

    files: tuple[int | None, ...]
    is_settled: bool


def read_state(*paths: str | os.PathLike[str]) -> FileState:
    """Read the state of files and folders; a folder's changes with the names in it.

    To be called before the files are read: what changes in between gives another state.
    """
    return join_states(stat_or_none(path) for path in paths)


def join_states(
    statuses: Iterable[os.stat_result | None], *, now_ns: Callable[[], int] = time.time_ns
) -> FileState:
    """The state of files by their `stat`; None stands for one that doesn't exist."""
    read_at_ns, is_settled = now_ns(), True
    files: list[int | None] = []
    for status in statuses:
        if status is None:
            files.append(None)
            continue
        changed_ns, moved_ns = status.st_mtime_ns, status.st_ctime_ns
        files.append(hash((status.st_ino, status.st_size, changed_ns, moved_ns)))
        # A time to come, as after the clock was set back, is no later change's either.
        since_ns = min(abs(read_at_ns - changed_ns), abs(read_at_ns - moved_ns))
        if since_ns <= _COARSE_TICK_NS:
            tick_ns = _FINE_TICK_NS if changed_ns % _SECOND_NS else _COARSE_TICK_NS
            is_settled = is_settled and since_ns > tick_ns
    return FileState(tuple(files), is_settled)


def stat_or_none(path: str | os.PathLike[str]) -> os.stat_result | None:
    """The `stat` of a file; None if it doesn't exist."""
    try:
        return os.stat(path)  # noqa: PTH116 - twice as fast as Path.stat, for thousands of files
    except (FileNotFoundError, NotADirectoryError):
        return None


@dataclass(frozen=True, slots=True)
class _Stored(Generic[T]):
    """A value for one state; with a digest where the state alone isn't enough."""

    files: tuple[int | None, ...]
    digest: str | None
    value: T


class StateCache(Generic[T]):
    """Caches a value by key for one state of the files that decide it; safe from any thread."""

    def __init__(self, *, max_values: int = _MAX_VALUES) -> None:
        self._max_values = max_values
        # Guards changes of the table, the oldest first; reading needs no lock.
        self._lock = threading.Lock()
        self._known: dict[Hashable, _Stored[T]] = {}

    def get(
        self,
        key: Hashable,
        state: FileState,
        compute: Callable[[], T],
        digest: Callable[[], str] | None = None,
    ) -> T:
        """The value of `compute`, computed again in another state; its errors pass through.

        Args:
            key: Names the value.
            state: Read before.
            compute: Reads the files.
            digest: That of the files' content, asked until the state is settled; without it no
                value is stored until then.
        """
        known = self._known.get(key)
        if known is not None and known.files == state.files:
            if known.digest is None:
                return known.value
            if digest is not None and digest() == known.digest:
                self._store(key, known.value, state, known.digest)
                return known.value
        content = None if state.is_settled or digest is None else digest()
        value = compute()
        self._store(key, value, state, content)
        return value

    def _store(self, key: Hashable, value: T, state: FileState, digest: str | None) -> None:
        digest = None if state.is_settled else digest
        with self._lock:
            self._known.pop(key, None)
            if state.is_settled or digest is not None:
                self._known[key] = _Stored(state.files, digest, value)
                if len(self._known) > self._max_values:
                    del self._known[next(iter(self._known))]


class FileCache(Generic[T]):
    """Caches values computed from single files; safe from any thread."""

    def __init__(self) -> None:
        self._values: StateCache[T] = StateCache()

    def get(self, path: Path | str, compute: Callable[[Path], T]) -> T:
        """The value of `compute` for a file; computed again if the file has changed."""
        key = str(path)
        state = join_states([os.stat(key)])  # noqa: PTH116 - as in `stat_or_none`
        return self._values.get(
            key, state, lambda: compute(Path(path)), lambda: hash_file(Path(path))
        )
