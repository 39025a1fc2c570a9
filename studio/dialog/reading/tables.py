"""Reads and writes tables: CSV, TSV and what spreadsheets save, with or without headings."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Literal

import regex

from studio.dialog.attributes import (
    Attributes,
    check_language,
    check_param,
    check_seed,
    parse_attributes,
    write_attributes,
)
from studio.dialog.directions import word_set, write_direction
from studio.dialog.model import (
    MAX_LINES,
    Audio,
    Dialog,
    Line,
    ParamValue,
    ParsedScript,
    Silence,
    Speech,
    Unspoken,
    UnspokenKind,
    clean_name,
    code_of,
    paragraph,
    with_place,
)
from studio.dialog.planning import FILE_NAME, LINE_ID, MAX_DURATION, VOICE
from studio.dialog.reading.building import MIN_PAUSE_S, DialogBuilder, ImportNotices
from studio.dialog.reading.headings import (
    MOST_COLUMNS,
    PARAM_PREFIX,
    Role,
    assign,
    is_language,
    is_noted,
    list_languages,
    plain_heading,
    role_of,
    split_unit,
)
from studio.dialog.reading_limits import Budget, Cost
from studio.dialog.script import parse_header
from studio.dialog.tags import cut_pauses
from studio.errors import ScriptError

_ALWAYS = (Role.SPEAKER, Role.TEXT)
"""The first headings of what is exported."""

_DELIMITERS = ",;\t|"
_EXCEL_HINT = regex.compile(r"sep=(?P<delimiter>[^\"\s]|\t)")
_WOULD_BE_FORMULA = regex.compile(r"'*[=+\-@\t\r]")
_QUOTES = "The quotation marks do not pair up here; all of them are read as text. ({})"


@dataclass(frozen=True, slots=True)
class Row:
    """Cells of one row; `line_number` is that of its start in the file."""

    line_number: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a table are read as, for somebody who may correct it.

    Attributes:
        headings: As they stand in the file; of a table without headings, those that are assumed.
        roles: Values of `Role`, `NOTE` or `SETTING` for each column; "" for one that isn't read.
        rows: The first of those below the headings; each cell is cut.
    """

    headings: tuple[str, ...]
    roles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


MOST_SHOWN = 60
"""Columns of a table that somebody may choose what they are read as."""
NOTE, SETTING = "note", "setting"
"""What a column is read as beside the roles: remarks between the lines, a setting of the voice."""


def delimiter_of(text: str) -> str | None:
    """The delimiter by which the first row has a dialog's headings; None if there is none."""
    lines = filter(str.strip, text.splitlines())
    first = next(lines, "")
    second = next(lines, "")
    if hint := _EXCEL_HINT.fullmatch(first):
        delimiter = str(hint["delimiter"])
        return delimiter if _score(second, delimiter, next(lines, "")) else None
    if _is_spoken(first):
        return None
    if _NOTE.match(first) and (not second or _NOTE.match(second) or _is_spoken(second)):
        return None
    scores = {delimiter: _score(first, delimiter, second) for delimiter in _DELIMITERS}
    best = max(scores, key=lambda delimiter: scores[delimiter])
    return best if scores[best] else None


def is_headless(text: str) -> bool:
    """Whether text is a table without headings: a name and a text a row, or a number before them.

    Commas stand in prose as well, so of those at least one cell has to be quoted.
    """
    rows = [line for line in text.splitlines() if line.strip()]
    for delimiter in (";", "\t", "|", ","):
        if not all(delimiter in row for row in rows) or (delimiter == "," and ',"' not in text):
            continue
        try:
            found = csv.reader(rows, delimiter=delimiter, strict=True)
            cells = [Row(0, tuple(row)) for row in found]
        except csv.Error:
            continue
        count, *others = {len(row.cells) for row in cells} or {0}
        is_list = delimiter == "\t" and count == 2 and '"' not in text
        names = [row.cells[count - 2].strip() for row in cells] if count in _IMPLIED else []
        if others or not 1 < len(set(names)) < len(rows) or is_list:
            continue
        are_names = all(name and len(name.split()) <= _MOST_NAME_WORDS for name in names)
        is_table = are_names and (count < _FEWEST_CELLS or _are_numbered(cells))
        if is_table and not all(map(_is_script_row, rows)):
            return True
    return False


