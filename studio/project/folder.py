"""A project's folder: what lies where, how it is opened and saved, and how it is copied.

project.json     a recent snapshot of the document, with its position in the journal
edits.jsonl      the journal: every change ever made
pending.json     lines that a render still has to make; absent if there are none
place.json       the last position
takes/           audio and record of every take
audio/           recordings that audio lines play
voices/          voices of an imported project, until they are in the library
.making/         segments in progress; deleted at a restart
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Annotated, Any, BinaryIO

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from studio.audio.decode import DEFAULT_LIMITS
from studio.audio.guarded_decode import decode_guarded
from studio.errors import AudioRejected, Conflict, NotFound, StorageFailed
from studio.project.delta import apply_delta, read_delta
from studio.project.document import Document, check_audio_name, encode_document, read_document
from studio.project.history import Author, EntryKind, History, Journal, Marks, read_entries
from studio.project.ops import LineId
from studio.project.takes import is_unused_take
from studio.storage.disk import Disk, hash_file, read_json

SNAPSHOT_VERSION = 1
SNAPSHOT_FILE = "project.json"
JOURNAL_FILE = "edits.jsonl"
PENDING_FILE = "pending.json"
TAKES_FOLDER = "takes"
AUDIO_FOLDER = "audio"
VOICES_FOLDER = "voices"
SEGMENTS_FOLDER = ".making"
LOCK_FILE = ".lock"

MAX_TIME_S = 253_402_300_000.0
"""In the year 9999, the last that dates can have."""

MAX_SNAPSHOT_BYTES = 64_000_000
"""Limit for an imported project; thirty thousand lines take a tenth of it."""

_MAX_SAVED_EDIT_IDS = 200
_JSON_ENCODER = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class OpenedHistory:
    """A project's history; `seen` has the ids of edits that took effect, the latest last."""

    history: History
    journal: Journal
    edit_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectSnapshot:
    """A consistent state of a project; later changes are in the journal from `journal_bytes` on.

    Attributes:
        edit_ids: As `seen` in `OpenedHistory`.
        audio_s: Total duration of what could be played.
        is_truncated: Whether the journal is shorter than `journal_bytes`.
    """

    document: Document = field(default_factory=Document)
    marks: Marks = field(default_factory=Marks)
    journal_bytes: int = 0
    edit_ids: tuple[str, ...] = ()
    audio_s: float = 0.0
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class ProjectSummary:
    """A project in a list; `edited_at_s` in seconds since 1970."""

    project_id: str
    name: str
    edited_at_s: float
    lines: int
    audio_s: float


_Offset = Annotated[int, Field(ge=0)]


class _HistoryRecord(BaseModel):
    """The marks of the history, as a record in a snapshot."""

    model_config = ConfigDict(frozen=True)

    journal_bytes: _Offset
    rev: _Offset
    undo: _Offset | None
    redo: _Offset | None
    last: tuple[str, str, float] | None
    at_s: Annotated[float, Field(ge=0, le=MAX_TIME_S)]
    seen: tuple[str, ...]
    gone: tuple[_Offset, ...] = ()

    def to_marks(self) -> Marks:
        gone = frozenset(self.gone)
        return Marks(self.rev, self.undo, self.redo, self.last, self.at_s, gone)


