"""Audio files made for other programs, which fetch them afterwards; the newest are kept."""

from __future__ import annotations

import secrets
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from studio.audio.formats import AudioFormat
from studio.errors import NotFound
from studio.storage.disk import storage_errors
from studio.storage.workspace import EXPORTS, DiskQuota

KEPT_FILES = 20
"""How many a studio keeps; a new one evicts the oldest."""

_MARK = "spoken-"


@dataclass(frozen=True, slots=True)
class SpokenFile:
    """An audio file, and the key by which it is fetched, which nobody can guess."""

    key: str
    path: Path

    @property
    def address(self) -> str:
        """What programs are told in place of its path."""
        return f"spoken/{self.key}/{self.path.name}"

    @property
    def media_type(self) -> str:
        return AudioFormat(self.path.suffix.removeprefix(".")).encoding.media_type


@dataclass(frozen=True, slots=True)
class SpokenScene:
    """A rendered dialog as a file, and what there is to know about it.

    Attributes:
        file: The audio.
        lines: How many lines it has as the page counts them, those that failed among them.
        audio_s: Its length.
        failed: Lines that couldn't be spoken and are left out, and why.
        notices: What was left out of the text, and what the voices can't do.
    """

    file: SpokenFile
    lines: int
    audio_s: float
    failed: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class SpokenFiles:
    """The files of one workspace, from any thread; the next start of the studio deletes them."""

    def __init__(self, workspace: Path, quota: DiskQuota) -> None:
        self._root = workspace / EXPORTS
        self._quota = quota
        # Guards the table, which requests in several threads read and change.
        self._lock = threading.Lock()
        self._files: dict[str, SpokenFile] = {}

    def make(self, name: str, write: Callable[[Path], object]) -> SpokenFile:
        """Have a file written, and keep it.

        Args:
            name: Its name for whoever fetches it.
            write: Writes to a path that doesn't exist yet.
        """
        key = secrets.token_urlsafe(16)
        made = SpokenFile(key, self._root / f"{_MARK}{key}" / name)
        with storage_errors(made.path):
            made.path.parent.mkdir(parents=True)
        try:
            write(made.path)
            self._quota.reserve(made.path.stat().st_size)
        except BaseException:
            _remove(made)
            raise
        with self._lock:
            self._files[key] = made
            gone = list(self._files.values())[:-KEPT_FILES]
            for one in gone:
                del self._files[one.key]
        for one in gone:
            _remove(one)
        return made

    def find(self, key: str) -> SpokenFile:
        """A file by its key.

        Raises:
            NotFound: It never existed, or newer ones took its place.
        """
        with self._lock:
            made = self._files.get(key)
        if made is None or not made.path.is_file():
            raise NotFound("This file isn't there any more; ask for it again.")
        return made


def _remove(made: SpokenFile) -> None:
    shutil.rmtree(made.path.parent, ignore_errors=True)