def likely_delimiter(text: str) -> str:
    """The delimiter that occurs in most of the first lines, for a table without headings."""
    lines = [line for line in text.splitlines()[:20] if line.strip()]
    return max(_DELIMITERS, key=lambda delimiter: sum(delimiter in line for line in lines))


def read_rows(text: str, delimiter: str, remarks: ImportNotices) -> Iterator[Row]:
    """Split a table into rows, without empty ones.

    An unpaired quotation mark would swallow the rest of the file; in that case every line is a row,
    and quotation marks are text.
    """
    rows: list[Row] = []
    try:
        rows.extend(_iter_rows(text, delimiter, is_quoted=True))
    except csv.Error as error:
        # The unreadable row starts below the last one that was read.
        remarks.add(_QUOTES.format(error), rows[-1].line_number + 1 if rows else 1)
        rows = _read_unquoted(text, delimiter)
    return (row for row in rows if any(map(str.strip, row.cells)))


def escape_formula(cell: str) -> str:
    """Escape a cell that a spreadsheet would take for a formula; see `unescape_formula`."""
    return f"'{cell}" if _WOULD_BE_FORMULA.match(cell) else cell


def unescape_formula(cell: str) -> str:
    """Remove the apostrophe that keeps a cell from being a formula."""
    return cell[1:] if cell.startswith("'") and _WOULD_BE_FORMULA.match(cell) else cell


_NOTE = regex.compile(r"#[#>]?\s+[^\s,;|]")
"""As a script has it; `# | Speaker` heads a column of numbers."""


def _is_spoken(line: str) -> bool:
    """Whether a line is a script's or a screenplay's, and not the headings `Name: | Text:`."""
    if line.startswith(("@", "[")):
        return True
    header = parse_header(line.strip())
    return header is not None and role_of(header.speaker) is None


def _is_script_row(row: str) -> bool:
    return row.startswith(("#", "\\")) or _is_spoken(row)


def _score(line: str, delimiter: str, below: str) -> int:
    """The number of known headings; 0 for a row that heads no dialog.

    One is headed as the speaker, and one as the text, or the row below has as many cells.
    """
    if line.count(delimiter) > MOST_COLUMNS:
        return 0
    try:
        cells = next(csv.reader([line], delimiter=delimiter))
        others = next(csv.reader([below], delimiter=delimiter), [])
    except csv.Error:
        return 0
    roles = assign(cells)
    is_table = len(cells) == len(others) >= _FEWEST_CELLS
    is_headed = Role.SPEAKER in roles and (Role.TEXT in roles or is_table)
    return len(roles) if is_headed else 0


def _iter_rows(text: str, delimiter: str, *, is_quoted: bool) -> Iterator[Row]:
    source = io.StringIO(text, newline="")
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    reader = csv.reader(source, delimiter=delimiter, strict=True, quoting=quoting)
    line_number, budget = 1, Budget()
    for cells in reader:
        budget.spend(Cost.CELLS, len(cells))
        if not (line_number == 1 and cells and cells[0].startswith("sep=")):
            yield Row(line_number, tuple(cells))
        line_number = reader.line_num + 1


def _read_unquoted(text: str, delimiter: str) -> list[Row]:
    try:
        return list(_iter_rows(text, delimiter, is_quoted=False))
    except csv.Error as error:
        raise ScriptError(f"The table can't be read: {error}. Divide its long cells.") from error


