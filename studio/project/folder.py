"""A project's folder: what lies where, how it is opened and saved, and how it is copied.

project.json     the document as it was lately, readable, with the place in the journal
edits.jsonl      every change ever made
pending.json     what a render still has to make; gone when nothing is
place.json       where somebody was last
takes/           audio and record of every take
audio/           files that audio lines play
voices/          of a project from elsewhere, until the library has them
.making/         segments under way; nothing in it outlives a restart
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from studio.errors import Conflict, NotFound, StorageFailed
from studio.project.document import Document, encode_document, read_document
from studio.project.history import Author, EntryKind, History, Marks
from studio.project.journal import Journal
from studio.project.ops import LineId
from studio.project.takes import is_unused_take
from studio.storage.disk import Disk, read_json

# A project's folder: what lies where, and how it is opened and kept.
#
# project.json     the document as it was lately, readable, with the place in the journal
# edits.jsonl      every change ever made
# pending.json     what a render still has to make; gone when nothing is
# takes/           audio and record of every take
# audio/           files that audio lines play
# voices/          of a project from elsewhere, until the library has them
# .making/         segments under way; nothing in it outlives a restart

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
"""In the year 9999, with which calendars end."""

MAX_SNAPSHOT_BYTES = 64_000_000
"""Of a project from elsewhere; thirty thousand lines are a tenth of it."""

_MAX_SAVED_EDIT_IDS = 200
_JSON_ENCODER = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class OpenedHistory:
    """A project's past; `seen` are ids of edits that took effect, the latest last."""

    history: History
    journal: Journal
    edit_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectSnapshot:
    """A project at one moment; what came later is in the journal from `journal_bytes` on.

    Attributes:
        edit_ids: As in `OpenedHistory`.
        audio_s: Length of all that could be heard, in seconds.
        is_truncated: The journal was found to be shorter than that.
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
    """Where history stands, as a snapshot holds it."""

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
        """Take hold of a project's folder.

        Raises:
            NotFound: There is no such project.
            Conflict: Another studio has it open.
        """
        if not (root / JOURNAL_FILE).is_file() and not (root / SNAPSHOT_FILE).is_file():
            raise NotFound("This project isn't there any more.")
        self.root = root
        self.disk = disk
        # The system lets go of it when the process ends, however that happens. Not a thread's own:
        # one thread opens a project, another one closes it.
        self._file_lock = FileLock(root / LOCK_FILE, timeout=0, thread_local=False)
        try:
            self._file_lock.acquire()
        except Timeout as error:
            message = "This project is open in another studio. Close it there first."
            raise Conflict(message) from error
        self.notices: list[str] = []

    @staticmethod
    def create(root: Path, document: Document, at_s: float, disk: Disk) -> None:
        """Make a new project's folder.

        Raises:
            StorageFailed: It can't be written; there is no such project then.
        """
        try:
            disk.make_folder(root)
            journal = Journal(root / JOURNAL_FILE, disk)
            try:
                # In the journal too, so that it tells all there is to tell without the snapshot.
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
        """The document with its past, all that the disk has of it.

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
            # At once: it must not point beyond the entries that come next.
            self.save_snapshot(replace(snapshot, is_truncated=False))
        return opened

    def save_snapshot(self, snapshot: ProjectSnapshot) -> None:
        """Write a snapshot; the journal has to be on the disk before.

        Raises:
            StorageFailed: It can't be written; the former one stays.
        """
        self.disk.write_whole(self.root / SNAPSHOT_FILE, _encode_snapshot(snapshot))

    def read_pending(self) -> Mapping[str, int | None]:
        """Lines a render still has to make, in their order, with a new seed where one was asked."""
        try:
            pending = json.loads((self.root / PENDING_FILE).read_bytes())["lines"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return {str(line_id): seed for line_id, seed in dict(pending).items()}

    def write_pending(self, pending: Mapping[str, int | None]) -> None:
        """Keep what a render still has to make.

        Raises:
            StorageFailed: It can't be written.
        """
        path = self.root / PENDING_FILE
        if not pending:
            self.disk.remove(path)
            return
        data = json.dumps({"lines": pending}, indent=1).encode() + b"\n"
        # Somebody waits for the render to begin; a power failure ends one that isn't gone on with.
        self.disk.write_whole(path, data, synced=False)

    def close(self) -> None:
        """Let others open it."""
        self._file_lock.release()

    def _read_snapshot_or_empty(self, journal_bytes: int) -> ProjectSnapshot:
        """Without a usable snapshot the journal alone tells everything."""
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
            self.notices.append(f"{SNAPSHOT_FILE} was damaged; it was made again from the history.")
            return ProjectSnapshot()
        if snapshot.journal_bytes > journal_bytes:
            self.notices.append("The history is shorter than it was; undo goes less far back.")
            marks = Marks(rev=snapshot.marks.rev, at_s=snapshot.marks.at_s)
            return replace(snapshot, marks=marks, journal_bytes=journal_bytes, is_truncated=True)
        return snapshot


def read_summary(root: Path) -> ProjectSummary:
    """A project that isn't open, in brief.

    Raises:
        OSError, ValueError, KeyError, TypeError: Its snapshot can't be read.
    """
    record = read_json((root / SNAPSHOT_FILE).read_bytes())
    edited_at_s = _HistoryRecord.model_validate(record["history"]).at_s
    audio_s = float(record["audio_s"])
    return ProjectSummary(
        root.name, str(record["name"]), edited_at_s, len(record["lines"]), audio_s
    )


def read_saved_document(root: Path) -> Document:
    """The document of a project that isn't open, as it was kept last.

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
    return _encode_record(record).encode("utf-8")


def _encode_record(record: Mapping[str, Any]) -> str:
    """JSON with a row for each line of the dialog.

    Not `indent`, which gives up the encoder in C and takes about twice as long.
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
    """A snapshot by its file.

    Raises:
        OSError, ValueError, KeyError, TypeError: It can't be read.
        StorageFailed: It was made by a newer studio.
    """
    record = read_json(path.read_bytes())
    if record["version"] != SNAPSHOT_VERSION:
        raise StorageFailed("This project was made by a newer studio. Use that one to open it.")
    past = _HistoryRecord.model_validate(record["history"])
    audio_s = float(record["audio_s"])
    return ProjectSnapshot(
        read_document(record), past.to_marks(), past.journal_bytes, past.seen, audio_s
    )


# A project's files as they were at one moment, to be read while it is worked on.
#
# The snapshot is held in memory, the journal only grows, and takes and recordings never change once
# they are there. So nobody has to wait while they are packed or copied.

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FrozenFolder:
    """What a project was.

    Attributes:
        snapshot: The bytes of its file.
        journal_bytes: How much of the journal there was.
        document: As it was, or a little later than the snapshot.
    """

    root: Path
    snapshot: bytes
    journal_bytes: int
    document: Document

    def read_journal(self) -> Iterator[bytes]:
        """The journal as it was, block by block."""
        left = self.journal_bytes
        with (self.root / JOURNAL_FILE).open("rb") as file:
            while left and (block := file.read(min(left, _BLOCK_BYTES))):
                left -= len(block)
                yield block

    def iter_files(self, *, deleted: bool = True) -> Iterator[Path]:
        """Takes and recordings.

        Args:
            deleted: Also the audio of takes that only an undo could bring back; without it they
                are as if they had been freed.
        """
        for path in sorted((self.root / TAKES_FOLDER).rglob("*")):
            line_id, take_id = path.parent.name, path.stem
            is_kept = deleted or not is_unused_take(self.document, line_id, take_id)
            if path.suffix == ".json" or (path.suffix == ".wav" and is_kept):
                yield path
        for path in sorted((self.root / AUDIO_FOLDER).glob("[!.]*")):
            yield path


# Where somebody was last in a project, so that another device goes on there.
#
# It is no part of the dialog: no edit, no step of undo, and left out of copies and files. A
# workspace is one person's, so there is one such place in a project, whichever device it was left
# on.

_POSITION_FILE = "place.json"


class LastPosition(BaseModel):
    """A place in a project.

    Attributes:
        line_id: The line one was at.
        heard: The line under the play-head.
        by: The browser that says so.
        number: Rises with each place that is kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    line_id: LineId | None = None
    heard: LineId | None = None
    by: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    number: Annotated[int, Field(ge=0)] = 0


def read_last_position(root: Path) -> LastPosition | None:
    """The place that was left last in a project's folder; None where there is none to read."""
    try:
        return LastPosition.model_validate_json((root / _POSITION_FILE).read_bytes())
    except (OSError, ValidationError):
        return None  # one begins at the top: no reason to keep a project shut


def save_last_position(root: Path, place: LastPosition, disk: Disk) -> LastPosition:
    """Keep a place, under the next number; the lines needn't be there any more.

    Raises:
        StorageFailed: It can't be written; the former one stays.
    """
    previous = read_last_position(root)
    number = previous.number + 1 if previous else 1
    kept = place.model_copy(update={"number": number})
    disk.write_whole(root / _POSITION_FILE, kept.model_dump_json().encode())
    return kept
