"""Pronunciation lists as files: a table, JSON, or text with `written = spoken` in each line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import PurePath

import regex
from pydantic import TypeAdapter

from studio.dialog.model import Notice
from studio.dialog.pronunciation import Pronunciation, check_pronunciation, check_pronunciations
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.encoding import decode_text
from studio.dialog.reading.tables import (
    Row,
    escape_formula,
    likely_delimiter,
    read_rows,
    unescape_formula,
)
from studio.errors import BadInput, ScriptError
from studio.storage.disk import read_json


class ListFormat(StrEnum):
    """A format to write; the value is the file's suffix. Text can't store `match_case`."""

    CSV = "csv"
    TEXT = "txt"


_COLUMNS = ("written", "spoken", "match_case", "enabled")
_HEADINGS = {
    "written": "written word words text from original grapheme source",
    "spoken": "spoken pronunciation pronounced alias to replacement say said target",
    "match_case": "matchcase case casesensitive",
    "enabled": "enabled on active",
}
_COLUMN_OF = {word: column for column, words in _HEADINGS.items() for word in words.split()}
_NOT_IN_WORDS = regex.compile(r"[^\p{L}]+")
_YES = frozenset({"1", "yes", "y", "true", "on", "x"})
_NO = frozenset({"0", "no", "n", "false", "off"})
_PAIR = regex.compile(r"(?P<written>(?:\\.|[^\\=])*+)=(?P<spoken>.*)")
_ESCAPED = regex.compile(r"\\([\\=#])")
_TO_ESCAPE = regex.compile(r"[\\=]|^#")

_ENTRY: TypeAdapter[Pronunciation] = TypeAdapter(Pronunciation)


def read_pronunciations(
    data: bytes, file_name: str
) -> tuple[tuple[Pronunciation, ...], tuple[Notice, ...]]:
    """Read a list in any of its formats and any common encoding.

    Args:
        data: The whole file.
        file_name: For its suffix and for messages.

    Returns:
        Its entries, and notices of what was guessed.

    Raises:
        ScriptError: It isn't a text file, or a line is invalid; the message names the line.
        BadInput: It has too many entries, or none.
    """
    remarks = ImportNotices()
    if not data.strip():
        raise BadInput(f"“{file_name}” is empty. Write a line such as “Nguyen = win” into it.")
    text = decode_text(data, file_name, remarks)
    entries = check_pronunciations(_read(text, PurePath(file_name).suffix.lower(), remarks))
    if not entries:
        raise BadInput(f"“{file_name}” holds no pronunciations. Write a line “Nguyen = win”.")
    return entries, remarks.notices()


def write_pronunciations(entries: Iterable[Pronunciation], format_: ListFormat) -> bytes:
    """Write a list, sorted; in text, a disabled entry becomes a comment.

    Returns:
        UTF-8; a table begins with a byte order mark, without which Excel takes it for Windows-1252.
    """
    ordered = sorted(entries, key=lambda one: (one.written.casefold(), one.written))
    if format_ is ListFormat.TEXT:
        return "".join(map(_text_line, ordered)).encode()
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    for one in ordered:
        flags = ["yes" if flag else "no" for flag in (one.match_case, one.enabled)]
        writer.writerow([escape_formula(one.written), escape_formula(one.spoken), *flags])
    return out.getvalue().encode("utf-8-sig")


def _read(text: str, suffix: str, remarks: ImportNotices) -> Iterable[Pronunciation]:
    if suffix == ".json" or (suffix not in (".csv", ".tsv", ".txt") and text.lstrip()[0] in "[{"):
        return _read_json(text)
    if suffix in (".csv", ".tsv"):
        return _read_table(text, "\t" if suffix == ".tsv" else likely_delimiter(text), remarks)
    return _read_text(text)


def _read_json(text: str) -> Iterable[Pronunciation]:
    try:
        found = read_json(text.encode())
        if isinstance(found, dict) and isinstance(found.get("pronunciations"), list):
            found = found["pronunciations"]
        elif isinstance(found, dict):
            found = [{"written": written, "spoken": one} for written, one in found.items()]
        # One by one: pydantic makes a kilobyte of each value that doesn't fit.
        return list(map(_ENTRY.validate_python, found))
    except (ValueError, TypeError) as error:
        raise BadInput(
            "The JSON can't be used. Write a list such as "
            '[{"written": "Nguyen", "spoken": "win"}], or {"Nguyen": "win"}.'
        ) from error


def _read_table(text: str, delimiter: str, remarks: ImportNotices) -> Iterator[Pronunciation]:
    rows = read_rows(text, delimiter, remarks)
    columns: Sequence[str | None] = _COLUMNS
    for idx, row in enumerate(rows):
        headings = [_COLUMN_OF.get(_NOT_IN_WORDS.sub("", one.casefold())) for one in row.cells]
        if idx == 0 and {"written", "spoken"} <= set(headings):
            columns = headings
        else:
            yield _placed(_of_row(row, columns), row.line_number)


def _of_row(row: Row, columns: Sequence[str | None]) -> Pronunciation:
    cells: dict[str, str] = {}
    for column, cell in zip(columns, row.cells, strict=False):
        if column is not None:
            cells.setdefault(column, cell)
    return Pronunciation(
        unescape_formula(cells.get("written", "").strip()),
        unescape_formula(cells.get("spoken", "").strip()),
        _flag(cells.get("match_case", ""), row.line_number, default=False),
        _flag(cells.get("enabled", ""), row.line_number, default=True),
    )


def _flag(cell: str, line_number: int, *, default: bool) -> bool:
    word = cell.strip().casefold()
    if not word:
        return default
    if word not in _YES | _NO:
        raise ScriptError(f"“{cell[:40]}” is neither yes nor no. Write one.", line=line_number)
    return word in _YES


def _read_text(text: str) -> Iterator[Pronunciation]:
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        pair = _PAIR.fullmatch(line)
        if pair is None:
            message = f"“{line[:40]}” has no “=”. Write “written = spoken”."
            raise ScriptError(message, line=number)
        written, spoken = (_ESCAPED.sub(r"\1", side.strip()) for side in pair.groups())
        yield _placed(Pronunciation(written, spoken), number)


def _text_line(entry: Pronunciation) -> str:
    sides = (_TO_ESCAPE.sub(r"\\\g<0>", side) for side in (entry.written, entry.spoken))
    return f"{'' if entry.enabled else '# '}{' = '.join(sides)}\n"


def _placed(entry: Pronunciation, line_number: int) -> Pronunciation:
    try:
        return check_pronunciation(entry)
    except BadInput as error:
        raise ScriptError(str(error), line=line_number) from error
