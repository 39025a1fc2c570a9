"""A table's text cut into rows of cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import regex

from studio.dialog.formats.columns import Role, assign, role_of
from studio.dialog.formats.remarks import Remarks
from studio.dialog.header import parse_header
from studio.errors import ScriptError

_DELIMITERS = ",;\t|"
_EXCEL_HINT = regex.compile(r"sep=(?P<delimiter>[^\"\s]|\t)")
_WOULD_BE_FORMULA = regex.compile(r"'*[=+\-@\t\r]")
_QUOTES = "The quotation marks do not pair up here; all of them are read as text. ({})"


@dataclass(frozen=True, slots=True)
class Row:
    """Cells of one row; `line_number` is where it begins in the file."""

    line_number: int
    cells: tuple[str, ...]


def delimiter_of(text: str) -> str | None:
    """The delimiter under which the first row has headings for a dialog; None where none does."""
    lines = filter(str.strip, text.splitlines())
    first = next(lines, "")
    if hint := _EXCEL_HINT.fullmatch(first):
        delimiter = str(hint["delimiter"])
        return delimiter if _score(next(lines, ""), delimiter) else None
    if first.startswith(("@", "[")) or _is_said(first):  # a name in a screenplay or a script
        return None
    scores = {delimiter: _score(first, delimiter) for delimiter in _DELIMITERS}
    best = max(scores, key=lambda delimiter: scores[delimiter])
    return best if scores[best] else None


def likely_delimiter(text: str) -> str:
    """The delimiter that most of the first lines share, for a table without headings."""
    lines = [line for line in text.splitlines()[:20] if line.strip()]
    return max(_DELIMITERS, key=lambda delimiter: sum(delimiter in line for line in lines))


def read_rows(text: str, delimiter: str, remarks: Remarks) -> Iterator[Row]:
    """Cut a table into rows; empty ones are left out.

    A quotation mark without its partner would swallow the rest of the file: then every line is a
    row, and quotation marks are text.

    Raises:
        ScriptError: A cell is too long.
    """
    try:
        rows = list(_rows(text, delimiter, is_quoted=True))
    except csv.Error as error:
        remarks.add(_QUOTES.format(error), _line_of_fault(text, delimiter))
        rows = _unquoted(text, delimiter)
    return (row for row in rows if any(map(str.strip, row.cells)))


def guarded(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula; `unguarded` gives it back."""
    return f"'{cell}" if _WOULD_BE_FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """Take off the apostrophe that keeps a cell from being a formula."""
    return cell[1:] if cell.startswith("'") and _WOULD_BE_FORMULA.match(cell) else cell


def _is_said(line: str) -> bool:
    """Whether a line is a script's `Name: text`, and not the headings `Name: | Text:`."""
    header = parse_header(line.strip())
    return header is not None and role_of(header.speaker) is None


def _score(line: str, delimiter: str) -> int:
    """How many headings are known; 0 without one for the text."""
    try:
        cells = next(csv.reader([line], delimiter=delimiter))
    except csv.Error:
        return 0
    roles = assign(cells)
    return len(roles) if Role.TEXT in roles and Role.SPEAKER in roles else 0


def _rows(text: str, delimiter: str, *, is_quoted: bool) -> Iterator[Row]:
    source = io.StringIO(text, newline="")
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    reader = csv.reader(source, delimiter=delimiter, strict=True, quoting=quoting)
    line_number = 1
    for cells in reader:
        if not (line_number == 1 and cells and cells[0].startswith("sep=")):
            yield Row(line_number, tuple(cells))
        line_number = reader.line_num + 1


def _unquoted(text: str, delimiter: str) -> list[Row]:
    try:
        return list(_rows(text, delimiter, is_quoted=False))
    except csv.Error as error:
        raise ScriptError(f"The table can't be read: {error}. Divide its long cells.") from error


def _line_of_fault(text: str, delimiter: str) -> int:
    """Where the row begins that can't be read."""
    line_number = 1
    try:
        for row in _rows(text, delimiter, is_quoted=True):
            line_number = row.line_number + 1
    except csv.Error:
        pass
    return line_number
