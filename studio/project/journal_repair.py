"""Repairs a journal of which a part is damaged: keeps all changes but those of the damaged lines.

The repaired journal begins with the whole document as it was after the damaged part, and goes on
with the entries behind it, whose references to each other are moved with them. So undo goes back
to the damage at most.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from studio.project.delta import Delta, apply_delta, diff_documents, read_delta
from studio.project.document import Document
from studio.project.history import (
    Entry,
    EntryKind,
    Marks,
    StoredEntry,
    advance_marks,
    complete_line,
    decode_entry,
    encode_entry,
    follows,
    is_torn,
)
from studio.storage.disk import open_file

_LINE_START = re.compile(rb'(?=\{"sum":"[0-9a-f]{8}","entry":)')
UNFIT_ERRORS = (LookupError, ValueError, TypeError, AssertionError)
"""What an entry raises that doesn't fit the document, or isn't as a studio writes it."""


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    """A part of a journal that can't be read, or that lacks before `start`.

    Attributes:
        start: Its offset.
        count: How many changes it had, as far as one knows.
    """

    start: int
    count: int = 1


Piece = StoredEntry | DamagedEntry


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
        is_alone: Whether the snapshot is of another history, so that it doesn't count.
        maker: As `Journal.maker`.
    """

    base: Document
    entries: list[StoredEntry] = field(default_factory=list)
    document: Document = field(default_factory=Document)
    lost: int = 0
    last_at_s: float = 0.0
    edit_ids: list[str] = field(default_factory=list)
    is_alone: bool = False
    maker: str = ""

    @property
    def latest_at_s(self) -> float:
        return float(self.entries[-1].entry["at"]) if self.entries else self.last_at_s

    def restart(self, lost: int) -> None:
        """Have the history begin with the document as it is, after some changes are lost."""
        self.last_at_s = self.latest_at_s
        self.base, self.entries = self.document, []
        self.lost += lost


def read_pieces(path: Path) -> Iterator[Piece]:
    """Read a journal to its end, with the damaged parts between its entries."""
    start = 0
    with open_file(path) as file:
        for line in file:
            # Damage to the end of a line joins it with the next one.
            for part in filter(None, _LINE_START.split(line)):
                entry = decode_entry(complete_line(part) or part)
                if entry is not None:
                    yield StoredEntry(start, start + len(part), entry)
                elif part != codecs.BOM_UTF8 and not is_torn(part):
                    yield DamagedEntry(start)
                start += len(part)


def recover_document(path: Path, known: Document, known_bytes: int, known_rev: int) -> Recovery:
    """Apply what can be read of a journal to the document that it had at an offset.

    Args:
        path: The journal.
        known: The document at `known_bytes`; empty without a snapshot.
        known_bytes: The offset, 0 without a snapshot.
        known_rev: The revision at that offset.

    Raises:
        OSError: It can't be read.
    """
    pieces = list(read_pieces(path))
    found = _recover(pieces, known, known_bytes, known_rev)
    entries = (one.entry for one in pieces if isinstance(one, StoredEntry))
    made = (entry for entry in entries if entry["kind"] == EntryKind.MADE)
    found.maker = next(made, {}).get("client", "")
    return found


def _recover(
    pieces: Sequence[Piece], known: Document, known_bytes: int, known_rev: int
) -> Recovery:
    before = [one for one in pieces if one.start < known_bytes]
    after = pieces[len(before) :]
    if not _is_place(before, after, known_bytes, known_rev):
        whole = _mark_gaps(_put_in_order(pieces), 0)
        if _is_complete(whole):
            return replace(_apply_around(whole, Document()), is_alone=True)
        # Offsets say nothing of what the snapshot has; revisions do.
        readable = [one for one in whole if isinstance(one, StoredEntry)]
        before, after = [], [one for one in readable if one.entry["rev"] > known_rev]
    before = _mark_gaps(_put_in_order(before), None)
    if before and not _ends_at(before[-1], known_rev):
        before.append(DamagedEntry(known_bytes))
    after = _mark_gaps(_put_in_order(after), known_rev)
    if any(isinstance(one, DamagedEntry) for one in after):
        return _apply_around(after, known, _time_of(before))
    # The document knows what the damaged entries did.
    gaps = [idx for idx, one in enumerate(before) if isinstance(one, DamagedEntry)]
    first = gaps[-1] + 1 if gaps else 0
    latest = [one for one in before[first:] if isinstance(one, StoredEntry)]
    found = Recovery(*_rewind(known, latest), document=known, last_at_s=_time_of(before[:first]))
    for one in after:
        if isinstance(one, StoredEntry):
            _apply_entry(found, one, is_loose=False)
    return found


