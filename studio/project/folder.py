"""A project's folder: what lies where, and how it is opened and kept.

project.json     the document as it was lately, readable, with the place in the journal
edits.jsonl      every change ever made
pending.json     what a render still has to make; gone when nothing is
takes/           audio and record of every take
audio/           files that audio lines play
voices/          of a project from elsewhere, until the library has them
.making/         segments under way; nothing in it outlives a restart
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field

from studio.errors import Conflict, NotFound, StorageFailed
from studio.project.disk import Disk
from studio.project.document import Document, document_record, read_document
from studio.project.history import Author, History, Kind, Marks
from studio.project.journal import Journal
from studio.project.strict_json import read_json

VERSION = 1
SNAPSHOT = "project.json"
JOURNAL = "edits.jsonl"
PENDING = "pending.json"
TAKES = "takes"
AUDIO = "audio"
VOICES = "voices"
MAKING = ".making"
LOCK = ".lock"

LATEST_S = 253_402_300_000.0
"""In the year 9999, with which calendars end."""

MAX_SNAPSHOT_BYTES = 64_000_000
"""Of a project from elsewhere; thirty thousand lines are a tenth of it."""

_KEPT_EDIT_IDS = 200
_JSON = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Opened:
    """A project's past; `seen` are ids of edits that took effect, the latest last."""

    history: History
    journal: Journal
    seen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A project at one moment; what came later is in the journal from `journal_bytes` on.

    Attributes:
        seen: As in `Opened`.
        audio_s: Length of all that could be heard, in seconds.
        shortened: The journal was found to be shorter than that.
    """

    document: Document = field(default_factory=Document)
    marks: Marks = field(default_factory=Marks)
    journal_bytes: int = 0
    seen: tuple[str, ...] = ()
    audio_s: float = 0.0
    shortened: bool = False


@dataclass(frozen=True, slots=True)
class Card:
    """A project in a list; `edited_at_s` in seconds since 1970."""

    project_id: str
    name: str
    edited_at_s: float
    lines: int
    audio_s: float


_Place = Annotated[int, Field(ge=0)]


class _Past(BaseModel):
    """Where history stands, as a snapshot holds it."""

    model_config = ConfigDict(frozen=True)

    journal_bytes: _Place
    rev: _Place
    undo: _Place | None
    redo: _Place | None
    last: tuple[str, str, float] | None
    at_s: Annotated[float, Field(ge=0, le=LATEST_S)]
    seen: tuple[str, ...]
    gone: tuple[_Place, ...] = ()

    def marks(self) -> Marks:
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
        if not (root / JOURNAL).is_file() and not (root / SNAPSHOT).is_file():
            raise NotFound("This project isn't there any more.")
        self.root = root
        self.disk = disk
        # The system lets go of it when the process ends, however that happens. Not a thread's own:
        # one thread opens a project, another one closes it.
        self._hold = FileLock(root / LOCK, timeout=0, thread_local=False)
        try:
            self._hold.acquire()
        except Timeout as error:
            message = "This project is open in another studio. Close it there first."
            raise Conflict(message) from error
        self.notices: list[str] = []

    @staticmethod
    def make(root: Path, document: Document, at_s: float, disk: Disk) -> None:
        """Make a new project's folder.

        Raises:
            StorageFailed: It can't be written; there is no such project then.
        """
        try:
            disk.make_folder(root)
            journal = Journal(root / JOURNAL, disk)
            try:
                # In the journal too, so that it tells all there is to tell without the snapshot.
                history = History(journal, Document(), Marks())
                history.record(document, Author(), at_s, Kind.MADE)
                journal.sync()
            finally:
                journal.close()
            snapshot = Snapshot(document, history.marks, journal.size_bytes)
            disk.write_whole(root / SNAPSHOT, _written(snapshot))
        except StorageFailed:
            disk.remove(root)
            raise

    def open_history(self) -> Opened:
        """The document with its past, all that the disk has of it.

        Raises:
            StorageFailed: Neither snapshot nor journal can be read.
        """
        self.disk.remove(self.root / MAKING)
        journal = Journal(self.root / JOURNAL, self.disk)
        snapshot = self._snapshot_or_nothing(journal.size_bytes)
        history = History(journal, snapshot.document, snapshot.marks)
        seen = list(snapshot.seen)
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
        if journal.put_aside is not None:
            self.notices.append(
                "A part of the history was damaged and is left out; a copy of all of it is kept in "
                f"“{journal.put_aside.name}”."
            )
        opened = Opened(history, journal, tuple(seen))
        if snapshot.shortened:
            # At once: it must not point beyond the entries that come next.
            self.keep(replace(snapshot, shortened=False))
        return opened

    def keep(self, snapshot: Snapshot) -> None:
        """Write a snapshot; the journal has to be on the disk before.

        Raises:
            StorageFailed: It can't be written; the former one stays.
        """
        self.disk.write_whole(self.root / SNAPSHOT, _written(snapshot))

    def read_pending(self) -> Mapping[str, int | None]:
        """Lines a render still has to make, in their order, with a new seed where one was asked."""
        try:
            pending = json.loads((self.root / PENDING).read_bytes())["lines"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return {str(line_id): seed for line_id, seed in dict(pending).items()}

    def write_pending(self, pending: Mapping[str, int | None]) -> None:
        """Keep what a render still has to make.

        Raises:
            StorageFailed: It can't be written.
        """
        path = self.root / PENDING
        if not pending:
            self.disk.remove(path)
            return
        data = json.dumps({"lines": pending}, indent=1).encode() + b"\n"
        # Somebody waits for the render to begin; a power failure ends one that isn't gone on with.
        self.disk.write_whole(path, data, synced=False)

    def close(self) -> None:
        """Let others open it."""
        self._hold.release()

    def _snapshot_or_nothing(self, journal_bytes: int) -> Snapshot:
        """Without a usable snapshot the journal alone tells everything."""
        path = self.root / SNAPSHOT
        try:
            snapshot = read_snapshot(path)
        except FileNotFoundError:
            return Snapshot()
        except (OSError, ValueError, KeyError, TypeError) as error:
            if not journal_bytes:
                raise StorageFailed(
                    f"This project can't be read: its {SNAPSHOT} is damaged and it has no history. "
                    f"Bring its folder ({self.root.name}) back from a copy."
                ) from error
            self.notices.append(f"{SNAPSHOT} was damaged; it was made again from the history.")
            return Snapshot()
        if snapshot.journal_bytes > journal_bytes:
            self.notices.append("The history is shorter than it was; undo goes less far back.")
            marks = Marks(rev=snapshot.marks.rev, at_s=snapshot.marks.at_s)
            return replace(snapshot, marks=marks, journal_bytes=journal_bytes, shortened=True)
        return snapshot


def read_card(root: Path) -> Card:
    """A project that isn't open, in brief.

    Raises:
        OSError, ValueError, KeyError, TypeError: Its snapshot can't be read.
    """
    record = read_json((root / SNAPSHOT).read_bytes())
    edited_at_s = _Past.model_validate(record["history"]).at_s
    audio_s = float(record["audio_s"])
    return Card(root.name, str(record["name"]), edited_at_s, len(record["lines"]), audio_s)


def read_kept(root: Path) -> Document:
    """The document of a project that isn't open, as it was kept last.

    Raises:
        OSError, ValueError, KeyError, TypeError, StorageFailed: Its snapshot can't be read.
    """
    return read_snapshot(root / SNAPSHOT).document


def _written(snapshot: Snapshot) -> bytes:
    marks = snapshot.marks
    record: dict[str, Any] = {"version": VERSION, **document_record(snapshot.document)}
    record["audio_s"] = snapshot.audio_s
    record["history"] = {
        "journal_bytes": snapshot.journal_bytes,
        "rev": marks.rev,
        "undo": marks.undo,
        "redo": marks.redo,
        "last": list(marks.last) if marks.last else None,
        "at_s": marks.at_s,
        "seen": snapshot.seen[-_KEPT_EDIT_IDS:],
        "gone": sorted(marks.gone),
    }
    return _readable(record).encode("utf-8")


def _readable(record: Mapping[str, Any]) -> str:
    """JSON with a row for each line of the dialog.

    Not `indent`, which gives up the encoder in C and takes about twice as long.
    """
    rows = [f"{_JSON.encode(name)}: {_row(value)}" for name, value in record.items()]
    return "{\n " + ",\n ".join(rows) + "\n}\n"


def _row(value: Any) -> str:
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return _JSON.encode(value)
    return "[\n  " + ",\n  ".join(map(_JSON.encode, value)) + "\n ]"


def read_snapshot(path: Path) -> Snapshot:
    """A snapshot by its file.

    Raises:
        OSError, ValueError, KeyError, TypeError: It can't be read.
        StorageFailed: It was made by a newer studio.
    """
    record = read_json(path.read_bytes())
    if record["version"] != VERSION:
        raise StorageFailed("This project was made by a newer studio. Use that one to open it.")
    past = _Past.model_validate(record["history"])
    audio_s = float(record["audio_s"])
    return Snapshot(read_document(record), past.marks(), past.journal_bytes, past.seen, audio_s)
