"""The difference between two documents: the journal stores it, and undo reverses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from operator import attrgetter, ne
from typing import Any

from pydantic import TypeAdapter

from studio.dialog.pronunciation import Pronunciation
from studio.project.characters import CHANGED_CHARACTERS_ADAPTER, Character, encode_character
from studio.project.comments import Comment
from studio.project.document import (
    LINE_ADAPTER,
    SETTINGS_ADAPTER,
    Document,
    ProjectLine,
    ProjectSettings,
    change_line,
    encode_line,
    encode_settings,
)

LineFields = Mapping[str, Any]
_LineChange = tuple[LineFields | None, LineFields | None]

TAKE_FIELDS = ("locked_takes", "deleted_takes", "accepted_takes", "starred_takes")

_ENTRY_ADAPTERS: Mapping[str, TypeAdapter[Any]] = {
    "pronunciations": TypeAdapter(dict[str, Pronunciation | None]),
    "comments": TypeAdapter(dict[str, Comment | None]),
    "characters": CHANGED_CHARACTERS_ADAPTER,
}
"""The fields of which a delta has only the changed entries, null for absent ones."""

_ENTRY_KEYS = {"pronunciations": "written", "comments": "comment_id"}
"""What an entry is known by, where it says so itself."""

_LINE_FIELDS = tuple(ProjectLine.__dataclass_fields__)
_get_line_values = attrgetter(*_LINE_FIELDS)

_DOCUMENT_FIELDS = ("name", "cast", "first_names", "settings", *TAKE_FIELDS, *_ENTRY_ADAPTERS)

_VOICE_FIELDS = frozenset({"cast", "first_names", "characters", "settings"})


@dataclass(frozen=True, slots=True)
class Splice:
    """A change of the lines' order: `inserted` replaces `removed` at index `start`.

    Attributes:
        after: The line before them, by which the place is found if the order has changed since;
            None at the start of the dialog, or if unknown.
    """

    start: int
    removed: tuple[str, ...]
    inserted: tuple[str, ...]
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """A reversible difference between two documents.

    Attributes:
        lines: By id, the values before and after: a whole line if it was added (before is None) or
            deleted (after is None), else its changed fields.
        order: None if it didn't change.
        fields: Other changes of the document, as JSON values.
    """

    lines: Mapping[str, _LineChange] = field(default_factory=dict)
    order: Splice | None = None
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.lines or self.order or self.fields)

    @property
    def affects_speakers(self) -> bool:
        return not _VOICE_FIELDS.isdisjoint(self.fields) or any(
            before is None or after is None or "speaker" in after
            for before, after in self.lines.values()
        )

    def reverse(self) -> Delta:
        """The reverse difference."""
        order = self.order
        return Delta(
            {line_id: (after, before) for line_id, (before, after) in self.lines.items()},
            Splice(order.start, order.inserted, order.removed, order.after) if order else None,
            {name: (after, before) for name, (before, after) in self.fields.items()},
        )

    def to_record(self) -> dict[str, Any]:
        """The delta as a record of the journal, without unchanged parts."""
        record: dict[str, Any] = {}
        if self.lines:
            record["lines"] = {line_id: list(change) for line_id, change in self.lines.items()}
        if self.order:
            order = self.order
            record["order"] = [order.start, order.removed, order.inserted, order.after]
        if self.fields:
            record["fields"] = {name: list(change) for name, change in self.fields.items()}
        return record


def read_delta(record: Mapping[str, Any]) -> Delta:
    """Read a delta from a record of the journal."""
    order = record.get("order")
    return Delta(
        {line_id: (before, after) for line_id, (before, after) in record.get("lines", {}).items()},
        Splice(order[0], tuple(order[1]), tuple(order[2]), *order[3:]) if order else None,
        {name: (before, after) for name, (before, after) in record.get("fields", {}).items()},
    )


def diff_documents(before: Document, after: Document) -> Delta:
    """Compute the difference between two documents."""
    lines = {
        line_id: change
        for line_id in {**before.lines, **after.lines}
        if (was := before.lines.get(line_id)) is not (now := after.lines.get(line_id))
        and (change := _diff_line(was, now))
    }
    fields = {
        name: _diff_field(name, getattr(before, name), getattr(after, name))
        for name in _DOCUMENT_FIELDS
        if getattr(before, name) != getattr(after, name)
    }
    return Delta(lines, _diff_order(before.order, after.order), fields)


def apply_delta(document: Document, delta: Delta, *, loose: bool = False) -> Document:
    """Apply a change to a document.

    Args:
        document: The document before.
        delta: The change.
        loose: Whether the order of lines may have changed since, so that the place is searched.
    """
    lines = document.lines
    if delta.lines:
        lines = dict(lines)
        for line_id, (before, after) in delta.lines.items():
            if after is None:
                del lines[line_id]
            elif before is None:
                lines[line_id] = LINE_ADAPTER.validate_python(after)
            else:
                lines[line_id] = change_line(lines[line_id], **after)
    fields = {
        name: _parse_field(name, after, document) for name, (_, after) in delta.fields.items()
    }
    order = document.order
    if loose and delta.order and not _fits_exactly(order, delta.order):
        order = _rebase_splice(order, delta.order, lines)
    else:
        order = _apply_splice(order, delta.order)
    return replace(document, lines=lines, order=order, **fields)


def still_applies(document: Document, delta: Delta) -> bool:
    """Whether a document still has all that a change made, apart from the choice of takes."""
    return all(
        _line_still_applies(document.lines.get(line_id), after)
        for line_id, (_, after) in delta.lines.items()
    ) and all(
        _field_still_applies(document, name, after) for name, (_, after) in delta.fields.items()
    )


def _line_still_applies(line: ProjectLine | None, after: LineFields | None) -> bool:
    if line is None or after is None:
        return line is None and after is None
    if "line_id" in after:
        return replace(LINE_ADAPTER.validate_python(after), chosen=line.chosen) == line
    return all(
        _to_plain(getattr(line, name)) == value for name, value in after.items() if name != "chosen"
    )


def _diff_line(before: ProjectLine | None, after: ProjectLine | None) -> _LineChange | None:
    if before is None or after is None:
        return _encode_whole_line(before), _encode_whole_line(after)
    was, now = _get_line_values(before), _get_line_values(after)
    changed = list(map(ne, was, now))
    names = list(compress(_LINE_FIELDS, changed))
    if not names:
        return None
    old, new = map(_to_plain, compress(was, changed)), map(_to_plain, compress(now, changed))
    return dict(zip(names, old, strict=True)), dict(zip(names, new, strict=True))


def _encode_whole_line(line: ProjectLine | None) -> LineFields | None:
    return None if line is None else encode_line(line)


def _diff_order(before: tuple[str, ...], after: tuple[str, ...]) -> Splice | None:
    if before == after:
        return None
    shortest = min(len(before), len(after))
    start = next((idx for idx in range(shortest) if before[idx] != after[idx]), shortest)
    most = shortest - start
    tail = next((idx for idx in range(most) if before[-1 - idx] != after[-1 - idx]), most)
    removed, inserted = before[start : len(before) - tail], after[start : len(after) - tail]
    return Splice(start, removed, inserted, before[start - 1] if start else None)


def _fits_exactly(order: tuple[str, ...], splice: Splice) -> bool:
    end = splice.start + len(splice.removed)
    before = order[splice.start - 1] if 0 < splice.start <= len(order) else None
    return order[splice.start : end] == splice.removed and before == splice.after


def _rebase_splice(
    order: tuple[str, ...], splice: Splice, lines: Mapping[str, ProjectLine]
) -> tuple[str, ...]:
    """Adapt a change of the order to lines that others moved, added or deleted since."""
    moved = {*splice.removed, *splice.inserted}
    rest = [line_id for line_id in order if line_id not in moved]
    start = rest.index(splice.after) + 1 if splice.after in rest else min(splice.start, len(rest))
    rest[start:start] = [line_id for line_id in splice.inserted if line_id in lines]
    return tuple(rest)


def _apply_splice(order: tuple[str, ...], splice: Splice | None) -> tuple[str, ...]:
    if splice is None:
        return order
    end = splice.start + len(splice.removed)
    assert order[splice.start : end] == splice.removed, "a change is applied where it was made"
    return order[: splice.start] + splice.inserted + order[end:]


def _to_plain(value: Any) -> Any:
    if isinstance(value, str):  # as most are
        return value
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    return encode_settings(value) if isinstance(value, ProjectSettings) else value


def _diff_field(name: str, before: Any, after: Any) -> tuple[Any, Any]:
    if name not in _ENTRY_ADAPTERS:
        return _to_plain(before), _to_plain(after)
    changed = [one for one in {**before, **after} if before.get(one) != after.get(one)]
    return _encode_entries(before, changed), _encode_entries(after, changed)


def _encode_entries(entries: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: _encode_entry(entries[name]) if name in entries else None for name in names}


def _encode_entry(entry: Any) -> dict[str, Any]:
    return encode_character(entry) if isinstance(entry, Character) else asdict(entry)


def _field_still_applies(document: Document, name: str, after: Any) -> bool:
    value = getattr(document, name)
    return bool(
        (_encode_entries(value, after) if name in _ENTRY_ADAPTERS else _to_plain(value)) == after
    )


def parse_changed_entries(name: str, entries: Any) -> dict[str, Any]:
    """The pronunciations, comments or characters on one side of a delta, by their keys.

    Args:
        name: The document's field.
        entries: That side.

    Raises:
        ValueError: The record is malformed.
    """
    brought = _ENTRY_ADAPTERS[name].validate_python(entries)
    found = {key: one for key, one in brought.items() if one is not None}
    own_key = _ENTRY_KEYS.get(name)
    if own_key and any(getattr(one, own_key) != key for key, one in found.items()):
        raise ValueError("an entry stands under another key")
    return found


def _parse_field(name: str, value: Any, document: Document) -> Any:
    if name in _ENTRY_ADAPTERS:
        known = getattr(document, name)
        kept = {key: entry for key, entry in known.items() if key not in value}
        return kept | parse_changed_entries(name, value)
    if name == "settings":
        return SETTINGS_ADAPTER.validate_python(value)
    return tuple(value) if name in TAKE_FIELDS else value
