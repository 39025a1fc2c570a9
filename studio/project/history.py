"""A document with its journal: every change is appended, and undo is unlimited.

The steps that can be undone form a chain in the journal, where each entry names the one below it.
Memory has only the two tops of the chains, and which steps were undone from under others.

A line of the journal is `{"sum":"<crc32 of the entry>","entry":{...}}`, and the entry states the
version of its format. A line that a crash cut off at the end is dropped when the file is opened;
`journal_repair` mends a journal that is damaged elsewhere.
"""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any

from studio.dialog.gaps import GAP
from studio.errors import Conflict, EngineBusy, FormatNewer, StorageFailed
from studio.project.characters import PAN
from studio.project.delta import Delta, apply_delta, diff_documents, read_delta, still_applies
from studio.project.document import Document
from studio.storage.disk import Disk, open_file, read_json, storage_errors
from studio.storage.json_bounds import has_too_many_values
from studio.storage.records import Record, RecordFormat

_HEAD_BYTES = len('{"sum":"00000000","entry":')
_END = b"}\n"
_TORN_HEAD = re.compile(rb'(?:\{"sum":"[0-9a-f]{8}","entry":|[{"sumentry:,0-9a-f]{1,25}\Z)')
_REV = re.compile(rb'\{(?:"version":\d+,)?"rev":(\d+),')
_KIND = re.compile(rb'"kind":"(\w+)"')
"""An entry's own, as a quotation mark within a text has a backslash, and the change comes last."""

_MAX_ENTRY_BYTES = 200_000_000
"""Limit of one line, ten times that of the largest edit."""
_MAX_IMPORTED_BYTES = 64_000_000
"""The same of a file from elsewhere, whose lines take four times as much memory."""
_MAKER_BYTES = 16_384
_CLIENT = re.compile(rb'"client":"([^"\\]*)"')

EVEN_LINES = ", even lines"
"""How the maker of a project ends since lines are evened; see `Cast`."""

Entry = dict[str, Any]


def _name_line_before(entry: Record) -> Record:
    """From version 0 to 1: a change of the order names the line before it, None where unknown."""
    order = entry.get("delta", {}).get("order")
    if order is None or len(order) != 3:
        return entry
    return {**entry, "delta": {**entry["delta"], "order": [*order, None]}}


