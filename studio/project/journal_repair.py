"""Repairs a journal of which a part is damaged: keeps all changes but those of the damaged lines.

The repaired journal begins with the whole document as it was after the damaged part, and goes on
with the entries behind it, whose references to each other are moved with them. So undo goes back
to the damage at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from studio.project.delta import Delta, apply_delta, diff_documents, read_delta
from studio.project.document import Document
from studio.project.history import (
    Entry,
    EntryKind,
    Marks,
    StoredEntry,
    advance_marks,
    decode_entry,
    encode_entry,
)

_LINE_START = re.compile(rb'(?=\{"sum":"[0-9a-f]{8}","entry":)')
UNFIT_ERRORS = (LookupError, ValueError, TypeError, AssertionError)
"""What an entry raises that doesn't fit the document, or isn't as a studio writes it."""


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    """A part of a journal that can't be read."""

    start: int


@dataclass(slots=True)
class Recovery:
    """What is left of a damaged journal.

    Attributes:
        base: The document after the damaged part.
        entries: The entries behind it, by their offsets in the damaged journal.
        document: The latest document.
        lost: How many changes are lost.
        last_at_s: The time of the last change before the damage; 0 if unknown.
        edit_ids: The ids of edits that were applied.
        maker: As `Journal.maker`.
    """

    base: Document
    entries: list[StoredEntry] = field(default_factory=list)
    document: Document = field(default_factory=Document)
    lost: int = 0
    last_at_s: float = 0.0
    edit_ids: list[str] = field(default_factory=list)
    maker: str = ""

    @property
    def latest_at_s(self) -> float:
        """The time of the latest change that is left."""
        return float(self.entries[-1].entry["at"]) if self.entries else self.last_at_s


def read_pieces(path: Path) -> Iterator[StoredEntry | DamagedEntry]:
    """Read a journal to its end, with the damaged parts between its entries.

    Raises:
        FormatNewer: A newer studio wrote one of the entries.
    """
    start = 0
    with path.open("rb") as file:
        for line in file:
            # Damage to the end of a line joins it with the next one.
            for part in filter(None, _LINE_START.split(line)):
                entry = decode_entry(part) or decode_entry(part[:-1] + b"\n")
                if entry is not None:
                    yield StoredEntry(start, start + len(part), entry)
                elif part.endswith(b"\n"):
                    yield DamagedEntry(start)
                start += len(part)


def recover_document(path: Path, document: Document, known_bytes: int) -> Recovery:
    """Apply what can be read of a journal to the document that it had at an offset.

    Args:
        path: The journal.
        document: The document at `known_bytes`; empty without a snapshot.
        known_bytes: The offset, 0 without a snapshot.

    Raises:
        FormatNewer: A newer studio wrote one of the entries.
        OSError: It can't be read.
    """
    pieces = list(read_pieces(path))
    found = _recover(pieces, document, known_bytes)
    if pieces and isinstance(pieces[0], StoredEntry):
        found.maker = pieces[0].entry.get("client", "")
    return found


def _recover(
    pieces: Sequence[StoredEntry | DamagedEntry], document: Document, known_bytes: int
) -> Recovery:
    damaged = [one.start for one in pieces if isinstance(one, DamagedEntry)]
    last = max(damaged, default=-1)
    if last >= known_bytes:
        return _apply_around(pieces, document, known_bytes)
    # The document knows what the damaged entries did.
    entries = [one for one in pieces if isinstance(one, StoredEntry) and one.start > last]
    found = Recovery(*_rewind(document, [one for one in entries if one.start < known_bytes]))
    found.document = document
    before = [one for one in pieces if isinstance(one, StoredEntry) and one.start < last]
    found.last_at_s = float(before[-1].entry["at"]) if before else 0.0
    for one in entries:
        if one.start >= known_bytes:
            _apply_entry(found, one, is_loose=False)
    return found


def _rewind(
    document: Document, entries: Sequence[StoredEntry]
) -> tuple[Document, list[StoredEntry]]:
    """The document before some entries, and those of them that could be reversed."""
    kept: list[StoredEntry] = []
    for one in reversed(entries):
        try:
            document = apply_delta(document, read_delta(one.entry["delta"]).reverse())
        except UNFIT_ERRORS:
            break
        kept.append(one)
    return document, kept[::-1]


def _apply_around(
    pieces: Iterable[StoredEntry | DamagedEntry], document: Document, known_bytes: int
) -> Recovery:
    found = Recovery(document, document=document)
    is_loose = False
    for one in pieces:
        if isinstance(one, StoredEntry):
            if one.start >= known_bytes:
                _apply_entry(found, one, is_loose=is_loose)
            else:
                found.last_at_s = float(one.entry["at"])
        elif one.start >= known_bytes:
            found.last_at_s = found.latest_at_s
            found.base, found.entries, is_loose = found.document, [], True
            found.lost += 1
    return found


def _apply_entry(found: Recovery, one: StoredEntry, *, is_loose: bool) -> None:
    """Apply an entry, or count it as lost if it doesn't fit."""
    before = found.document
    try:
        delta = read_delta(one.entry["delta"])
        after = _apply_loosely(before, delta) if is_loose else apply_delta(before, delta)
        if sorted(after.order) != sorted(after.lines):
            raise ValueError("what is heard aren't the lines")
    except UNFIT_ERRORS:
        found.lost += 1
        return
    if is_loose:
        fitting = diff_documents(before, after).to_record()
        one = replace(one, entry={**one.entry, "delta": fitting})
    found.document = after
    found.entries.append(one)
    found.edit_ids += [one.entry["edit_id"]] if "edit_id" in one.entry else []


def _apply_loosely(document: Document, delta: Delta) -> Document:
    """Apply what a change made, even if the values before it are others; skip lines that lack."""
    lines = {
        line_id: (before, after)
        for line_id, (before, after) in delta.lines.items()
        if line_id in document.lines or (before is None and after is not None)
    }
    return apply_delta(document, replace(delta, lines=lines), loose=True)


def build_journal(found: Recovery, known: Marks) -> tuple[bytes, Marks]:
    """A journal that makes a recovered document, and the marks at its end.

    Args:
        found: What is left.
        known: The marks of the snapshot, which has the latest revision that is known without it.
    """
    first_rev = max(0, found.entries[0].entry["rev"] - 1) if found.entries else known.rev
    whole: Entry = {
        "rev": first_rev,
        "at": found.last_at_s,
        "client": found.maker,
        "kind": EntryKind.MADE,
        "joined": False,
        "below": None,
        "delta": diff_documents(Document(), found.base).to_record(),
    }
    lines, marks = [encode_entry(whole)], advance_marks(Marks(), whole, 0)
    moved: dict[int | None, int] = {}
    size = len(lines[0])
    for one in found.entries:
        entry = _move_references(one.entry, moved)
        moved[one.start] = size
        marks = advance_marks(marks, entry, size)
        lines.append(encode_entry(entry))
        size += len(lines[-1])
    latest = replace(marks, rev=max(marks.rev, known.rev), at_s=max(marks.at_s, known.at_s))
    return b"".join(lines), latest


def _move_references(entry: Entry, moved: Mapping[int | None, int]) -> Entry:
    """An entry with the new offsets of others; what is gone ends undo and redo."""
    fresh = {**entry, "below": moved.get(entry["below"])}
    if "next" in entry:
        fresh["next"] = moved.get(entry["next"])
    if "gone" in entry:
        fresh["gone"] = [moved[one] for one in entry["gone"] if one in moved]
    return fresh
