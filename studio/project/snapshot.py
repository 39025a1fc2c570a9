"""The snapshot of a project: what `project.json` holds, and how it is written and read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from studio.dialog.gaps import GAP
from studio.project.characters import PAN
from studio.project.document import Document, encode_document, read_document
from studio.project.history import Marks
from studio.storage.disk import read_file
from studio.storage.records import MAX_TIME_S, RecordFormat, add_checksum

SNAPSHOT_FORMAT = RecordFormat(
    "This project",
    further=frozenset({"starred_takes", "comments", "characters", GAP}),
    latest=frozenset({PAN}),
)

MAX_SNAPSHOT_BYTES = 64_000_000
"""Limit for an imported project; thirty thousand lines take a tenth of it."""

_MAX_SAVED_EDIT_IDS = 200
_JSON_ENCODER = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ProjectSnapshot:
    """A consistent state of a project; later changes are in the journal from `journal_bytes` on.

    Attributes:
        edit_ids: As `seen` in `OpenedHistory`.
        audio_s: Total duration of what could be played.
    """

    document: Document = field(default_factory=Document)
    marks: Marks = field(default_factory=Marks)
    journal_bytes: int = 0
    edit_ids: tuple[str, ...] = ()
    audio_s: float = 0.0


_Offset = Annotated[int, Field(ge=0)]


class HistoryRecord(BaseModel):
    """The marks of the history, as a record in a snapshot."""

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
        """The same as marks of a history."""
        gone = frozenset(self.gone)
        return Marks(self.rev, self.undo, self.redo, self.last, self.at_s, gone)


def encode_snapshot(snapshot: ProjectSnapshot) -> bytes:
    """A snapshot as the content of its file, with a row for each line of the dialog."""
    marks = snapshot.marks
    document = encode_document(snapshot.document)
    is_panned = any(one.pan for one in snapshot.document.characters.values())
    marked = {**document, GAP: snapshot.document.uses_gaps, PAN: is_panned}
    record: dict[str, Any] = {"version": SNAPSHOT_FORMAT.version_of(marked), **document}
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
    return add_checksum(_encode_record(record).encode("utf-8"))


def _encode_record(record: Mapping[str, Any]) -> str:
    """Encode JSON with a row for each line of the dialog.

    Not with `indent`, which takes about twice as long, as it doesn't use the encoder in C.
    """
    rows = [
        f"{_JSON_ENCODER.encode(name)}: {_encode_value(value)}" for name, value in record.items()
    ]
    return "{\n " + ",\n ".join(rows) + "\n}\n"


def _encode_value(value: Any) -> str:
    written = _JSON_ENCODER.encode(value)
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return written
    # All rows begin with the same key, behind a bracket that isn't within a string, where a
    # quotation mark has a backslash. So they are found sooner than each is encoded by itself.
    begins = "{" + _JSON_ENCODER.encode(next(iter(value[0]))) + ": "
    return "[\n  " + written[1:-1].replace(f"}}, {begins}", f"}},\n  {begins}") + "\n ]"


def read_snapshot(path: Path) -> ProjectSnapshot:
    """Read a snapshot from its file."""
    return decode_snapshot(read_file(path))


def decode_snapshot(data: bytes) -> ProjectSnapshot:
    """Read the content of a snapshot's file; raises as `read_snapshot`."""
    record = SNAPSHOT_FORMAT.decode(data)
    past = HistoryRecord.model_validate(record["history"])
    audio_s = float(record["audio_s"])
    return ProjectSnapshot(
        read_document(record), past.to_marks(), past.journal_bytes, past.seen, audio_s
    )