ENTRY_FORMAT = RecordFormat(
    "The history of this project",
    (_name_line_before,),
    frozenset({"starred_takes", "comments", "characters", GAP}),
    frozenset({PAN}),
)
_STATED_VERSIONS = tuple(
    b'{"version":%d,' % version for version in range(ENTRY_FORMAT.version, ENTRY_FORMAT.newest + 1)
)


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry and the bytes of the journal it takes."""

    start: int
    end: int
    entry: Entry


class Journal:
    """An append-only file with one writer, which the caller ensures.

    Attributes:
        damaged_copy: A copy of the file, if whole lines were removed from its end.
        is_cut: Whether its end was no whole line, and was removed.
    """

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self.damaged_copy: Path | None = None
        self.is_cut = False
        with storage_errors(path):
            # Unbuffered, so that what `append` wrote survives a crash of the process.
            self._file = path.open("a+b", buffering=0)
        self._size = self._file.seek(0, 2)
        # Held while the disk is waited for, as one wait serves all who come; guards the next.
        self._syncing = threading.Lock()
        self._synced_bytes = 0  # of what a process wrote that was killed, the disk may have nothing

    @property
    def size_bytes(self) -> int:
        return self._size

    def append(self, entry: Entry) -> int:
        """Append an entry; it survives a crash of the process, and after `sync` a power failure.

        Returns:
            Its offset.

        Raises:
            StorageFailed: It can't be written; the journal is unchanged.
            EngineBusy: The project has been closed.
        """
        if self._file.closed:
            raise build_closed_error()
        start = self._size
        data = encode_entry(entry)
        try:
            # This also removes the remains of an earlier failure.
            self._truncate(start)
            self._disk.append(self._file, data, self._path)
        except StorageFailed:
            self._truncate(start)
            raise
        self._size = start + len(data)
        return start

    def read(self, start: int) -> Entry:
        """The entry at an offset."""
        return self._read_entry(start).entry

    @property
    def maker(self) -> str:
        """The client of its first entry: the studio that made the project; empty if unknown."""
        with storage_errors(self._path):
            self._file.seek(0)
            # An entry begins with it, and the first may be large: no text in it holds these quotes.
            found = _CLIENT.search(self._file.read(_MAKER_BYTES))
        return found[1].decode("utf-8", "replace") if found else ""

    def replay(self, start: int = 0) -> Iterator[StoredEntry]:
        """Yield entries from an offset on; a damaged one and all after it are moved aside."""
        while start < self._size:
            try:
                placed = self._read_entry(start)
            except FormatNewer:
                raise
            except StorageFailed:
                self._truncate_damaged(start)
                return
            yield placed
            start = placed.end

    def sync(self) -> None:
        """Wait until the disk has all entries; other threads may append meanwhile.

        Raises:
            StorageFailed: The disk can't write them; they stay, to be synced by the next call.
            EngineBusy: The project has been closed.
        """
        wanted_bytes = self._size
        with self._syncing:
            if self._synced_bytes >= wanted_bytes:
                return
            if self._file.closed:
                raise build_closed_error()
            size = self._size
            try:
                self._disk.sync(self._file, self._path)
            except StorageFailed:
                self._rewrite(size)
                raise
            self._synced_bytes = size

    def close(self) -> None:
        """Close the file."""
        with self._syncing:
            self._file.close()

    def _rewrite(self, size: int) -> None:
        """Write again what couldn't be synced, which Linux takes for written from then on."""
        with storage_errors(self._path), self._path.open("r+b", buffering=0) as file:
            file.seek(self._synced_bytes)
            data = file.read(size - self._synced_bytes)
            file.seek(self._synced_bytes)
            self._disk.append(file, data, self._path)

    def _read_entry(self, start: int) -> StoredEntry:
        with (
            storage_errors(self._path),
            # Unbuffered, a line of 10 MB would take as many system calls.
            open(self._file.fileno(), "rb", closefd=False) as file,
        ):
            file.seek(start)
            data = file.readline(_MAX_ENTRY_BYTES)
        entry = decode_entry(data)
        if entry is None:
            raise StorageFailed(f"The history in “{self._path.name}” is damaged at byte {start}.")
        return StoredEntry(start, start + len(data), entry)

    def _truncate_damaged(self, start: int) -> None:
        """Truncate the rest; if it has whole lines, a copy of the file is kept."""
        self.is_cut = True
        self._file.seek(start)
        torn = self._file.read()
        if torn.count(b"\n") > (0 if torn.endswith(b"\n") else 1):
            self.damaged_copy = self._path.with_name(f"{self._path.stem}.damaged-{start}.jsonl")
            self._disk.write_whole(self.damaged_copy, self._path.read_bytes())
        self._truncate(start)

    def _truncate(self, size: int) -> None:
        """Needs no room on the disk."""
        with storage_errors(self._path):
            self._file.truncate(size)
        self._size = size


def build_closed_error() -> EngineBusy:
    """The error for an edit that comes after the project was closed."""
    return EngineBusy("This project was just put away. Try again.", retry_after_s=1.0)


def read_entries(path: Path) -> Iterator[StoredEntry]:
    """Read the intact entries at the start of a journal that was imported."""
    start = 0
    with open_file(path) as file:
        while line := file.readline(_MAX_IMPORTED_BYTES):
            entry = None if has_too_many_values(line) else decode_entry(line)
            if entry is None:
                return
            yield StoredEntry(start, start + len(line), entry)
            start += len(line)


