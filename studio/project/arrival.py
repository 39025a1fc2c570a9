"""A project's files as they come from elsewhere: looked through before they are opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from studio.dialog.pronouncing import Pronunciation, checked_pronunciations
from studio.errors import BadInput, StorageFailed
from studio.project.checks import check_bounds
from studio.project.delta import applied, changed_entries, read_delta
from studio.project.document import LINE, Document, Line
from studio.project.folder import (
    JOURNAL,
    LATEST_S,
    MAX_SNAPSHOT_BYTES,
    SNAPSHOT,
    Snapshot,
    read_snapshot,
)
from studio.project.history import Kind
from studio.project.journal import entries_in

_Place = Annotated[int, Field(ge=0)]
_LineId = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
_Field = Literal[
    "name",
    "cast",
    "first_names",
    "settings",
    "locked_takes",
    "deleted_takes",
    "accepted_takes",
    "pronunciations",
]
_Side = dict[str, Any] | None
_Order = tuple[_Place, list[_LineId], list[_LineId], _LineId | None]
_OlderOrder = tuple[_Place, list[_LineId], list[_LineId]]


class _Delta(BaseModel):
    lines: dict[_LineId, tuple[_Side, _Side]] = {}
    order: _Order | _OlderOrder | None = None
    fields: dict[_Field, tuple[Any, Any]] = {}


class _Entry(BaseModel):
    """An entry of a journal, as `History` writes it."""

    model_config = ConfigDict(extra="forbid")

    rev: _Place
    at: Annotated[float, Field(ge=0, le=LATEST_S)]
    client: str
    group: str | None = None
    edit_id: str | None = None
    kind: Kind
    joined: bool = False
    next: _Place | None = None
    below: _Place | None
    gone: tuple[_Place, ...] = ()
    delta: _Delta


_DOCUMENT: TypeAdapter[Document] = TypeAdapter(Document)


def check_arrival(root: Path) -> None:
    """See that a folder's snapshot and history are what a studio writes.

    Raises:
        BadInput: They aren't, so that the project could not be opened, shown or undone.
    """
    if (root / SNAPSHOT).stat().st_size > MAX_SNAPSHOT_BYTES:
        raise BadInput("This project file is too large.")
    try:
        snapshot = read_snapshot(root / SNAPSHOT)
        _check_document(snapshot.document)
        if (root / JOURNAL).is_file():
            _check_past(root / JOURNAL, snapshot)
    except StorageFailed as error:
        raise BadInput(str(error)) from error
    except (ValueError, LookupError, TypeError, AssertionError) as error:
        raise BadInput("This project file is damaged. Export it again.") from error


def _check_past(path: Path, snapshot: Snapshot) -> None:
    """See that a snapshot fits its journal, and that undo comes to an end."""
    starts: set[int | None] = {None}
    end, document = 0, snapshot.document
    for placed in entries_in(path):
        entry = _Entry.model_validate(placed.entry)
        if not {entry.next, entry.below, *entry.gone} <= starts:
            raise ValueError("an entry leads to none before it")
        _check_values(entry.delta)
        if placed.start >= snapshot.journal_bytes:
            document = applied(document, read_delta(placed.entry["delta"]))
        starts.add(placed.start)
        end = placed.end
    size = path.stat().st_size
    if end < size:
        raise ValueError("a line of it isn't whole")
    if snapshot.journal_bytes < size and snapshot.journal_bytes not in starts:
        raise ValueError("the lines go on within an entry")
    # Where the journal is too short, they are forgotten when it is opened.
    if snapshot.journal_bytes <= size and not {snapshot.marks.undo, snapshot.marks.redo} <= starts:
        raise ValueError("undo leads to no entry")
    _check_document(document)


def _check_document(document: Document) -> None:
    if sorted(document.order) != sorted(document.lines):
        raise ValueError("what is heard aren't the lines")
    _check_entries(document.pronunciations)
    for line in document:
        _check_line(line)


def _check_values(delta: _Delta) -> None:
    for line_id, sides in delta.lines.items():
        for side in filter(None, sides):
            _check_line(LINE.validate_python({**side, "line_id": line_id}))
    for values in zip(*delta.fields.values(), strict=True):
        fields = dict(zip(delta.fields, values, strict=True))
        entries = changed_entries(fields.pop("pronunciations", {}))
        _check_entries(entries)
        _DOCUMENT.validate_python(fields)


def _check_entries(entries: Mapping[str, Pronunciation]) -> None:
    try:
        checked = checked_pronunciations(entries.values())
    except BadInput as error:
        raise ValueError(str(error)) from error
    if {one.written: one for one in checked} != entries:
        raise ValueError("a pronunciation isn't as it is kept")


def _check_line(line: Line) -> None:
    try:
        check_bounds(line)
    except BadInput as error:
        raise ValueError(str(error)) from error