_FEWEST_CELLS = 3
_MOST_NAME_WORDS = 4
_VALUE = regex.compile(
    r"[+-]?\d[\d.]*(?:e[+-]?\d+)?|[a-z_][a-z0-9_.-]*|\"(?:[^\"\\]|\\.)*\"", regex.IGNORECASE
)
_IS_WORD = regex.compile(r"(?!(?:true|false)$)\p{L}", regex.IGNORECASE)
_NUMBER = regex.compile(r"#?\d[\d.,:]*")
_HOW = "Name the columns in the first row, such as speaker,text"
_GUESSED = "No column is headed as the text; “{}” is read as that. Head another one “text”."
_GUESSED_NAMES = (
    "No column is headed as the speaker; “{}” is read as that. Head another one “speaker”."
)
_FEWEST_WORDS = 2
_NO_SETTINGS = word_set(
    "scene shot status state priority level sfx music sound location context confidence score"
    " version page words wordcount chars maxchars characters count approved recorded done ok date"
    " session episode chapter section branch zustand bearbeiter datum szene seite état statut scène"
    " estado escena página fecha data cena статус сцена дата 状态 狀態 场景 日期 状態 シーン"
)
"""Headings of what a voice can't be set to."""
OWN = {Role.ID: LINE_ID, Role.FILE: FILE_NAME, Role.MAX_DURATION: MAX_DURATION}
"""The settings that hold what a line has in another program."""

_SHOWN_ROWS, _SHOWN_CHARS = 10, 100
_IGNORED_HEADING, _NOTES_HEADING = "row", "notes"
_UNTIMED = "The times of the lines can't be read here; the lines follow each other."
_LEFT_COLUMN = "The column “{}” is left out."
_WHOLE = regex.compile(r"0|[1-9]\d{0,17}", regex.ASCII)
_KEPT_COLUMN = "The column “{}” isn't spoken; it stands between the lines."
_WORDS = regex.compile(r"\p{L}")
_TRANSLATED = "The table has the text in several languages; “{}” is read, and not {}."
_IMPLIED = {2: _ALWAYS, 3: (Role.ID, *_ALWAYS)}
_HEADLESS = {
    2: "The table has no headings: the first column is read as the speaker, the second as the "
    f"text. {_HOW}, if that is wrong.",
    3: "The table has no headings: the second column is read as the speaker, the third as the "
    f"text. {_HOW}, if that is wrong.",
}
_SENTENCE_ENDS = tuple('.!?…。！？"”»」')
_ROW_ID = regex.compile(r"#?[\p{L}_-]*\d[\w.:-]*")
_CLOCK = regex.compile(
    r"(?:(?:(?P<hours>\d{1,3}):)?(?P<minutes>\d{1,2}):)?(?P<seconds>\d{1,6}(?:[.,]\d+)?)\s*s?"
)
_QUOTED = 'Anna,"Yes, I know."'
_NOTHING = f"The table holds no lines. {_HOW}, and write one line of the dialog in each row."


def read_table(
    text: str, remarks: ImportNotices, *, fit: bool, chosen: Sequence[str] = ()
) -> tuple[ParsedScript, Columns | None]:
    """Read a table with one line of the dialog in each row.

    Args:
        text: The whole file; its delimiter is detected.
        remarks: Gets notices of what is left out.
        fit: Whether lines with times say when they begin, instead of the pauses between them.
        chosen: What each column is read as, instead of what its heading says; see `Columns.roles`.

    Returns:
        The dialog, and how the columns were read: None where nothing but the speaker and the text
        is headed, and for more columns than somebody would look at.

    Raises:
        ScriptError: There is no column of texts, or a cell is invalid.
    """
    known = delimiter_of(text)
    delimiter = known or likely_delimiter(text)
    rows = list(read_rows(text, delimiter, remarks))
    if not rows:
        raise ScriptError(_NOTHING)
    written = _read_headings(rows, remarks, are_known=known is not None)
    if len(chosen) != len(written):
        chosen = ()
    headings = list(map(_choose, written, chosen)) if chosen else written
    # A countdown that was exported from here has a text of numbers.
    is_ours = known is not None and tuple(written[:2]) == _ALWAYS
    numeric = () if is_ours or chosen else _find_numeric(rows)
    columns = assign(headings, numeric)
    if Role.TEXT not in columns:
        columns |= _guess_text(headings, rows, remarks)
    if Role.SPEAKER not in columns and not chosen:
        columns |= _guess_speaker(headings, rows, columns.get(Role.TEXT), remarks)
    if Role.TEXT not in columns:
        raise ScriptError(f"No column is headed as the text. {_HOW}.", line=1)
    table = _Table(headings, columns, delimiter, remarks, fit)
    table.add_all(rows)
    found = table.builder.finish(nothing_found=_NOTHING)
    read = None
    if (known is None or tuple(written) != _ALWAYS) and len(written) <= MOST_SHOWN:
        cells = (row.cells[: len(written)] for row in rows[:_SHOWN_ROWS])
        shown = tuple(tuple(cell[:_SHOWN_CHARS] for cell in row) for row in cells)
        read = Columns(tuple(written), table.list_roles(), shown)
    return (found if is_ours else leave_counts(found)), read