def is_intact(path: Path, known_bytes: int = 0, known_rev: int = 0) -> bool:
    """Whether a journal is as it was written, but for a last line that a crash cut off.

    All lines fit their checksums and follow each other, and the snapshot is of one of its places.
    Parses no line of a known version, so that a long journal is opened as fast as a short one.

    Args:
        path: The journal.
        known_bytes: The snapshot's place in it, 0 without a snapshot.
        known_rev: The snapshot's revision.
    """
    start, before = 0, b""
    rev, is_placed = (None, False) if known_bytes else (known_rev, True)
    with open_file(path) as file:
        for line in file:
            is_placed = is_placed or (start == known_bytes and rev == known_rev)
            if not _fits_checksum(line):
                return is_placed and is_torn(line)
            is_known = line.startswith(_STATED_VERSIONS, _HEAD_BYTES)
            if not is_known and b'"version"' in line and decode_entry(line) is None:
                return False
            if line == before or not _follows_line(rev, line):
                return False
            start, rev, before = start + len(line), _read_rev(line), line
    return is_placed or (start == known_bytes and rev == known_rev)


def is_torn(line: bytes) -> bool:
    """Whether a line can be the beginning of one that the end of a process cut off."""
    if line.endswith(b"\n") or b"\0" in line:
        return False
    return _TORN_HEAD.match(line) is not None and complete_line(line) is None


def complete_line(line: bytes) -> bytes | None:
    """A line of which only the end has changed, or lacks, as it was; None if more has."""
    ended = (line[:-1] + b"\n", line + b"\n", line.removesuffix(b"\r\n") + b"\n")
    return next(filter(_fits_checksum, ended), None)


def follows(rev: int | None, entry: Entry) -> bool:
    """Whether an entry comes next after the one of a revision; None stands for the beginning."""
    if rev is None or entry["rev"] == rev + 1:
        return True
    return bool(entry["rev"] == rev and entry["kind"] == EntryKind.MADE)


def _follows_line(rev: int | None, line: bytes) -> bool:
    """As `follows`; only the beginning of the line is looked at."""
    own = _read_rev(line)
    if rev is None or own == rev + 1:
        return True
    kind = _KIND.search(line)
    return own == rev and kind is not None and kind[1] == EntryKind.MADE.encode()


def _read_rev(line: bytes) -> int:
    found = _REV.match(line, _HEAD_BYTES)
    return int(found[1]) if found else -1


def _sets_gap(entry: Entry) -> bool:
    """Whether a change sets or takes away a gap, of the project or of a line."""
    delta = entry.get("delta", {})
    sides = chain.from_iterable(delta.get("lines", {}).values())
    params = [side["params"] for side in sides if side and "params" in side]
    records = [*delta.get("fields", {}).get("settings", ()), *params]
    return any(GAP in record for record in records if record)


def _sets_pan(entry: Entry) -> bool:
    """Whether a change pans a character, or takes that back."""
    sides = entry.get("delta", {}).get("fields", {}).get("characters", ())
    return any(PAN in record for side in sides for record in side.values() if record)


