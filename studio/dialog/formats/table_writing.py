"""A dialog as a table: one line in each row, parameters in columns of their own."""

from __future__ import annotations

import csv
import io

from studio.dialog.attributes import Attributes, write_attributes
from studio.dialog.formats.cells import guarded
from studio.dialog.formats.columns import PARAM_PREFIX, Role, role_of
from studio.dialog.model import Audio, Dialog, Line, Silence, Speech
from studio.dialog.names import clean_name
from studio.dialog.paragraph import paragraph

_ALWAYS = (Role.SPEAKER, Role.TEXT)
_WHERE_USED = (Role.LANGUAGE, Role.SEED, Role.PAUSE, Role.AUDIO)


def write_table(dialog: Dialog, delimiter: str) -> str:
    """Write a table with headings; columns that no line needs are left out.

    Cells that a spreadsheet would take for formulas get an apostrophe before them.

    Raises:
        NameRejected: A speaker's name can't stand in any file.
        ScriptError: A text is too long.
    """
    rows = [_row(line) for line in dialog]
    used = dict.fromkeys(heading for row in rows for heading in row)
    roles = [*_ALWAYS, *(role for role in _WHERE_USED if role in used)]
    headings = [*roles, *(heading for heading in used if heading not in roles)]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, headings, restval="", delimiter=delimiter, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _row(line: Line) -> dict[str, str]:
    match line:
        case Silence():
            return {Role.PAUSE: repr(line.duration_s)}
        case Audio():
            return {Role.AUDIO: guarded(line.path)}
        case Speech():
            return _speech(line)


def _speech(line: Speech) -> dict[str, str]:
    row: dict[str, str] = {
        Role.SPEAKER: guarded(clean_name(line.speaker)),
        Role.TEXT: guarded(paragraph(line.text)),
    }
    if line.language is not None:
        row[Role.LANGUAGE] = line.language
    if line.seed is not None:
        row[Role.SEED] = str(line.seed)
    for written in write_attributes(Attributes(params=line.params)):
        key, _, value = written.partition(":")
        row[_heading(key)] = value
    return row


def _heading(key: str) -> str:
    return key if role_of(key) is None else f"{PARAM_PREFIX}{key}"