def _choose(heading: str, role: str) -> str:
    """The heading that a column is read as; one that has the chosen role stays, for its unit."""
    if role == SETTING or role_of(heading) == role or (role == Role.TEXT and is_language(heading)):
        return heading
    return {"": _IGNORED_HEADING, NOTE: _NOTES_HEADING}.get(role, role)


def leave_counts(read: ParsedScript) -> ParsedScript:
    """Leave ids out that only number the lines: from 0 or 1 up, or anew in each scene."""
    lines, last = list(read.dialog), 0
    for idx, line in enumerate(lines):
        if isinstance(line, Speech) and LINE_ID in line.params:
            params = dict(line.params)
            number = str(params.pop(LINE_ID)).strip("#.").lstrip("0") or "0"
            if number not in ("0", "1", str(last), str(last + 1)):
                return read
            last, lines[idx] = int(number), replace(line, params=params)
    return replace(read, dialog=Dialog(tuple(lines)))


def read_own(role: Role, heading: str, written: str) -> dict[str, ParamValue]:
    """The setting of what a line has in another program; none of a blank value."""
    name, written = OWN[role], written.strip()
    if role is Role.MAX_DURATION:
        value: ParamValue = _read_seconds(role, heading, written or "0")
    else:
        value = int(written) if _WHOLE.fullmatch(written) else check_param(name, written)
    return {name: value} if value or (written and role is not Role.MAX_DURATION) else {}


def read_clock(written: str) -> float | None:
    """The seconds of `1:02:03.5`, `02:03` or `3.5`; None for anything else."""
    if not (found := _CLOCK.fullmatch(written.strip())):
        return None
    minutes = 60 * int(found["hours"] or 0) + int(found["minutes"] or 0)
    return 60 * minutes + float(found["seconds"].replace(",", "."))


def _read_seconds(role: Role, heading: str, written: str) -> float:
    unit = "ms" if split_unit(heading)[1][:1] == "m" and written[-1:].isdigit() else ""
    if role is Role.MAX_DURATION and ":" in written and (clock_s := read_clock(written)):
        return clock_s
    with suppress(ScriptError) if role is Role.MAX_DURATION else nullcontext():
        match cut_pauses(f"[pause:{written.replace(',', '.')}{unit}]"):
            case [float(duration_s)]:
                return duration_s
    raise ScriptError(f"The {role} “{written[:40]}” can't be read. Write seconds: 1.5")


def _find_numeric(rows: list[Row]) -> frozenset[int]:
    """Columns that hold nothing but numbers, such as those of the lines."""
    cells: dict[int, list[str]] = {}
    for row in rows:
        for column, cell in enumerate(row.cells):
            if cell.strip():
                cells.setdefault(column, []).append(cell.strip())
    return frozenset(
        column
        for column, found in cells.items()
        if len(found) > 1 and all(map(_NUMBER.fullmatch, found))
    )


def _guess_text(headings: list[str], rows: list[Row], remarks: ImportNotices) -> dict[Role, int]:
    """The unknown column with the longest words, which is the last of several languages."""
    words = {
        column: sum(len(row.cells[column].split()) for row in rows if column < len(row.cells))
        for column, heading in enumerate(headings)
        if role_of(heading) is None
    }
    most = max(words.values(), default=0)
    if most < _FEWEST_WORDS * len(rows):
        return {}
    wordy = [column for column, count in words.items() if 4 * count >= 3 * most]
    remarks.add(_GUESSED.format(headings[wordy[-1]][:40]), 1)
    return {Role.TEXT: wordy[-1]}


