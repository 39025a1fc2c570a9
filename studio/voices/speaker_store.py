"""The folders of a speaker library, one for each speaker; read, and written atomically."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import soundfile
from filelock import FileLock, Timeout

from studio.audio.clip import Clip, write_wav
from studio.errors import Conflict, NotAllowed, NotFound, StorageFailed
from studio.storage.disk import (
    UNFINISHED,
    Disk,
    check_is_file,
    list_folders,
    measure_checksum,
    open_atomic,
    open_file,
    read_file,
    storage_errors,
)
from studio.storage.file_cache import FileCache
from studio.storage.records import check_sum, mend, restore_rows
from studio.storage.trash import TRASH_RETENTION_S, TrashFolder
from studio.voices.speaker import MoodSample, RemovedSpeaker, SampleVersion, Speaker
from studio.voices.speaker_record import (
    MAIN_SAMPLE,
    MoodRecord,
    SampleVersionRecord,
    SpeakerRecord,
    read_record,
    write_record,
)

RECORD_FILE = "speaker.json"

MAX_VERSIONS = 10
VERSION_RETENTION_DAYS = 30

Clock = Callable[[], datetime]

_LOCK_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class StoredSpeaker:
    """A speaker, and whether its record is as the studio wrote it, or was rebuilt."""

    speaker: Speaker
    is_intact: bool
    is_rebuilt: bool


class SpeakerStore:
    """Folders on disk; safe to use from several threads and processes at once.

    Readers need no lock: a folder appears and vanishes whole. Whoever writes holds
    `lock_for_writing`.

    Attributes:
        trash: Speakers that were removed.
        closed_because: Why nobody may write any more; None while they may.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        # One writer at a time, among threads and among processes.
        self._lock = FileLock(root / ".lock", timeout=_LOCK_TIMEOUT_S)
        self.trash = TrashFolder(
            root / ".trash", Disk(), "This voice isn't among the removed ones any more."
        )
        self._speakers: FileCache[StoredSpeaker] = FileCache()
        self._checksums: FileCache[int] = FileCache()
        self._lengths_s: FileCache[float | None] = FileCache()
        self._names: FileCache[str] = FileCache()
        self.on_change: Callable[[], None] = lambda: None
        self.closed_because: str | None = None

    def require_open(self) -> None:
        """Do nothing while changes are taken.

        Raises:
            NotAllowed: They aren't, and why.
        """
        if self.closed_because is not None:
            raise NotAllowed(self.closed_because)

    def folder(self, speaker_id: str) -> Path:
        """The folder of a speaker's files."""
        return self._root / speaker_id

    def list_ids(self) -> list[str]:
        """The names of all speakers' folders, readable or not.

        Raises:
            StorageFailed: The library's folder can't be read.
        """
        try:
            return list_folders(self._root)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageFailed(
                f"The speaker library at {self._root} can't be read: {error.strerror}. Choose"
                " another workspace folder."
            ) from error

    def read(self, speaker_id: str) -> SpeakerRecord:
        """A speaker's record."""
        return read_record(self.folder(speaker_id) / RECORD_FILE)

    def load(self, speaker_id: str) -> StoredSpeaker:
        """A speaker, read once for each state of its record; as `read` otherwise."""
        try:
            return self._speakers.get(f"{self._root}/{speaker_id}/{RECORD_FILE}", _load_speaker)
        except OSError:
            return _load_speaker(self.folder(speaker_id) / RECORD_FILE)

    def list_removed(self) -> Iterator[RemovedSpeaker]:
        """Speakers in the trash, the latest first; to restore a damaged one says what is wrong."""
        for folder, removed_s in self.trash.list_removed():
            try:
                name = self._names.get(folder / RECORD_FILE, lambda one: read_record(one).name)
            except (StorageFailed, OSError):
                name = f"Damaged voice {folder.name}"
            yield RemovedSpeaker(folder.name, name, removed_s)

    def measure_length_s(self, sample: Path) -> float | None:
        """Seconds of a stored recording, None if it can't be read; cached by the file's state."""
        try:
            return self._lengths_s.get(sample, _read_length_s)
        except OSError:
            return None

    def find_damaged(self, stored: StoredSpeaker) -> list[str]:
        """Names of a speaker's files that have changed since the studio wrote them."""
        speaker, damaged = stored.speaker, [] if stored.is_intact else [RECORD_FILE]
        for name, checksum in speaker.checksums.items():
            with suppress(OSError):  # missing ones are found elsewhere
                path = self.folder(speaker.speaker_id) / name
                if self._checksums.get(path, measure_checksum) != checksum:
                    damaged.append(name)
        return damaged

    @contextmanager
    def lock_for_writing(self) -> Iterator[None]:
        """Hold the library's lock; clears what an interrupted writer left behind.

        Raises:
            Conflict: Another process holds it.
            NotAllowed: The library is closed.
        """
        self.require_open()
        with storage_errors(self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            try:
                with self._lock:
                    for pattern in (".new-*", ".gone-*", f"*/{UNFINISHED}"):
                        for leftover in self._root.glob(pattern):
                            Disk().remove(leftover)
                    self.trash.empty(older_than_s=TRASH_RETENTION_S)
                    try:
                        yield
                    finally:
                        self.on_change()
            except Timeout as error:
                raise Conflict(
                    "Another studio is changing the voices here. Try again in a moment."
                ) from error

    def create(self, record: SpeakerRecord, clips: Mapping[str, Clip]) -> Speaker:
        """Make a speaker's folder, which appears whole, under a new id.

        Args:
            record: What goes into `speaker.json`.
            clips: Its recordings by file name.
        """
        speaker_id = secrets.token_hex(6)
        unfinished = self._root / f".new-{speaker_id}"
        unfinished.mkdir()
        for file_name, clip in clips.items():
            write_wav(unfinished / file_name, clip)
        checksums = {name: measure_checksum(unfinished / name) for name in clips}
        record = record.with_fields(checksums=checksums)
        write_record(unfinished / RECORD_FILE, record)
        Disk().move(unfinished, self.folder(speaker_id))
        return build_speaker(self.folder(speaker_id), record)


def build_speaker(folder: Path, record: SpeakerRecord) -> Speaker:
    """A record with the paths of its recordings; the folder's name is the speaker's id."""
    return Speaker(
        speaker_id=folder.name,
        sample=folder / MAIN_SAMPLE if record.has_sample else None,
        moods=tuple(
            MoodSample(path=folder / one.file_name, **one.model_dump()) for one in record.moods
        ),
        formers=tuple(
            SampleVersion(
                path=folder / one.file_name, **one.model_dump(exclude={"transcript", "consent_at"})
            )
            for one in record.formers
        ),
        **record.model_dump(exclude={"has_sample", "moods", "formers", "is_rebuilt"}),
    )


def get_utc_now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


class SpeakerEdit:
    """A speaker's record and recordings while they are changed, under the library's lock.

    Recordings that are replaced or removed are kept for a while as earlier versions.

    Attributes:
        folder: Where the speaker's files are.
        record: What it is changed to, written by `commit`.
    """

    def __init__(self, folder: Path, now: Clock) -> None:
        self.folder = folder
        self.record = self._before = read_record(folder / RECORD_FILE)
        with storage_errors(folder):
            _undo_replaced(folder, self.record)
        self._states = {name: _read_state(folder / name) for name in _list_files(self.record)}
        self._now = now

    @property
    def speaker(self) -> Speaker:
        return build_speaker(self.folder, self.record)

    def save_version(self, sample_id: str | None, *, removed: bool) -> None:
        """Copy a sample's recording, before it is changed or removed; the oldest make room.

        Args:
            sample_id: None for the main sample.
            removed: Whether the sample goes with its recording.
        """
        if removed:
            self.release_original(sample_id, removed=True)
        path = self.folder / self.record.recording_of(sample_id)
        if path.is_file():
            fresh = self._describe_version(sample_id, removed=removed)
            _copy_recording(path, self.folder / fresh.file_name)
            self._add_version(fresh)

    def keep_original(self, sample_id: str | None, clip: Clip) -> None:
        """Keep the recording that a sample was denoised from; an earlier one makes room."""
        self.release_original(sample_id, removed=False)
        fresh = self._describe_version(sample_id, original=True)
        write_wav(self.folder / fresh.file_name, clip)
        self._add_version(fresh)

    def release_original(self, sample_id: str | None, *, removed: bool) -> None:
        """Make the original of a sample an earlier version like others, kept for a while."""
        at = self._now().isoformat()
        released = {"original": False, "removed": removed, "at": at}
        formers = (
            one.model_copy(update=released) if one.original and one.sample_id == sample_id else one
            for one in self.record.formers
        )
        self.record = self.record.with_fields(formers=tuple(formers))

    def _describe_version(
        self, sample_id: str | None, *, removed: bool = False, original: bool = False
    ) -> SampleVersionRecord:
        mood: MoodRecord | None = None if sample_id is None else self.record.find_mood(sample_id)
        sample = mood or self.record
        return SampleVersionRecord(
            former_id=secrets.token_hex(4),
            sample_id=sample_id,
            mood=mood.mood if mood else None,
            transcript=sample.transcript,
            consent_at=sample.consent_at,
            removed=removed,
            original=original,
            at=self._now().isoformat(),
        )

    def _add_version(self, fresh: SampleVersionRecord) -> None:
        """Add a version; what is older than others makes room, but for originals."""
        kept = [one for one in self.record.formers if one.original or not self._is_expired(one)]
        versions = [*kept, fresh]
        for one in [one for one in versions if not one.original][:-MAX_VERSIONS]:
            versions.remove(one)
        self.record = self.record.with_fields(formers=tuple(versions))

    def restore_version(self, version_id: str) -> None:
        """Put a recording back where it was.

        Raises:
            NotFound: The recording isn't kept any more.
        """
        version = self.record.find_version(version_id)
        source = self.folder / version.file_name
        if not source.is_file():
            raise NotFound(f"This recording of {self.record.name} isn't kept any more.")
        restored = self.record.with_version_restored(version_id)
        if version.removed and version.sample_id is None and self.record.has_sample:
            self.save_version(None, removed=True)  # the current one is replaced
        if version.original:  # the two change places
            other = self._describe_version(version.sample_id, original=True)
            current = self.folder / self.record.recording_of(version.sample_id)
            _copy_recording(current, self.folder / other.file_name)
            self._add_version(other)
            restored = self.record.with_version_restored(version_id)
        kept = tuple(one for one in self.record.formers if one.former_id != version_id)
        self.record = restored.with_fields(formers=kept)
        _copy_recording(source, self.folder / restored.recording_of(version.sample_id))

    def commit(self) -> None:
        """Write the record, then delete the recordings that it doesn't name any more."""
        checksums = dict(self._measure_checksums())
        self.record = self.record.with_fields(checksums=checksums)
        write_record(self.folder / RECORD_FILE, self.record)
        gone = set(_list_files(self._before))
        if not any(self.folder.glob("speaker.damaged-*")):  # it may name others
            gone |= {path.name for path in self.folder.glob("former-*.wav")}
            gone |= {path.name for path in self.folder.glob("mood-*.wav")}
        for name in gone - set(_list_files(self.record)):
            (self.folder / name).unlink(missing_ok=True)

    def _measure_checksums(self) -> Iterator[tuple[str, int]]:
        """Checksums of all recordings; one that didn't change keeps its own, even if damaged."""
        known = self._before.checksums
        for name in _list_files(self.record):
            state = _read_state(self.folder / name)
            if name in known and state == self._states.get(name):
                yield name, known[name]
            elif state is not None:
                yield name, measure_checksum(self.folder / name)

    def _is_expired(self, version: SampleVersionRecord) -> bool:
        age = self._now() - datetime.fromisoformat(version.at)
        return age > timedelta(days=VERSION_RETENTION_DAYS)


def _undo_replaced(folder: Path, record: SpeakerRecord) -> None:
    """Put back a recording that was replaced before the record of that was written.

    Its earlier version lies beside it then, under a name that the record doesn't know.
    """
    unknown = {path.name for path in folder.glob("former-*.wav")} - set(_list_files(record))
    kept = {measure_checksum(folder / name): name for name in unknown}
    for name in record.recordings if kept else ():
        checksum = record.checksums.get(name)
        if checksum in kept and measure_checksum(folder / name) != checksum:
            (folder / kept[checksum]).replace(folder / name)


def _list_files(record: SpeakerRecord) -> list[str]:
    """Names of all recordings that a record names, earlier versions included."""
    return [*record.recordings, *(one.file_name for one in record.formers)]


def _read_state(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is replaced; None without a file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _load_speaker(path: Path) -> StoredSpeaker:
    record, data = read_record(path), restore_rows(read_file(path))
    is_intact = record.is_rebuilt  # which is told otherwise
    with suppress(ValueError):
        check_sum(data)
        is_intact = is_intact or mend(data) == data
    return StoredSpeaker(build_speaker(path.parent, record), is_intact, record.is_rebuilt)


def _read_length_s(path: Path) -> float | None:
    try:
        check_is_file(path)
        return float(soundfile.info(path).duration)
    except (OSError, RuntimeError):
        return None


def _copy_recording(source: Path, target: Path) -> None:
    with open_file(source) as recording, open_atomic(target) as file:
        shutil.copyfileobj(recording, file)
