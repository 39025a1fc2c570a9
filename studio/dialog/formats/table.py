"""Tables to a dialog: CSV, TSV and what spreadsheets save, with or without headings."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from studio.dialog.attributes import Attributes, checked_language, checked_seed, parse_attributes
from studio.dialog.formats.building import DialogBuilder
from studio.dialog.formats.cells import Row, delimiter_of, likely_delimiter, read_rows, unguarded
from studio.dialog.formats.columns import (
    PARAM_PREFIX,
    Role,
    assign,
    is_in_milliseconds,
    role_of,
)
from studio.dialog.formats.language_names import code_of
from studio.dialog.formats.remarks import Remarks
from studio.dialog.model import ParamValue, ParsedScript
from studio.dialog.place import placed
from studio.dialog.tags import cut_pauses
from studio.errors import ScriptError

_VALUE = regex.compile(
    r"[+-]?\d[\d.]*(?:e[+-]?\d+)?|[a-z_][a-z0-9_.-]*|\"(?:[^\"\\]|\\.)*\"", regex.IGNORECASE
)
_HOW = "Name the columns in the first row, such as speaker,text"
_QUOTED = 'Anna,"Yes, I know."'
_NOTHING = f"The table holds no lines. {_HOW}, and write one line of the dialog in each row."


def read_table(text: str, remarks: Remarks) -> ParsedScript:
    """Read a table with one line of the dialog in each row.

    Args:
        text: The whole file; its delimiter is found out.
        remarks: Takes what is left out.

    Raises:
        ScriptError: No column holds the text, or a cell can't be kept.
    """
    known = delimiter_of(text)
    delimiter = known or likely_delimiter(text)
    rows = read_rows(text, delimiter, remarks)
    first = next(rows, None)
    if first is None:
        raise ScriptError(_NOTHING)
    headings = _headings(first, remarks, are_known=known is not None)
    table = _Table(headings or [Role.SPEAKER, Role.TEXT], delimiter, remarks)
    table.add_all(rows if headings else (first, *rows))
    return table.builder.finish(nothing_found=_NOTHING)


def _headings(first: Row, remarks: Remarks, *, are_known: bool) -> list[str] | None:
    """The first row's cells; None when it holds no headings and is a line itself."""
    roles = assign(list(first.cells))
    if Role.TEXT in roles:
        return [cell.strip() for cell in first.cells]
    if len(first.cells) != 2 or are_known or roles:
        raise ScriptError(f"No column is headed as the text. {_HOW}.", line=first.line_number)
    remarks.add(
        "The table has no headings: the first column is read as the speaker, the second as the "
        f"text. {_HOW}, if that is wrong.",
        first.line_number,
    )
    return None


class _Table:
    """Takes rows in order; knows what their columns hold."""

    def __init__(self, headings: list[str], delimiter: str, remarks: Remarks) -> None:
        self.builder = DialogBuilder(remarks)
        self._headings = headings
        self._delimiter = delimiter
        self._columns = assign(headings)
        self._remarks = remarks

    def add_all(self, rows: Iterable[Row]) -> None:
        kept = [self._fitted(row) for row in rows]
        params = self._param_columns(kept)
        for row in kept:
            with placed(row.line_number):
                self._add(row, params)

    def _param_columns(self, rows: list[Row]) -> dict[int, str]:
        """Columns of the backend's parameters: unknown headings over plain values."""
        values: dict[int, list[str]] = {}
        for row in rows:
            for column, cell in enumerate(row.cells[: len(self._headings)]):
                if cell.strip():
                    values.setdefault(column, []).append(cell.strip())
        found = {}
        for column, cells in values.items():
            heading = self._headings[column]
            key = heading.removeprefix(PARAM_PREFIX).strip()
            if role_of(heading) is not None:
                continue
            if _is_key(key) and all(map(_VALUE.fullmatch, cells)):
                found[column] = key
            else:
                self._remarks.add(f"The column “{heading[:40]}” is left out.", 1)
        return found

    def _add(self, row: Row, params: dict[int, str]) -> None:
        number = row.line_number
        self._pause(row, Role.PAUSE_BEFORE)
        if path := unguarded(self._cell(row, Role.AUDIO)):
            self.builder.audio(path, number)
        speaker = unguarded(self._cell(row, Role.SPEAKER).strip())
        text = unguarded(self._cell(row, Role.TEXT).strip())
        if speaker or text:
            attributes = self._attributes(row, params)
            self.builder.speech(speaker or None, text, number, attributes)
        self._pause(row, Role.PAUSE)

    def _fitted(self, row: Row) -> Row:
        """A row whose text was cut at delimiters in it, with its text in one piece again."""
        excess = len(row.cells) - len(self._headings)
        if excess <= 0 or not any(map(str.strip, row.cells[-excess:])):
            return row
        start = self._columns[Role.TEXT]
        text = self._delimiter.join(row.cells[start : start + excess + 1])
        self._remarks.add(
            "This row has more cells than there are headings; the text is taken to hold the "
            f"delimiter. Put quotation marks around it if that is wrong: {_QUOTED}",
            row.line_number,
        )
        cells = (*row.cells[:start], text, *row.cells[start + excess + 1 :])
        return Row(row.line_number, cells)

    def _cell(self, row: Row, role: Role) -> str:
        column = self._columns.get(role, len(row.cells))
        return row.cells[column] if column < len(row.cells) else ""

    def _pause(self, row: Row, role: Role) -> None:
        if not (written := self._cell(row, role).strip().replace(",", ".")):
            return
        unit = "ms" if is_in_milliseconds(self._headings[self._columns[role]]) else ""
        tag = f"[pause:{written}{unit if written[-1:].isdigit() else ''}]"
        for duration_s in cut_pauses(tag):
            if not isinstance(duration_s, float):
                raise ScriptError(f"The pause “{written[:40]}” can't be read. Write seconds: 1.5")
            self.builder.silence(duration_s, row.line_number)

    def _attributes(self, row: Row, params: dict[int, str]) -> Attributes:
        given: dict[str, ParamValue] = {}
        for column, cell in enumerate(row.cells):
            if column in params and cell.strip():
                given |= parse_attributes([f"{params[column]}:{cell}"]).params
        return Attributes(self._language(row), self._seed(row), given)

    def _language(self, row: Row) -> str | None:
        written = self._cell(row, Role.LANGUAGE).strip()
        try:
            return checked_language(code_of(written)) if written else None
        except ScriptError as error:
            self._remarks.add(f"{error} It is left out.", row.line_number)
            return None

    def _seed(self, row: Row) -> int | None:
        written = self._cell(row, Role.SEED).strip().removesuffix(".0")
        if not written:
            return None
        try:
            return checked_seed(int(written) if written.isdecimal() else written)
        except ScriptError as error:
            self._remarks.add(f"{error} It is left out.", row.line_number)
            return None


def _is_key(key: str) -> bool:
    try:
        return bool(parse_attributes([f"{key}:1"]).params)
    except ScriptError:
        return False