def _guess_speaker(
    headings: list[str], rows: list[Row], text: int | None, remarks: ImportNotices
) -> dict[Role, int]:
    """The first unknown column whose cells are names that return; better in capital letters."""
    found = {}
    for column, heading in enumerate(headings):
        if column != text and role_of(heading) is None and not is_noted(heading):
            names = ["".join(row.cells[column : column + 1]).strip() for row in rows]
            if len(set(names)) < len(names) and all(map(_is_name, names)):
                found[column] = any(name[0].islower() for name in names)
    if not found:
        return {}
    column = min(found, key=lambda column: (found[column], column))
    remarks.add(_GUESSED_NAMES.format(headings[column][:40]), 1)
    return {Role.SPEAKER: column}


def _is_name(cell: str) -> bool:
    return 0 < len(cell.split()) <= _MOST_NAME_WORDS and _WORDS.search(cell) is not None


def _read_headings(rows: list[Row], remarks: ImportNotices, *, are_known: bool) -> list[str]:
    """Take the headings out of the rows; those it would have, if the first row is a line itself."""
    first = rows[0]
    roles = assign(list(first.cells))
    if Role.TEXT in roles or (Role.SPEAKER in roles and len(first.cells) > _FEWEST_CELLS - 1):
        del rows[0]
        return [cell.strip() for cell in first.cells]
    implied = None if are_known or roles else _IMPLIED.get(len(first.cells))
    if implied is not None and _is_headed(rows):
        del rows[0]
        return [cell.strip() for cell in first.cells]
    if implied is None or (len(implied) > 2 and not _are_numbered(rows)):
        if not all(map(_is_name, first.cells)) or len(rows) == 1:
            raise ScriptError(f"No column is headed as the text. {_HOW}.", line=first.line_number)
        del rows[0]
        return [cell.strip() for cell in first.cells]
    remarks.add(_HEADLESS[len(implied)], first.line_number)
    return list(map(str, implied))


def _is_headed(rows: list[Row]) -> bool:
    """Whether the first row is none of the dialog: a name that nobody has, and no sentence."""
    (name, text), *others = [tuple(map(str.strip, row.cells[-2:])) for row in rows]
    names = [other[0] for other in others if len(other) > 1]
    are_sentences = all(other[-1].endswith(_SENTENCE_ENDS) for other in others)
    is_new = name not in names and len(set(names)) < len(names)
    return is_new and are_sentences and _is_name(text) and not text.endswith(_SENTENCE_ENDS)


def _are_numbered(rows: list[Row]) -> bool:
    """Whether each row begins with a number or an id of its own, and names return behind them."""
    ids = [row.cells[0].strip() for row in rows]
    are_ids = all(map(_ROW_ID.fullmatch, ids)) and len(set(ids)) == len(ids)
    names = {row.cells[1].strip() for row in rows if len(row.cells) > 1}
    return are_ids and all(name and len(name.split()) <= _MOST_NAME_WORDS for name in names)


