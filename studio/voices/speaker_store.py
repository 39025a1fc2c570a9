"""The folders of a speaker library, one for each speaker: found, read and written whole."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import soundfile
from filelock import FileLock, Timeout

from studio.errors import StorageFailed
from studio.storage.disk import storage_errors
from studio.voices.speaker import MoodSample, SampleVersion, Speaker
from studio.voices.speaker_record import MAIN_SAMPLE, SpeakerRecord, read_record, write_record

RECORD_FILE = "speaker.json"
TRASH_FOLDER = ".trash"

_TRASH_RETENTION_S = 30 * 24 * 3600.0

_LOCK_TIMEOUT_S = 10.0

_Stamp = tuple[int, int, int]


class SpeakerStore:
    """Folders on disk; safe to use from several threads and processes at once.

    Readers need no lock: a folder appears and vanishes whole. Whoever writes does so in `writing`.
    """

    def __init__(self, root: Path) -> None:
        """Use `root` as the library's folder; it is made by the first writer."""
        self._root = root
        # One writer at a time, among threads and among processes.
        self._lock = FileLock(root / ".lock", timeout=_LOCK_TIMEOUT_S)
        self._read: dict[Path, tuple[_Stamp, SpeakerRecord]] = {}
        self._lengths: dict[Path, tuple[_Stamp, float | None]] = {}

    def folder(self, speaker_id: str) -> Path:
        """Where a speaker's files are."""
        return self._root / speaker_id

    def folders(self) -> tuple[Path, ...]:
        """The folders of all speakers, readable or not.

        Raises:
            StorageFailed: The library's folder can't be read.
        """
        try:
            return tuple(
                path
                for path in sorted(self._root.iterdir())
                if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
            )
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StorageFailed(
                f"The speaker library at {self._root} can't be read: {error.strerror}. Choose"
                " another workspace folder."
            ) from error

    def read(self, speaker_id: str) -> SpeakerRecord:
        """A speaker's record, read once for each state of its file.

        Raises:
            StorageFailed: It is missing or can't be understood.
        """
        path = self.folder(speaker_id) / RECORD_FILE
        stamp = _read_stamp(path)
        known = self._read.get(path)
        if stamp is None or known is None or known[0] != stamp:
            record = read_record(path)
            if stamp is not None:
                self._read[path] = (stamp, record)
            return record
        return known[1]

    def speaker(self, speaker_id: str, record: SpeakerRecord) -> Speaker:
        """A record with the places of its recordings."""
        folder = self.folder(speaker_id)
        return Speaker(
            speaker_id,
            record.name,
            folder / MAIN_SAMPLE if record.has_sample else None,
            record.transcript,
            record.language,
            record.preset,
            record.description,
            record.colour,
            record.tags,
            record.consent_at,
            tuple(
                MoodSample(
                    one.sample_id,
                    one.mood,
                    folder / one.file_name,
                    one.transcript,
                    one.consent_at,
                )
                for one in record.moods
            ),
            record.first_name,
            tuple(
                SampleVersion(
                    one.former_id,
                    one.sample_id,
                    one.mood,
                    folder / one.file_name,
                    one.removed,
                    one.at,
                )
                for one in record.formers
            ),
        )

    def length_s(self, sample: Path) -> float | None:
        """Seconds of a kept recording, None when it can't be read; looked up once a state."""
        stamp = _read_stamp(sample)
        if stamp is None:
            return None
        known = self._lengths.get(sample)
        if known is None or known[0] != stamp:
            known = self._lengths[sample] = (stamp, _read_length_s(sample))
        return known[1]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the library's lock; clears what an interrupted writer left behind."""
        with storage_errors(self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            try:
                with self._lock:
                    for pattern in (".new-*", ".gone-*"):
                        for leftover in self._root.glob(pattern):
                            shutil.rmtree(leftover)
                    self._empty_trash()
                    yield
            except Timeout as error:
                raise StorageFailed(
                    f"Another process has held the speaker library at {self._root} for"
                    f" {_LOCK_TIMEOUT_S:g} s. Close it, then try again."
                ) from error

    def place(self, record: SpeakerRecord, fill: Callable[[Path], None]) -> str:
        """Make a speaker's folder, which appears whole; returns its new id.

        Args:
            record: What goes into `speaker.json`.
            fill: Writes the recordings into the folder it is given.
        """
        speaker_id = secrets.token_hex(6)
        unfinished = self._root / f".new-{speaker_id}"
        unfinished.mkdir()
        fill(unfinished)
        write_record(unfinished / RECORD_FILE, record)
        unfinished.rename(self.folder(speaker_id))
        return speaker_id

    def rewrite(self, speaker_id: str, record: SpeakerRecord) -> Speaker:
        """Put another record in the place of a speaker's."""
        write_record(self.folder(speaker_id) / RECORD_FILE, record)
        return self.speaker(speaker_id, record)

    def throw_away(self, speaker_id: str) -> None:
        """Move a speaker's folder into the trash, where it waits for 30 days."""
        thrown = self._root / TRASH_FOLDER / speaker_id
        thrown.parent.mkdir(exist_ok=True)
        self.folder(speaker_id).rename(thrown)
        os.utime(thrown)

    def thrown_away(self) -> dict[str, float]:
        """Ids of the speakers in the trash, and when they came there, in seconds since 1970."""
        try:
            return {
                path.name: path.stat().st_mtime
                for path in sorted((self._root / TRASH_FOLDER).iterdir())
                if path.is_dir() and not path.is_symlink()
            }
        except FileNotFoundError:
            return {}

    def thrown_record(self, speaker_id: str) -> SpeakerRecord:
        """The record of a speaker in the trash.

        Raises:
            StorageFailed: It can't be read.
        """
        return read_record(self._root / TRASH_FOLDER / speaker_id / RECORD_FILE)

    def take_back(self, speaker_id: str, record: SpeakerRecord) -> Speaker:
        """Move a speaker's folder out of the trash, with another record."""
        thrown = self._root / TRASH_FOLDER / speaker_id
        write_record(thrown / RECORD_FILE, record)
        thrown.rename(self.folder(speaker_id))
        return self.speaker(speaker_id, record)

    def delete_thrown(self, speaker_id: str) -> None:
        """Delete a folder in the trash for good; it vanishes whole."""
        gone = self._root / f".gone-{speaker_id}"
        (self._root / TRASH_FOLDER / speaker_id).rename(gone)
        shutil.rmtree(gone)

    def _empty_trash(self) -> None:
        now_s = time.time()
        for speaker_id, thrown_s in self.thrown_away().items():
            if now_s - thrown_s > _TRASH_RETENTION_S:
                self.delete_thrown(speaker_id)


def _read_stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def _read_length_s(path: Path) -> float | None:
    try:
        return float(soundfile.info(path).duration)
    except (OSError, RuntimeError):
        return None
