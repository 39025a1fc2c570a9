"""One installation at a time, whatever number of launches."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from studio.errors import Cancelled

_POLL_S = 0.2


@contextmanager
def install_lock(
    path: Path, *, waiting: Callable[[], None], stop: threading.Event | None = None
) -> Iterator[int]:
    """Hold the lock on `path`; the system frees it when its last holder ends, crashes included.

    Args:
        path: Lock file; made with its folder when absent, and never removed.
        waiting: Called once when another process holds the lock.
        stop: Ends the wait.

    Yields:
        The file's descriptor, for handing on to a child that must keep the lock if we die.

    Raises:
        Cancelled: `stop` was set during the wait.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        _acquire(file, waiting, stop or threading.Event())
        try:
            yield file.fileno()
        finally:
            _release(file)


def _acquire(file: IO[bytes], waiting: Callable[[], None], stop: threading.Event) -> None:
    told = False
    while not _try(file):
        if not told:
            waiting()
            told = True
        if stop.wait(_POLL_S):
            raise Cancelled("The installation was stopped while it waited for another one.")


if sys.platform == "win32":
    import msvcrt

    def _try(file: IO[bytes]) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _release(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _release(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