class _Table:
    """Turns rows into lines, by the roles of their columns."""

    def __init__(
        self,
        headings: list[str],
        columns: dict[Role, int],
        delimiter: str,
        remarks: ImportNotices,
        fit: bool,
    ) -> None:
        self.builder = DialogBuilder(remarks)
        self._headings = headings
        self._delimiter = delimiter
        self._columns = columns
        self._fit = fit
        self._times_s: dict[int, tuple[float, float]] = {}
        self._end_s: float | None = None
        self._params: dict[int, str] = {}
        self._noted: dict[int, str] = {}  # what a note of a column begins with
        self._remarks = remarks
        languages = list_languages(headings)
        self._language = languages.get(columns[Role.TEXT])
        others = [headings[column] for column in languages if column != columns[Role.TEXT]]
        self._translations = frozenset(languages) - {columns[Role.TEXT]}
        if self._language and others:
            chosen = headings[columns[Role.TEXT]]
            remarks.add(_TRANSLATED.format(chosen, ", ".join(others)), 1)

    def add_all(self, rows: Iterable[Row]) -> None:
        kept = [self._fit_row(row) for row in rows]
        self._find_recordings(kept)
        self._times_s = self._read_times(kept)
        self._params = params = self._find_param_columns(kept)
        for row in kept:
            with with_place(row.line_number):
                self._add(row, params)

    def _read_times(self, rows: list[Row]) -> dict[int, tuple[float, float]]:
        """From when to when each row lasts, if all say so, one after another."""
        times: dict[int, tuple[float, float]] = {}
        last = 0.0
        for row in rows if {Role.START, Role.END} <= self._columns.keys() else ():
            start_s = read_clock(self._get_cell(row, Role.START))
            end_s = read_clock(self._get_cell(row, Role.END))
            if start_s is None or end_s is None or not last <= start_s <= end_s:
                self._remarks.add(_UNTIMED, row.line_number)
                return {}
            times[row.line_number], last = (start_s, end_s), start_s
        return times

    def _find_recordings(self, rows: list[Row]) -> None:
        """A file beside a text is the name of a recording to be made, and isn't played."""
        is_named = any(
            self._get_cell(row, Role.FILE).strip() and self._get_cell(row, Role.TEXT).strip()
            for row in rows
        )
        if Role.FILE in self._columns and not is_named:
            self._columns.setdefault(Role.AUDIO, self._columns.pop(Role.FILE))

    def _find_param_columns(self, rows: list[Row]) -> dict[int, str]:
        """Columns of the backend's parameters: unknown headings over plain values."""
        values: dict[int, list[str]] = {}
        for row in rows:
            for column, cell in enumerate(row.cells[: len(self._headings)]):
                if cell.strip():
                    values.setdefault(column, []).append(cell.strip())
        found = {}
        for column, cells in values.items():
            heading = self._headings[column]
            # Beside the column of the speakers, one of voices says what theirs are called.
            is_voice = heading.casefold() == VOICE and self._columns.get(Role.SPEAKER) != column
            key = VOICE if is_voice else heading.removeprefix(PARAM_PREFIX).strip()
            is_known = column in {*self._columns.values(), *self._translations}
            if is_known or (role_of(heading) is not None and not is_voice):
                continue
            is_setting = plain_heading(heading) not in _NO_SETTINGS and not is_noted(heading)
            is_setting = is_setting and _is_key(key) and all(map(_VALUE.fullmatch, cells))
            # Engines' own settings are in small letters; what a sheet says in words is a remark.
            is_setting &= heading.islower() or not any(map(_IS_WORD.match, cells))
            if is_voice or is_setting:
                found[column] = key
            elif is_noted(heading):
                self._noted[column] = ""
            elif _WORDS.search("".join(cells)) and (2 + len(self._noted)) * len(rows) <= MAX_LINES:
                self._noted[column] = f"{heading}: "
                self._remarks.add(_KEPT_COLUMN.format(heading[:40]), 1)
            else:
                self._remarks.add(_LEFT_COLUMN.format(heading[:40]), 1)
        return found

    def list_roles(self) -> tuple[str, ...]:
        """What each column was read as; see `Columns.roles`."""
        roles = dict.fromkeys(self._noted, NOTE) | dict.fromkeys(self._params, SETTING)
        roles |= {column: str(role) for role, column in self._columns.items()}
        return tuple(roles.get(column, "") for column in range(len(self._headings)))

    def _add(self, row: Row, params: dict[int, str]) -> None:
        number = row.line_number
        start_s, end_s = self._times_s.get(number, (0.0, 0.0))
        if self._fit and self._times_s:
            self.builder.begin_at(start_s)
        elif self._end_s is not None and start_s - self._end_s >= MIN_PAUSE_S:
            self.builder.silence(start_s - self._end_s, number)
        self._end_s = end_s if self._times_s else None
        self._add_pause(row, Role.PAUSE_BEFORE)
        if path := unescape_formula(self._get_cell(row, Role.AUDIO)):
            self.builder.audio(path, number)
        speaker = unescape_formula(self._get_cell(row, Role.SPEAKER).strip())
        text = unescape_formula(self._get_cell(row, Role.TEXT).strip())
        if kind := self._get_cell(row, Role.UNSPOKEN).strip().lower():
            known = kind if kind in set(UnspokenKind) else UnspokenKind.NOTE
            self.builder.unspoken(text, UnspokenKind(known), number)
        elif speaker or text:
            attributes = self._read_attributes(row, params)
            how = unescape_formula(self._get_cell(row, Role.DIRECTION).strip())
            if how and text:
                text = f"{write_direction(how, is_first=True)} {text}".strip()
            self.builder.speech(speaker or None, text, number, attributes)
        for column, heading in self._noted.items():
            if note := "".join(row.cells[column : column + 1]).strip():
                note = f"{heading}{unescape_formula(note)}"
                self.builder.unspoken(note, UnspokenKind.NOTE, number)
        self._add_pause(row, Role.PAUSE)

    def _fit_row(self, row: Row) -> Row:
        """Rejoin a row's text that was split at delimiters in it."""
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

    def _get_cell(self, row: Row, role: Role) -> str:
        column = self._columns.get(role, len(row.cells))
        return row.cells[column] if column < len(row.cells) else ""

    def _add_pause(self, row: Row, role: Role) -> None:
        if written := self._get_cell(row, role).strip():
            heading = self._headings[self._columns[role]]
            self.builder.silence(_read_seconds(role, heading, written), row.line_number)

    def _read_attributes(self, row: Row, params: dict[int, str]) -> Attributes:
        cells = {
            params[column]: cell
            for column, cell in enumerate(row.cells)
            if column in params and cell.strip()
        }
        pairs = [f"{key}:{cell}" for key, cell in cells.items()]
        given: dict[str, ParamValue] = dict(parse_attributes(pairs).params)
        for role in filter(self._columns.__contains__, OWN):
            with self._remarks.leaving_out(row.line_number):
                written = unescape_formula(self._get_cell(row, role).strip())
                given |= read_own(role, self._headings[self._columns[role]], written)
        language, seed = self._language, None
        if written := self._get_cell(row, Role.LANGUAGE).strip():
            with self._remarks.leaving_out(row.line_number):
                language = check_language(code_of(written))
        if written := self._get_cell(row, Role.SEED).strip().removesuffix(".0"):
            with self._remarks.leaving_out(row.line_number):
                seed = check_seed(int(written) if written.isdecimal() else written)
        return Attributes(language, seed, given)


