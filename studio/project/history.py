"""A document with its past: every change goes to the journal, and undo has no end.

What can be undone is a chain within the journal: each entry names the one below it. Memory holds
the two tops, however long the chain is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from studio.errors import Conflict
from studio.project.delta import Delta, applied, difference, read_delta
from studio.project.document import Document
from studio.project.journal import Entry, Journal

JOIN_WITHIN_S = 2.0
"""Edits of one group that follow each other within this are one step of undo."""

Settle = Callable[[Document], Document]


class Kind(StrEnum):
    """What an entry of the journal is; `made` is what renders change, and can't be undone."""

    EDIT = "edit"
    MADE = "made"
    UNDO = "undo"
    REDO = "redo"


@dataclass(frozen=True, slots=True)
class Author:
    """Who made an edit.

    Attributes:
        client: A page; empty for the studio itself.
        group: Edits of one group in quick succession are one step of undo.
        edit_id: The same id never takes effect twice.
    """

    client: str = ""
    group: str | None = None
    edit_id: str | None = None


@dataclass(frozen=True, slots=True)
class Marks:
    """Where history stands; with a document it is all that a snapshot needs.

    Attributes:
        rev: Rises with each entry but those of renders.
        undo, redo: Where in the journal the next step back and forth begins.
        last: Client, group and time of the edit that a further one may join.
        at_s: When the latest entry was made, in seconds since 1970.
    """

    rev: int = 0
    undo: int | None = None
    redo: int | None = None
    last: tuple[str, str, float] | None = None
    at_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
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
        self.document = applied(self.document, read_delta(entry["delta"]))
        self.marks = _advanced(self.marks, entry, start)

    def record(
        self, after: Document, author: Author, at_s: float, kind: Kind = Kind.EDIT
    ) -> Step | None:
        """Make a change the latest of history; None when it changes nothing.

        Raises:
            StorageFailed: It can't be written; nothing changed then.
        """
        delta = difference(self.document, after)
        if not delta:
            return None
        joined = kind is Kind.EDIT and self._joins(author, at_s)
        return self._append(delta, after, author, at_s, {"kind": kind, "joined": joined})

    def undo(self, author: Author, at_s: float, settle: Settle) -> Step:
        """Take the latest step back.

        Args:
            author: Who does.
            at_s: When.
            settle: Has the last word on the document.

        Raises:
            Conflict: There is none.
            StorageFailed: It can't be read or written; nothing changed then.
        """
        start, document = self.marks.undo, self.document
        if start is None:
            raise Conflict("There is nothing to undo.")
        joined = True
        while joined and start is not None:
            entry = self._journal.read(start)
            document = applied(document, read_delta(entry["delta"]).reversed())
            joined, start = entry.get("joined", False), entry["below"]
        document = settle(document)
        how = {"kind": Kind.UNDO, "next": start}
        return self._append(difference(self.document, document), document, author, at_s, how)

    def redo(self, author: Author, at_s: float, settle: Settle) -> Step:
        """Take the latest undo back; arguments as in `undo`.

        Raises:
            Conflict: There is none.
            StorageFailed: It can't be read or written; nothing changed then.
        """
        if self.marks.redo is None:
            raise Conflict("There is nothing to redo.")
        entry = self._journal.read(self.marks.redo)
        document = settle(applied(self.document, read_delta(entry["delta"]).reversed()))
        how = {"kind": Kind.REDO, "next": entry["below"]}
        return self._append(difference(self.document, document), document, author, at_s, how)

    def author_of_next_undo(self) -> tuple[int, str] | None:
        """Revision and client of the step that undo would take back."""
        if self.marks.undo is None:
            return None
        entry = self._journal.read(self.marks.undo)
        return entry["rev"], entry["client"]

    def _joins(self, author: Author, at_s: float) -> bool:
        last = self.marks.last
        return (
            last is not None
            and author.group is not None
            and last[:2] == (author.client, author.group)
            and 0 <= at_s - last[2] <= JOIN_WITHIN_S
        )

    def _append(
        self,
        delta: Delta,
        after: Document,
        author: Author,
        at_s: float,
        how: Mapping[str, Any],
    ) -> Step:
        kind = how["kind"]
        entry: Entry = {
            "rev": self.marks.rev + (kind is not Kind.MADE),
            "at": at_s,
            "client": author.client,
            **({"group": author.group} if author.group else {}),
            **({"edit_id": author.edit_id} if author.edit_id else {}),
            **how,
            "below": self.marks.redo if kind is Kind.UNDO else self.marks.undo,
            "delta": delta.record(),
        }
        start = self._journal.append(entry)
        step = Step(entry, delta, self.document, after)
        self.document, self.marks = after, _advanced(self.marks, entry, start)
        return step


def _advanced(marks: Marks, entry: Entry, start: int) -> Marks:
    """Where history stands after an entry."""
    rev, at_s = entry["rev"], entry["at"]
    match Kind(entry["kind"]):
        case Kind.MADE:
            return Marks(rev, marks.undo, marks.redo, marks.last, at_s)
        case Kind.EDIT:
            group = entry.get("group")
            last = (entry["client"], group, at_s) if group else None
            return Marks(rev, start, None, last, at_s)
        case Kind.UNDO:
            return Marks(rev, entry["next"], start, None, at_s)
        case Kind.REDO:
            return Marks(rev, start, entry["next"], None, at_s)