class ProjectFolder:
    """One folder, held by one process at a time."""

    def __init__(self, root: Path, disk: Disk) -> None:
        """Lock a project's folder.

        Raises:
            NotFound: There is no such project.
            Conflict: Another studio has it open.
        """
        if not (root / JOURNAL_FILE).is_file() and not (root / SNAPSHOT_FILE).is_file():
            raise NotFound("This project isn't there any more.")
        self.root = root
        self.disk = disk
        # The system releases the lock when the process ends in any way. It isn't bound to a thread,
        # as one thread opens a project and another one closes it.
        self._file_lock = FileLock(root / LOCK_FILE, timeout=0, thread_local=False)
        try:
            self._file_lock.acquire()
        except Timeout as error:
            message = "This project is open in another studio. Close it there first."
            raise Conflict(message) from error
        self._mark_lock()
        self.notices: list[str] = []

    @staticmethod
    def create(root: Path, document: Document, at_s: float, disk: Disk) -> None:
        """Create a new project's folder.

        Raises:
            StorageFailed: It can't be written; the project isn't created.
        """
        try:
            disk.make_folder(root)
            journal = Journal(root / JOURNAL_FILE, disk)
            try:
                # In the journal, too, which must be complete without the snapshot.
                history = History(journal, Document(), Marks())
                history.record(document, Author(), at_s, EntryKind.MADE)
                journal.sync()
            finally:
                journal.close()
            snapshot = ProjectSnapshot(document, history.marks, journal.size_bytes)
            disk.write_whole(root / SNAPSHOT_FILE, _encode_snapshot(snapshot))
        except StorageFailed:
            disk.remove(root)
            raise

    def open_history(self) -> OpenedHistory:
        """Read the document and its history from disk.

        Raises:
            StorageFailed: Neither snapshot nor journal can be read.
        """
        self.disk.remove(self.root / SEGMENTS_FOLDER)
        journal = Journal(self.root / JOURNAL_FILE, self.disk)
        snapshot = self._read_snapshot_or_empty(journal.size_bytes)
        history = History(journal, snapshot.document, snapshot.marks)
        seen = list(snapshot.edit_ids)
        try:
            for placed in journal.replay(snapshot.journal_bytes):
                history.replay(placed.entry, placed.start)
                seen += [placed.entry["edit_id"]] if "edit_id" in placed.entry else []
        except (LookupError, ValueError, TypeError, AssertionError) as error:
            journal.close()
            raise StorageFailed(
                "This project can't be read: its history doesn't fit its lines. Bring its folder "
                f"({self.root.name}) back from a copy."
            ) from error
        if journal.damaged_copy is not None:
            self.notices.append(
                "A part of the history was damaged and is left out; a copy of all of it is kept in "
                f"“{journal.damaged_copy.name}”."
            )
        opened = OpenedHistory(history, journal, tuple(seen))
        if snapshot.is_truncated:
            # At once, as it must not point beyond the entries that come next.
            self.save_snapshot(replace(snapshot, is_truncated=False))
        elif journal.size_bytes and not snapshot.journal_bytes:  # it was damaged or missing
            self.save_snapshot(
                ProjectSnapshot(
                    history.document, history.marks, journal.size_bytes, opened.edit_ids
                )
            )
        return opened

    def save_snapshot(self, snapshot: ProjectSnapshot) -> None:
        """Write a snapshot; the journal has to be synced before.

        Raises:
            StorageFailed: It can't be written; the earlier one stays.
        """
        self.disk.write_whole(self.root / SNAPSHOT_FILE, _encode_snapshot(snapshot))

    def read_pending(self) -> Mapping[str, int | None]:
        """The lines that a render still has to make, in order, with a new seed if one is wanted."""
        try:
            pending = json.loads((self.root / PENDING_FILE).read_bytes())["lines"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return {str(line_id): seed for line_id, seed in dict(pending).items()}

    def write_pending(self, pending: Mapping[str, int | None]) -> None:
        """Save the lines that a render still has to make.

        Raises:
            StorageFailed: It can't be written.
        """
        path = self.root / PENDING_FILE
        if not pending:
            self.disk.remove(path)
            return
        data = json.dumps({"lines": pending}, indent=1).encode() + b"\n"
        # Not synced, as the user is waiting; after a power failure the render isn't resumed.
        self.disk.write_whole(path, data, synced=False)

    def close(self) -> None:
        """Release the folder's lock."""
        self._mark_lock()
        self._file_lock.release()

    def _mark_lock(self) -> None:
        """Let other processes see by the lock's time that a studio may have changed the files."""
        with suppress(OSError):
            os.utime(self.root / LOCK_FILE)

    def _read_snapshot_or_empty(self, journal_bytes: int) -> ProjectSnapshot:
        """Read the snapshot; without a usable one the journal alone is read."""
        path = self.root / SNAPSHOT_FILE
        try:
            snapshot = read_snapshot(path)
        except FileNotFoundError:
            return ProjectSnapshot()
        except (OSError, ValueError, KeyError, TypeError) as error:
            if not journal_bytes:
                raise StorageFailed(
                    f"This project can't be read: its {SNAPSHOT_FILE} is damaged and it has "
                    f"no history. Bring its folder ({self.root.name}) back from a copy."
                ) from error
            kept = path.with_name(f"{path.stem}.damaged-{zlib.crc32(path.read_bytes()):08x}.json")
            self.disk.copy(path, kept)
            self.notices.append(
                f"{SNAPSHOT_FILE} was damaged; it was made again from the history. A copy of it is "
                f"kept in “{kept.name}”."
            )
            return ProjectSnapshot()
        if snapshot.journal_bytes > journal_bytes:
            self.notices.append("The history is shorter than it was; undo goes less far back.")
            marks = Marks(rev=snapshot.marks.rev, at_s=snapshot.marks.at_s)
            return replace(snapshot, marks=marks, journal_bytes=journal_bytes, is_truncated=True)
        return snapshot


def read_summary(root: Path) -> ProjectSummary:
    """The summary of a project that isn't open.

    Raises:
        OSError, ValueError, KeyError, TypeError: Its snapshot can't be read.
    """
    record = _read_record(root / SNAPSHOT_FILE)
    edited_at_s = _HistoryRecord.model_validate(record["history"]).at_s
    audio_s = float(record["audio_s"])
    return ProjectSummary(
        root.name, str(record["name"]), edited_at_s, len(record["lines"]), audio_s
    )


def recover_summary(root: Path) -> ProjectSummary | None:
    """The summary of a project whose snapshot can't be read, as far as its history goes.

    Returns:
        None if the folder isn't a project's, or is being removed.
    """
    if not any((root / name).is_file() for name in (SNAPSHOT_FILE, JOURNAL_FILE)):
        return None
    document, at_s = Document(), 0.0
    with suppress(OSError, LookupError, ValueError, TypeError, AssertionError):
        for placed in read_entries(root / JOURNAL_FILE):
            document = apply_delta(document, read_delta(placed.entry["delta"]))
            at_s = float(placed.entry["at"])
    name = document.name or f"Damaged project {root.name}"
    return ProjectSummary(root.name, name, at_s, len(document.order), 0.0)


def read_saved_document(root: Path) -> Document:
    """The last saved document of a project that isn't open.

    Raises:
        OSError, ValueError, KeyError, TypeError, StorageFailed: Its snapshot can't be read.
    """
    return read_snapshot(root / SNAPSHOT_FILE).document


def _encode_snapshot(snapshot: ProjectSnapshot) -> bytes:
    marks = snapshot.marks
    record: dict[str, Any] = {"version": SNAPSHOT_VERSION, **encode_document(snapshot.document)}
    record["audio_s"] = snapshot.audio_s
    record["history"] = {
        "journal_bytes": snapshot.journal_bytes,
        "rev": marks.rev,
        "undo": marks.undo,
        "redo": marks.redo,
        "last": list(marks.last) if marks.last else None,
        "at_s": marks.at_s,
        "seen": snapshot.edit_ids[-_MAX_SAVED_EDIT_IDS:],
        "gone": sorted(marks.removed_steps),
    }
    return _add_checksum(_encode_record(record).encode("utf-8"))


_OPENING = b"{\n"
_SUM_ROW = re.compile(rb'\{\n "sum": "([0-9a-f]{8})",\n')


def _add_checksum(data: bytes) -> bytes:
    """Insert a first row with the CRC-32 of all other bytes."""
    return _OPENING + b' "sum": "%08x",\n' % zlib.crc32(data) + data[len(_OPENING) :]


def _read_record(path: Path) -> Any:
    """Read a snapshot's record; those of the first studios have no checksum.

    Raises:
        OSError: It can't be read.
        ValueError: It is malformed, or has changed since it was written.
    """
    data = path.read_bytes()
    row = _SUM_ROW.match(data)
    if row is not None and int(row[1], 16) != zlib.crc32(_OPENING + data[row.end() :]):
        raise ValueError("it doesn't fit its checksum")
    return read_json(data)


def _encode_record(record: Mapping[str, Any]) -> str:
    """Encode JSON with a row for each line of the dialog.

    Not with `indent`, which takes about twice as long, as it doesn't use the encoder in C.
    """
    rows = [
        f"{_JSON_ENCODER.encode(name)}: {_encode_value(value)}" for name, value in record.items()
    ]
    return "{\n " + ",\n ".join(rows) + "\n}\n"


def _encode_value(value: Any) -> str:
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return _JSON_ENCODER.encode(value)
    return "[\n  " + ",\n  ".join(map(_JSON_ENCODER.encode, value)) + "\n ]"


def read_snapshot(path: Path) -> ProjectSnapshot:
    """Read a snapshot from its file.

    Raises:
        OSError, ValueError, KeyError, TypeError: It can't be read.
        StorageFailed: It was made by a newer studio.
    """
    record = _read_record(path)
    if record["version"] != SNAPSHOT_VERSION:
        raise StorageFailed("This project was made by a newer studio. Use that one to open it.")
    past = _HistoryRecord.model_validate(record["history"])
    audio_s = float(record["audio_s"])
    return ProjectSnapshot(
        read_document(record), past.to_marks(), past.journal_bytes, past.seen, audio_s
    )


# A consistent view of a project's files while it is being edited: the snapshot is in memory, the
# journal only grows, and takes and recordings never change. So nobody waits while they are packed.

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FrozenFolder:
    """A consistent view of a project's files.

    Attributes:
        snapshot: The content of the snapshot's file.
        journal_bytes: The journal's length at that time.
        document: The same, or a little later than the snapshot.
    """

    root: Path
    snapshot: bytes
    journal_bytes: int
    document: Document

    def read_journal(self) -> Iterator[bytes]:
        """The journal up to that length, block by block."""
        left = self.journal_bytes
        with (self.root / JOURNAL_FILE).open("rb") as file:
            while left and (block := file.read(min(left, _BLOCK_BYTES))):
                left -= len(block)
                yield block

    def iter_files(self, *, deleted: bool = True) -> Iterator[Path]:
        """The files of takes and recordings.

        Args:
            deleted: Whether to include the audio of deleted takes, which undo could restore;
                without it they are as if freed.
        """
        for path in sorted((self.root / TAKES_FOLDER).rglob("*")):
            line_id, take_id = path.parent.name, path.stem
            is_kept = deleted or not is_unused_take(self.document, line_id, take_id)
            if path.suffix == ".json" or (path.suffix == ".wav" and is_kept):
                yield path
        for path in sorted((self.root / AUDIO_FOLDER).glob("[!.]*")):
            yield path


# The last position in a project, so that another device can go on there. It isn't part of the
# document: no edit, no step of undo, and not in copies and exports. A workspace is one person's, so
# a project has one position for all devices.

_POSITION_FILE = "place.json"


class LastPosition(BaseModel):
    """A position in a project.

    Attributes:
        line_id: The line that had the focus.
        heard: The line at the play-head.
        by: The browser that sent it.
        number: Rises with each saved position.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    line_id: LineId | None = None
    heard: LineId | None = None
    by: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    number: Annotated[int, Field(ge=0)] = 0


def read_last_position(root: Path) -> LastPosition | None:
    """Read the last position from a project's folder; None if there is none."""
    try:
        return LastPosition.model_validate_json((root / _POSITION_FILE).read_bytes())
    except (OSError, ValidationError):
        return None  # the page then starts at the top, and the project opens anyway


def save_last_position(root: Path, place: LastPosition, disk: Disk) -> LastPosition:
    """Save a position under the next number; its lines needn't exist any more.

    Raises:
        StorageFailed: It can't be written; the earlier one stays.
    """
    previous = read_last_position(root)
    number = previous.number + 1 if previous else 1
    kept = place.model_copy(update={"number": number})
    disk.write_whole(root / _POSITION_FILE, kept.model_dump_json().encode())
    return kept


_HASH_CHARS = 8
_MAX_STEM_BYTES = 150


def import_audio(folder: ProjectFolder, name: str, file: BinaryIO) -> str:
    """Store a recording; the same content is stored once.

    If there is another recording of that name, the new one gets another name, so that no take
    changes its recording.

    Raises:
        BadInput: The name is invalid.
        AudioRejected: It can't be decoded or is too large; nothing is stored.
        StorageFailed: It can't be written.
    """
    path = PurePath(check_audio_name(name))
    arriving = folder.root / AUDIO_FOLDER / f".{secrets.token_hex(8)}.part"
    folder.disk.make_folder(arriving.parent)
    try:
        folder.disk.write_whole(arriving, _read_blocks(file, name))
        stem, suffix = _truncate_name(path.stem), _truncate_name(path.suffix, 10)
        kept = f"{stem}-{hash_file(arriving)[:_HASH_CHARS]}{suffix}"
        target = arriving.with_name(kept)
        if not target.exists():
            decode_guarded(arriving, display_name=name)
            folder.disk.move(arriving, target)
    finally:
        folder.disk.remove(arriving)
    return kept


def _read_blocks(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The content, block by block, up to the limit of a recording."""
    left = DEFAULT_LIMITS.max_bytes
    while block := file.read(_BLOCK_BYTES):
        left -= len(block)
        if left < 0:
            most_mb = DEFAULT_LIMITS.max_bytes // 1_000_000
            raise AudioRejected(f"“{name}” is larger than {most_mb} MB. Cut it first.")
        yield block


def _truncate_name(text: str, most_bytes: int = _MAX_STEM_BYTES) -> str:
    """Shorten a name to the 255 bytes that most file systems allow."""
    return text.encode()[:most_bytes].decode(errors="ignore")


UNUSED_AFTER_S = 3600.0
"""Age at which a recording counts as unused: it is uploaded before the line that plays it."""


def find_unused_audio(audio: Path, document: Document) -> list[Path]:
    """Find recordings that no line plays, except recent ones, whose line may not be added yet."""
    return select_unused_audio(find_unplayed_audio(audio, document))


def find_unplayed_audio(audio: Path, document: Document) -> list[Path]:
    """Find recordings that no line plays, recent ones too."""
    played = {line.path for line in document}
    with suppress(FileNotFoundError):  # there are none, or the project is being removed
        return [path for path in audio.iterdir() if path.name not in played]
    return []


def select_unused_audio(unplayed: Iterable[Path]) -> list[Path]:
    """Those of some unplayed recordings that are old enough to count as unused."""
    unused: list[Path] = []
    for path in unplayed:
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime >= UNUSED_AFTER_S:
                unused.append(path)
    return unused