def _is_key(key: str) -> bool:
    try:
        return bool(parse_attributes([f"{key}:1"]).params)
    except ScriptError:
        return False


_WHERE_USED = (Role.LANGUAGE, Role.SEED, Role.PAUSE, Role.AUDIO, Role.UNSPOKEN)


def write_table(dialog: Dialog, delimiter: str) -> str:
    """Write a table with headings, without columns that no line needs.

    Cells that a spreadsheet would take for formulas get an apostrophe in front.

    Raises:
        ScriptError: A text is too long.
    """
    rows = [_build_row(line) for line in dialog]
    used = dict.fromkeys(heading for row in rows for heading in row)
    roles = [*_ALWAYS, *(role for role in _WHERE_USED if role in used)]
    headings = [*roles, *(heading for heading in used if heading not in roles)]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, headings, restval="", delimiter=delimiter, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _build_row(line: Line) -> dict[str, str]:
    match line:
        case Silence():
            return {Role.PAUSE: repr(line.duration_s)}
        case Audio():
            return {Role.AUDIO: escape_formula(line.path)}
        case Unspoken():
            return {Role.TEXT: escape_formula(line.text), Role.UNSPOKEN: line.kind.value}
        case Speech():
            return _build_speech_row(line)


def _build_speech_row(line: Speech) -> dict[str, str]:
    row: dict[str, str] = {
        Role.SPEAKER: escape_formula(clean_name(line.speaker)),
        Role.TEXT: escape_formula(paragraph(line.text)),
    }
    if line.language is not None:
        row[Role.LANGUAGE] = line.language
    if line.seed is not None:
        row[Role.SEED] = str(line.seed)
    for written in write_attributes(Attributes(params=line.params)):
        key, _, value = written.partition(":")
        plain = str(line.params[key])
        if row[Role.TEXT] and plain.isprintable() and _is_own({key: line.params[key]}, plain):
            row[key] = escape_formula(plain)
        else:
            row[key if role_of(key) is None else f"{PARAM_PREFIX}{key}"] = value
    return row


def _is_own(param: dict[str, ParamValue], cell: str) -> bool:
    """Whether a plain cell is read as a parameter; others are written as settings of a voice."""
    with suppress(ScriptError):
        return any(read_own(role, name, cell) == param for role, name in OWN.items())
    return False
