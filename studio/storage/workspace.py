"""The folders of a studio, and how much of the disk one workspace may take."""

from __future__ import annotations

import math
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from studio.errors import NoRoom, StorageFailed
from studio.storage.disk import measure_folder


def ensure_writable(folder: Path) -> Path:
    """Make a folder and see that files can be written to it.

    Raises:
        StorageFailed: They can't; says how to choose another workspace.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
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
_SPARE = 0.05
"""Of the room, kept for edits: what is deleted to make room is deleted by an edit."""

EXPORTS = "exports"
READINGS = "readings"
TEMP_DIRS = (EXPORTS, READINGS)
"""Folders of a workspace whose files are gone with the answer they are made for."""


class DiskQuota:
    """Measures a workspace now and then, and counts what is sent to it meanwhile.

    Safe from many threads; measuring takes milliseconds for every thousand files.
    """

    def __init__(
        self,
        workspace: Path,
        size_bytes: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nothing is measured yet; `size_bytes` None for one without a bound."""
        self._workspace = workspace
        self._size_bytes = size_bytes
        self._clock = clock
        # Guards the two fields below.
        self._lock = threading.Lock()
        self._held_bytes = 0
        self._measured_s = -math.inf

    @property
    def left_bytes(self) -> int | None:
        """What is left of it now, measured; None without a bound."""
        if self._size_bytes is None:
            return None
        self.measure_anew()
        return max(0, self._size_bytes - self._held())

    @property
    def is_known(self) -> bool:
        """Whether it needn't be measured to be told."""
        unmeasured_s = self._clock() - self._measured_s
        return self._size_bytes is None or unmeasured_s < _MEASURED_EVERY_S

    def measure_anew(self) -> None:
        """What was known doesn't hold any more."""
        self._measured_s = -math.inf

    def take(self, more_bytes: int, *, as_edit: bool = False) -> None:
        """Count what is about to come.

        Args:
            more_bytes: How much may be written.
            as_edit: It may use what is kept for edits.

        Raises:
            NoRoom: There isn't that much left.
        """
        if self._size_bytes is None:
            return
        most_bytes = self._size_bytes * (1 + _SPARE * as_edit)
        held_bytes = self._held()
        with self._lock:
            if held_bytes + more_bytes > most_bytes:
                raise NoRoom(_full(held_bytes, self._size_bytes))
            self._held_bytes += more_bytes

    def _held(self) -> int:
        if not self.is_known:
            held_bytes = sum(
                measure_folder(folder).size_bytes
                for folder in self._workspace.glob("*")
                if folder.name not in TEMP_DIRS
            )
            with self._lock:
                self._held_bytes, self._measured_s = held_bytes, self._clock()
        return self._held_bytes


def remove_temp_files(workspace: Path) -> None:
    """Remove what the end of a process left of files that were made for answers."""
    for name in TEMP_DIRS:
        shutil.rmtree(workspace / name, ignore_errors=True)


def _full(held_bytes: int, size_bytes: int) -> str:
    return (
        f"A visitor may keep {_format_bytes(size_bytes)} here, and "
        f"{_format_bytes(held_bytes)} are in use. "
        "Delete projects, takes or voices you don't need, then free their space in the list of "
        "projects; or use a studio of your own."
    )


def _format_bytes(size_bytes: int) -> str:
    big = size_bytes >= 1_000_000_000
    return f"{size_bytes / 1e9:.1f} GB" if big else f"{size_bytes / 1e6:.0f} MB"