def encode_entry(entry: Entry) -> bytes:
    """An entry as a line of the journal."""
    fields = entry.get("delta", {}).get("fields", {})
    marked = {**fields, GAP: _sets_gap(entry), PAN: _sets_pan(entry)}
    stated = {"version": ENTRY_FORMAT.version_of(marked), **entry}
    body = json.dumps(stated, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return b'{"sum":"%08x","entry":' % zlib.crc32(body) + body + _END


def decode_entry(line: bytes) -> Entry | None:
    """An entry of the current version from a line of the journal; None if it is damaged."""
    if not _fits_checksum(line):
        return None
    try:
        entry = read_json(line[_HEAD_BYTES : -len(_END)])
        return ENTRY_FORMAT.upgrade(entry) if isinstance(entry, dict) else None
    except ValueError:
        return None


def _fits_checksum(line: bytes) -> bool:
    body = line[_HEAD_BYTES : -len(_END)]
    head = b'{"sum":"%08x","entry":' % zlib.crc32(body)
    return line[:_HEAD_BYTES] == head and line.endswith(_END)


JOIN_WITHIN_S = 2.0
"""Edits of one group within this time become one step of undo."""

_MAX_STEPS_SEARCHED = 200
"""How many steps of others are searched for one's own."""

FinishDocument = Callable[[Document], Document]


class EntryKind(StrEnum):
    """The kind of an entry; `made` is a change by a render, which can't be undone."""

    EDIT = "edit"
    MADE = "made"
    UNDO = "undo"
    REDO = "redo"


@dataclass(frozen=True, slots=True)
class Author:
    """Who made an edit.

    Attributes:
        client: The page, as `person-page` or any other id; empty for the studio itself, which names
            itself in the entry that makes a project.
        group: Edits of one group in quick succession are one step of undo.
        edit_id: An edit with the same id takes effect only once.
    """

    client: str = ""
    group: str | None = None
    edit_id: str | None = None


def parse_person(client: str) -> str:
    """The part of a client before the dash, which all pages of a browser share."""
    return client.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Marks:
    """The position of the history; with a document it is all that a snapshot needs.

    Attributes:
        rev: Rises with each entry except those of renders.
        undo, redo: Offsets in the journal of the next step to undo and to redo.
        last: Client, group and time of the edit that a further one may join.
        at_s: Time of the latest entry, in seconds since 1970.
        removed_steps: Offsets of entries that were undone from under others.
    """

    rev: int = 0
    undo: int | None = None
    redo: int | None = None
    last: tuple[str, str, float] | None = None
    at_s: float = 0.0
    removed_steps: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _UndoStep:
    """A step that can be undone: its entries from the top, their offsets, and the step below."""

    entries: list[Entry]
    starts: list[int]
    below: int | None


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A new entry, with the document before and after it."""

    entry: Entry
    delta: Delta
    before: Document
    after: Document


class History:
    """The document and its history. Not thread-safe; callers hold the session's lock."""

    def __init__(self, journal: Journal, document: Document, marks: Marks) -> None:
        self._journal = journal
        self.document = document
        self.marks = marks

    def replay(self, entry: Entry, start: int) -> None:
        """Apply an entry that is in the journal already."""
        self.document = apply_delta(self.document, read_delta(entry["delta"]))
        self.marks = advance_marks(self.marks, entry, start)

    def record(
        self, after: Document, author: Author, at_s: float, kind: EntryKind = EntryKind.EDIT
    ) -> HistoryStep | None:
        """Append a change to the history; None if it changes nothing.

        Raises:
            StorageFailed: It can't be written; nothing changed.
        """
        delta = diff_documents(self.document, after)
        if not delta:
            return None
        joined = kind is EntryKind.EDIT and self._continues_group(author, at_s)
        return self._append(delta, after, author, at_s, {"kind": kind, "joined": joined})

    def undo(self, author: Author, at_s: float, finish: FinishDocument) -> HistoryStep:
        """Undo the latest step.

        Args:
            author: Who undoes it.
            at_s: The time.
            finish: Makes final changes to the document.

        Raises:
            Conflict: There is none.
            StorageFailed: It can't be read or written; nothing changed.
        """
        document = self.document
        if self.marks.undo is None:
            raise Conflict("There is nothing to undo.")
        past = self._read_step(self.marks.undo)
        for entry in past.entries:
            document = _revert_entry(document, entry)
        document = finish(document)
        how = {"kind": EntryKind.UNDO, "next": past.below}
        return self._append(diff_documents(self.document, document), document, author, at_s, how)

    def undo_own(
        self, author: Author, at_s: float, finish: FinishDocument, is_own: Callable[[str], bool]
    ) -> HistoryStep | None:
        """Undo somebody's latest step, even from under the steps of others.

        Args:
            author: Who undoes it.
            at_s: The time.
            finish: Makes final changes to the document.
            is_own: Whether a client's steps count.

        Returns:
            None if there is none that no other step relies on.
        """
        start = self.marks.undo
        for _ in range(_MAX_STEPS_SEARCHED):
            if start is None:
                return None
            past = self._read_step(start)
            if is_own(past.entries[0]["client"]):
                if start == self.marks.undo:
                    return self.undo(author, at_s, finish)
                document = _undo_below_top(self.document, past.entries)
                if document is not None:
                    document = finish(document)
                    delta = diff_documents(self.document, document)
                    how = {"kind": EntryKind.UNDO, "next": self.marks.undo, "gone": past.starts}
                    return self._append(delta, document, author, at_s, how)
            start = past.below
        return None

    def redo(self, author: Author, at_s: float, finish: FinishDocument) -> HistoryStep:
        """Redo the step that was undone last; arguments as in `undo`.

        Raises:
            Conflict: There is none.
            StorageFailed: It can't be read or written; nothing changed.
        """
        if self.marks.redo is None:
            raise Conflict("There is nothing to redo.")
        entry = self._journal.read(self.marks.redo)
        document = finish(_revert_entry(self.document, entry))
        how = {"kind": EntryKind.REDO, "next": entry["below"]}
        return self._append(diff_documents(self.document, document), document, author, at_s, how)

    def author_of_next_undo(self) -> tuple[int, str] | None:
        """Revision and client of the step that undo would undo."""
        if self.marks.undo is None:
            return None
        entry = self._journal.read(self.marks.undo)
        return entry["rev"], entry["client"]

    def _read_step(self, start: int) -> _UndoStep:
        entries, starts = [self._journal.read(start)], [start]
        while entries[-1].get("joined", False) and entries[-1]["below"] is not None:
            starts.append(entries[-1]["below"])
            entries.append(self._journal.read(starts[-1]))
        below = entries[-1]["below"]
        while below in self.marks.removed_steps:
            below = self._journal.read(below)["below"]
        return _UndoStep(entries, starts, below)

    def _continues_group(self, author: Author, at_s: float) -> bool:
        last = self.marks.last
        return (
            last is not None
            and author.group is not None
            and last[:2] == (author.client, author.group)
            # The studio's own changes may take longer, and are one step nevertheless.
            and (not author.client or 0 <= at_s - last[2] <= JOIN_WITHIN_S)
        )

    def _append(
        self,
        delta: Delta,
        after: Document,
        author: Author,
        at_s: float,
        how: Mapping[str, Any],
    ) -> HistoryStep:
        kind = how["kind"]
        entry: Entry = {
            "rev": self.marks.rev + (kind is not EntryKind.MADE),
            "at": at_s,
            "client": author.client,
            **({"group": author.group} if author.group else {}),
            **({"edit_id": author.edit_id} if author.edit_id else {}),
            **how,
            "below": self.marks.redo if kind is EntryKind.UNDO else self.marks.undo,
            "delta": delta.to_record(),
        }
        start = self._journal.append(entry)
        step = HistoryStep(entry, delta, self.document, after)
        self.document, self.marks = after, advance_marks(self.marks, entry, start)
        return step


def _undo_below_top(document: Document, entries: Sequence[Entry]) -> Document | None:
    """The document without a step below its latest; None if a later step relies on it."""
    for entry in entries:
        if not still_applies(document, read_delta(entry["delta"])):
            return None
        document = _revert_entry(document, entry)
    return document


def _revert_entry(document: Document, entry: Entry) -> Document:
    try:
        before = apply_delta(document, read_delta(entry["delta"]).reverse(), loose=True)
        assert set(before.order) == before.lines.keys(), "what is heard are the lines"
        return before
    except (LookupError, ValueError, TypeError, AssertionError) as error:
        message = (
            "The history doesn't fit the lines here, so it ends: nothing further back is left."
        )
        raise Conflict(message) from error


def advance_marks(marks: Marks, entry: Entry, start: int) -> Marks:
    """The marks after an entry."""
    rev, at_s, gone = entry["rev"], entry["at"], marks.removed_steps
    match EntryKind(entry["kind"]):
        case EntryKind.MADE:
            return Marks(rev, marks.undo, marks.redo, marks.last, at_s, gone)
        case EntryKind.EDIT:
            group = entry.get("group")
            last = (entry["client"], group, at_s) if group else None
            return Marks(rev, start, None, last, at_s, gone)
        case EntryKind.UNDO:
            gone = gone.union(entry.get("gone", ()))
            return Marks(rev, entry["next"], start, None, at_s, gone)
        case EntryKind.REDO:
            return Marks(rev, start, entry["next"], None, at_s, gone)