def _is_place(
    before: Sequence[Piece], after: Sequence[Piece], known_bytes: int, known_rev: int
) -> bool:
    """Whether a snapshot can be of the place between these pieces."""
    if not known_bytes:
        return True
    last, following = (before[-1] if before else None), (after[0] if after else None)
    if isinstance(last, StoredEntry) and (last.end != known_bytes or last.entry["rev"] > known_rev):
        return False
    return not isinstance(following, StoredEntry) or follows(known_rev, following.entry)


def _put_in_order(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Pieces by their revisions, if lines stand there twice or in another order."""
    entries = [one for one in pieces if isinstance(one, StoredEntry)]
    by_rev = sorted(entries, key=lambda one: one.entry["rev"])
    ordered: list[StoredEntry] = []
    for _, alike in groupby(by_rev, key=lambda one: one.entry["rev"]):
        first = len(ordered)
        for one in alike:
            if all(one.entry != other.entry for other in ordered[first:]):
                ordered.append(one)
    return pieces if ordered == entries else ordered


def _mark_gaps(pieces: Iterable[Piece], rev: int | None) -> list[Piece]:
    """Pieces after a revision, None if that isn't known, with what is missing between them."""
    marked: list[Piece] = []
    for one in pieces:
        if isinstance(one, DamagedEntry):
            marked.append(one)
            rev = None
        elif rev is not None and one.entry["rev"] <= rev and not follows(rev, one.entry):
            marked.append(DamagedEntry(one.start))  # it is of another history
        else:
            if not follows(rev, one.entry):
                assert rev is not None
                marked.append(DamagedEntry(one.start, one.entry["rev"] - rev - 1))
            marked.append(one)
            rev = one.entry["rev"]
    return marked


def _is_complete(pieces: Sequence[Piece]) -> bool:
    """Whether pieces are a history from the beginning of a project."""
    first = pieces[0] if pieces else None
    is_whole = all(isinstance(one, StoredEntry) for one in pieces)
    return is_whole and isinstance(first, StoredEntry) and first.entry["kind"] == EntryKind.MADE


def _ends_at(last: Piece, rev: int) -> bool:
    return isinstance(last, DamagedEntry) or last.entry["rev"] == rev


def _time_of(pieces: Sequence[Piece]) -> float:
    """The time of the latest entry of some pieces; 0 if there is none."""
    times = (float(one.entry["at"]) for one in reversed(pieces) if isinstance(one, StoredEntry))
    return next(times, 0.0)


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


def _apply_around(pieces: Iterable[Piece], document: Document, last_at_s: float = 0.0) -> Recovery:
    found = Recovery(document, document=document, last_at_s=last_at_s)
    is_loose = False
    for one in pieces:
        if isinstance(one, StoredEntry):
            is_loose = not _apply_entry(found, one, is_loose=is_loose) or is_loose
        else:
            found.restart(one.count)
            is_loose = True
    return found


def _apply_entry(found: Recovery, one: StoredEntry, *, is_loose: bool) -> bool:
    """Apply an entry, or count it as lost if it doesn't fit; returns whether it did."""
    before = found.document
    try:
        delta = read_delta(one.entry["delta"])
        after = _apply_loosely(before, delta) if is_loose else apply_delta(before, delta)
        if sorted(after.order) != sorted(after.lines):
            raise ValueError("what is heard aren't the lines")
    except UNFIT_ERRORS:
        found.restart(1)
        return False
    if is_loose:
        fitting = diff_documents(before, after).to_record()
        one = replace(one, entry={**one.entry, "delta": fitting})
    found.document = after
    found.entries.append(one)
    found.edit_ids += [one.entry["edit_id"]] if "edit_id" in one.entry else []
    return True


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
