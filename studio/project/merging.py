"""Two pages on one project: which edits can follow each other, and which are in dispute."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from studio.errors import EditConflict
from studio.project import ops
from studio.project.document import Document
from studio.project.history import Kind
from studio.project.journal import Entry

WHOLE = "line"
"""Stands for all fields of a line: it came, it went, or an edit is about all of it."""

_NOT_WRITTEN = frozenset({"chosen", "locked"})

Foreign = Mapping[str, frozenset[str]]
"""Fields that others changed, by line; "" is the project itself."""

_Claim = tuple[str, str, Any]
"""A line, the field an edit relies on (none: only the line), and what the edit makes of it."""


class Touches:
    """Who changed what last, by line and field; grows with the lines, not with the edits."""

    def __init__(self) -> None:
        """Nothing was touched yet."""
        self._latest: dict[tuple[str, str], tuple[int, str]] = {}

    def take_in(self, entry: Entry) -> None:
        """Remember what an entry of the journal changed."""
        if entry["kind"] == Kind.MADE:
            return
        mark = (entry["rev"], entry["client"])
        delta = entry["delta"]
        for line_id, (before, after) in delta.get("lines", {}).items():
            for name in (WHOLE,) if before is None or after is None else after:
                self._latest[line_id, name] = mark
        for name in delta.get("fields", {}):
            self._latest["", name] = mark

    def by_others(self, base_rev: int, client: str) -> Foreign:
        """All that others changed after a revision."""
        found: dict[str, set[str]] = defaultdict(set)
        for (line_id, name), (rev, by) in self._latest.items():
            if rev > base_rev and by != client:
                found[line_id].add(name)
        return {line_id: frozenset(names) for line_id, names in found.items()}


def written(foreign: Foreign) -> Foreign:
    """What of it stands in a script; a take that was chosen or a voice that was cast doesn't."""
    found = {line_id: names - _NOT_WRITTEN for line_id, names in foreign.items() if line_id}
    return {line_id: names for line_id, names in found.items() if names}


def check_mergeable(
    document: Document, edits: Iterable[ops.Op], foreign: Foreign, *, rev: int
) -> None:
    """See that edits made on an older revision undo nothing that others did since.

    Raises:
        EditConflict: They would; says where.
    """
    new: set[str] = set()
    conflicts: list[dict[str, object]] = []
    for number, edit in enumerate(edits):
        for claim in _claims(edit):
            is_gone_anyway = isinstance(edit, ops.Delete) and claim[0] not in document.lines
            if claim[0] not in new and not is_gone_anyway:
                found = _conflicts(document, claim, foreign)
                conflicts += [{"op": number, **conflict} for conflict in found]
        new.update(_brought_in(edit))
    if conflicts:
        message = "Somebody else changed the same line meanwhile. Compare both and choose."
        raise EditConflict(message, rev=rev, conflicts=conflicts)


def _conflicts(document: Document, claim: _Claim, foreign: Foreign) -> Iterator[dict[str, object]]:
    line_id, field, mine = claim
    line = document.lines.get(line_id)
    if line_id and line is None:
        yield {"line_id": line_id, "field": WHOLE, "mine": mine, "theirs": None}
        return
    holder = document if line is None else line
    touched = foreign.get(line_id, frozenset())
    for name in sorted(touched if field == WHOLE else touched & {field}):
        theirs = getattr(holder, name, None)
        if field == WHOLE or theirs != mine:
            yield {"line_id": line_id, "field": name, "mine": mine, "theirs": theirs}


def _claims(edit: ops.Op) -> Iterable[_Claim]:
    match edit:
        case ops.SetFields(line_ids=line_ids, fields=fields):
            return [(one, name, value) for one in line_ids for name, value in fields.items()]
        case ops.Insert(after=after):
            return [] if after is None else [(after, "", None)]
        case ops.Move(line_ids=line_ids, after=after):
            return [(one, "", None) for one in [*line_ids, after] if one is not None]
        case ops.Join(line_ids=line_ids) | ops.Delete(line_ids=line_ids):
            return [(one, WHOLE, None) for one in line_ids]
        case ops.Split(line_id=line_id):
            return [(line_id, "text", None)]
        case ops.Choose(line_id=line_id, take_id=take_id):
            return [(line_id, "chosen", take_id)]
        case ops.Rename(name=name):
            return [("", "name", name)]
        case _:
            return []


def _brought_in(edit: ops.Op) -> list[str]:
    match edit:
        case ops.Insert(lines=lines):
            return [str(line.get("line_id")) for line in lines]
        case ops.Split(new_line_id=new_line_id):
            return [new_line_id]
        case _:
            return []
