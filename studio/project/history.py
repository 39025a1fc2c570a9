"""A document with its undo history: every change goes to the journal, and undo has no end.

What can be undone is a chain within the journal: each entry names the one below it. Memory holds
the two tops, however long the chain is, and which of its steps were taken out from under others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from studio.errors import Conflict
from studio.project.delta import Delta, apply_delta, diff_documents, read_delta, still_applies
from studio.project.document import Document
from studio.project.journal import Entry, Journal

JOIN_WITHIN_S = 2.0
"""Edits of one group that follow each other within this are one step of undo."""

_MAX_STEPS_SEARCHED = 200
"""How many steps of others are looked under for one's own."""

FinishDocument = Callable[[Document], Document]


class EntryKind(StrEnum):
    """What an entry of the journal is; `made` is what renders change, and can't be undone."""

    EDIT = "edit"
    MADE = "made"
    UNDO = "undo"
    REDO = "redo"


@dataclass(frozen=True, slots=True)
class Author:
    """Who made an edit.

    Attributes:
        client: A page, as `person-page` or any other mark; empty for the studio itself.
        group: Edits of one group in quick succession are one step of undo.
        edit_id: The same id never takes effect twice.
    """

    client: str = ""
    group: str | None = None
    edit_id: str | None = None


def parse_person(client: str) -> str:
    """Whose page it is: what stands before a dash is the same for all pages of a browser."""
    return client.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Marks:
    """Where history stands; with a document it is all that a snapshot needs.

    Attributes:
        rev: Rises with each entry but those of renders.
        undo, redo: Where in the journal the next step back and forth begins.
        last: Client, group and time of the edit that a further one may join.
        at_s: When the latest entry was made, in seconds since 1970.
        gone: Where entries begin that were undone while those above them stayed.
    """

    rev: int = 0
    undo: int | None = None
    redo: int | None = None
    last: tuple[str, str, float] | None = None
    at_s: float = 0.0
    gone: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _UndoStep:
    """A step that can be undone: its entries from the top, where they begin, and what is below."""

    entries: list[Entry]
    starts: list[int]
    below: int | None


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """An entry that was made, with the document before and after it."""

    entry: Entry
    delta: Delta
    before: Document
    after: Document


class History:
    """The document and what led to it. Not safe from several threads: the session's lock is."""

    def __init__(self, journal: Journal, document: Document, marks: Marks) -> None:
        """Go on from a snapshot."""
        self._journal = journal
        self.document = document
        self.marks = marks

    def replay(self, entry: Entry, start: int) -> None:
        """Take in an entry that stands in the journal already."""
        self.document = apply_delta(self.document, read_delta(entry["delta"]))
        self.marks = _advance_marks(self.marks, entry, start)

    def record(
        self, after: Document, author: Author, at_s: float, kind: EntryKind = EntryKind.EDIT
    ) -> HistoryStep | None:
        """Make a change the latest of history; None when it changes nothing.

        Raises:
            StorageFailed: It can't be written; nothing changed then.
        """
        delta = diff_documents(self.document, after)
        if not delta:
            return None
        joined = kind is EntryKind.EDIT and self._joins(author, at_s)
        return self._append(delta, after, author, at_s, {"kind": kind, "joined": joined})

    def undo(self, author: Author, at_s: float, settle: FinishDocument) -> HistoryStep:
        """Take the latest step back.

        Args:
            author: Who does.
            at_s: When.
            settle: Has the last word on the document.

        Raises:
            Conflict: There is none.
            StorageFailed: It can't be read or written; nothing changed then.
        """
        document = self.document
        if self.marks.undo is None:
            raise Conflict("There is nothing to undo.")
        past = self._past(self.marks.undo)
        for entry in past.entries:
            document = _revert_entry(document, entry)
        document = settle(document)
        how = {"kind": EntryKind.UNDO, "next": past.below}
        return self._append(diff_documents(self.document, document), document, author, at_s, how)

    def undo_own(
        self, author: Author, at_s: float, settle: FinishDocument, is_own: Callable[[str], bool]
    ) -> HistoryStep | None:
        """Take the latest step of somebody back, from under those of others where it must be.

        Args:
            author: Who does.
            at_s: When.
            settle: Has the last word on the document.
            is_own: Whether a client's steps are meant.

        Returns:
            None when there is none on which nobody else has built.

        Raises:
            StorageFailed: It can't be read or written; nothing changed then.
        """
        start = self.marks.undo
        for _ in range(_MAX_STEPS_SEARCHED):
            if start is None:
                return None
            past = self._past(start)
            if is_own(past.entries[0]["client"]):
                if start == self.marks.undo:
                    return self.undo(author, at_s, settle)
                document = _undo_below_top(self.document, past.entries)
                if document is not None:
                    document = settle(document)
                    delta = diff_documents(self.document, document)
                    how = {"kind": EntryKind.UNDO, "next": self.marks.undo, "gone": past.starts}
                    return self._append(delta, document, author, at_s, how)
            start = past.below
        return None

    def redo(self, author: Author, at_s: float, settle: FinishDocument) -> HistoryStep:
        """Take the latest undo back; arguments as in `undo`.

        Raises:
            Conflict: There is none.
            StorageFailed: It can't be read or written; nothing changed then.
        """
        if self.marks.redo is None:
            raise Conflict("There is nothing to redo.")
        entry = self._journal.read(self.marks.redo)
        document = settle(_revert_entry(self.document, entry))
        how = {"kind": EntryKind.REDO, "next": entry["below"]}
        return self._append(diff_documents(self.document, document), document, author, at_s, how)

    def author_of_next_undo(self) -> tuple[int, str] | None:
        """Revision and client of the step that undo would take back."""
        if self.marks.undo is None:
            return None
        entry = self._journal.read(self.marks.undo)
        return entry["rev"], entry["client"]

    def _past(self, start: int) -> _UndoStep:
        entries, starts = [self._journal.read(start)], [start]
        while entries[-1].get("joined", False) and entries[-1]["below"] is not None:
            starts.append(entries[-1]["below"])
            entries.append(self._journal.read(starts[-1]))
        below = entries[-1]["below"]
        while below in self.marks.gone:
            below = self._journal.read(below)["below"]
        return _UndoStep(entries, starts, below)

    def _joins(self, author: Author, at_s: float) -> bool:
        last = self.marks.last
        return (
            last is not None
            and author.group is not None
            and last[:2] == (author.client, author.group)
            # What the studio does by itself takes its time and is one step nevertheless.
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
            "delta": delta.record(),
        }
        start = self._journal.append(entry)
        step = HistoryStep(entry, delta, self.document, after)
        self.document, self.marks = after, _advance_marks(self.marks, entry, start)
        return step


def _undo_below_top(document: Document, entries: Sequence[Entry]) -> Document | None:
    """A document without a step below its latest; None where somebody has built on it."""
    for entry in entries:
        if not still_applies(document, read_delta(entry["delta"])):
            return None
        document = _revert_entry(document, entry)
    return document


def _revert_entry(document: Document, entry: Entry) -> Document:
    try:
        before = apply_delta(document, read_delta(entry["delta"]).reversed(), loose=True)
        assert set(before.order) == before.lines.keys(), "what is heard are the lines"
        return before
    except (LookupError, ValueError, TypeError, AssertionError) as error:
        message = (
            "The history doesn't fit the lines here, so it ends: nothing further back is left."
        )
        raise Conflict(message) from error


def _advance_marks(marks: Marks, entry: Entry, start: int) -> Marks:
    """Where history stands after an entry."""
    rev, at_s, gone = entry["rev"], entry["at"], marks.gone
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
