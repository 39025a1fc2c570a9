"""Detects the format of a dialog's file, reads and writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from pathlib import PurePath

import regex

from studio.dialog.documents.reading import find_document_kind, read_document
from studio.dialog.formats.caption_writer import PausesByLine, write_srt, write_vtt
from studio.dialog.gaps import GAP, START
from studio.dialog.items import write_items, write_json_lines
from studio.dialog.markup import strip_markup
from studio.dialog.model import Audio, Dialog, Line, Notice, Speech, Unspoken
from studio.dialog.reading.building import ImportNotices, find_together
from studio.dialog.reading.encoding import decode_text
from studio.dialog.reading.form import find_claim, list_forms
from studio.dialog.reading.fountain import read_own_fountain, write_fountain
from studio.dialog.reading.lexer import Source
from studio.dialog.reading.row_kinds import may_be_title, plain_title
from studio.dialog.reading.row_marks import SIGNS, has_marks
from studio.dialog.reading.tables import Columns, write_table
from studio.dialog.reading_limits import limited_reading
from studio.dialog.script import read_own_script, write_script
from studio.errors import ScriptError


class Format(StrEnum):
    """A file format; the value is the suffix of files written in it."""

    SCRIPT = "txt"
    FOUNTAIN = "fountain"
    SRT = "srt"
    VTT = "vtt"
    CSV = "csv"
    TSV = "tsv"
    JSON = "json"
    JSON_LINES = "jsonl"

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = {
    Format.SCRIPT: "a script",
    Format.FOUNTAIN: "a Fountain screenplay",
    Format.SRT: "SRT subtitles",
    Format.VTT: "WebVTT subtitles",
    Format.CSV: "a CSV table",
    Format.TSV: "a TSV table",
    Format.JSON: "JSON items",
    Format.JSON_LINES: "JSON lines",
}
_SUFFIXES = {
    **{f".{format_}": format_ for format_ in Format},
    ".text": Format.SCRIPT,
    ".md": Format.SCRIPT,
    ".spmd": Format.FOUNTAIN,
    ".webvtt": Format.VTT,
    ".tab": Format.TSV,
    ".ndjson": Format.JSON_LINES,
}


def format_of_suffix(file_name: str) -> Format | None:
    """The format of a file name's suffix; None for an unknown one."""
    return _SUFFIXES.get(PurePath(file_name).suffix.lower())


_ALIKE = (
    {Format.CSV, Format.TSV},  # a .csv with tabs or semicolons is common
    {Format.JSON, Format.JSON_LINES},
)

MAX_TITLE_CHARS = 100
_SURROGATES = regex.compile(r"\p{Cs}")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import.

    `narrator` speaks action, headings and stage directions, which are left out with None, and all
    of a story; with None it has a voice for each who says quotations.
    `fit` keeps the times of subtitles: each line says when it begins, and there are no pauses.
    `columns` says what each column of a table is read as, in the values of `Columns.roles`.
    """

    narrator: str | None = None
    fit: bool = False
    columns: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported dialog and how it was read.

    Attributes:
        dialog: Its lines.
        notices: What was changed or left out.
        format: That of the file.
        title: What the text calls itself; None if it doesn't say.
        unspoken: How many headings, actions and directions are left out that a narrator could read.
        chat: Whether it was a chat or a list, which its notice says.
        quoted: How many quotations of a story characters say, which a narrator could read.
        timed: Whether it was subtitles, whose times can be kept.
        columns: How the columns of a table were read; None for other text.
    """

    dialog: Dialog
    notices: tuple[Notice, ...]
    format: Format
    title: str | None = None
    unspoken: int = 0
    chat: bool = False
    quoted: int = 0
    timed: bool = False
    columns: Columns | None = None


DEFAULT_IMPORT = ImportOptions()


@limited_reading()
def import_dialog(data: bytes, file_name: str, options: ImportOptions = DEFAULT_IMPORT) -> Imported:
    """Read a dialog of any format and any common encoding: the one reader for files and text.

    The content decides on the format if it is unambiguous, else the name's suffix.

    Args:
        data: The whole file: at most `MAX_DOCUMENT_BYTES`, of text `MAX_SCRIPT_BYTES`.
        file_name: For its suffix and for messages.
        options: Options of the import.

    Raises:
        ScriptError: It is neither text nor a document that can be read, is too large or no dialog,
            or a line is invalid; the message names the line and the remedy.
    """
    remarks = ImportNotices()
    if kind := find_document_kind(data):
        data, file_name, left_out = read_document(data, kind, file_name)
        for message in left_out:
            remarks.add(message, 1)
    text = decode_text(data, file_name, remarks)
    promised = format_of_suffix(file_name)
    own = _read_own(text, promised, options, remarks)
    if own is not None:
        together = tuple(find_together(own.dialog))
        return replace(own, notices=remarks.notices() + own.notices + together)
    source = Source(
        text, promised, narrator=options.narrator, fit=options.fit, columns=options.columns
    )
    claim = find_claim(source, list_forms(), remarks)
    read = claim.read(remarks)
    found = Format(read.format)
    is_noted = read.form is not None and read.form.is_file
    if is_noted and promised not in (None, found) and {promised, found} not in _ALIKE:
        remarks.add(f"“{file_name}” holds {found.label}, and is read as that.", 1)
    notices = (*remarks.notices(), *read.parsed.notices, *find_together(read.parsed.dialog))
    return Imported(
        remarks.weave(read.parsed.dialog), notices, found,
        _shorten_title(read.title), read.unspoken, read.chat, read.quoted, read.timed,
        read.columns,
    )  # fmt: skip


def _read_own(
    text: str, suffix: Format | None, options: ImportOptions, remarks: ImportNotices
) -> Imported | None:
    """Read what the studio itself wrote by its own grammar; None for other text."""
    if suffix is Format.FOUNTAIN and (
        own := read_own_fountain(text, remarks, narrator=options.narrator)
    ):
        return Imported(own.parsed.dialog, own.parsed.notices, suffix, unspoken=own.unspoken)
    is_script = suffix in (None, Format.SCRIPT) and options.narrator is None
    is_foreign = _TIMED_TURN.search(text) is not None if "[" in text or "(" in text else False
    is_foreign |= _LABELLED.search(text) is not None
    if (
        not is_script
        or is_foreign
        or (SIGNS.search(text) and has_marks(text))
        or not (script := read_own_script(text))
    ):
        return None
    title = _shorten_title(_find_title(script.dialog))
    return Imported(script.dialog, script.notices, Format.SCRIPT, title)


# A transcript's or a chat's, which may have a script's form: its times aren't who speaks, or said.
_TIMED_TURN = regex.compile(r"(?m)^(?:\[[^\[\]|\n]{0,200}\d[:.]\d\d|[^:\n]{1,60}: [\[(]\d\d?:\d\d)")

# Rows that say what they are, such as `SPEAKER: Anna` above `TEXT: …`, or begin with numbers, ids
# or seconds; a name beside a time; and who comes and goes in a play.
_LABELLED = regex.compile(
    r"(?mi)^(?:(?:dialogue|dialog|lines|script|turns|scene):\n\s*- "
    r"|(?:speaker|character|name): [^\n]{1,60}\n(?:text|line|dialogue): "
    r"|(?:(?:line|cue) \d{1,5} ?[-–:.)]|\[\d{1,6}(?:\.\d{1,3})?s?\]|\d{1,5}:|#\d{1,5}"
    r"|(?-i:[A-Z]{1,6}[_-]?\d{2,6})) ?\p{L}[^\n:]{0,60}: "
    r"|\[[^\[\]|\n]{1,60}\] \d\d?:\d\d(?::\d\d)?$|\[(?:exit|exeunt|enter)\b[^\[\]|\n]{0,60}\]$)"
)


def _find_title(dialog: Dialog) -> str | None:
    """The first note above the lines that may be a title."""
    lead = takewhile(lambda line: isinstance(line, Unspoken), dialog)
    notes = (one.text for one in lead if isinstance(one, Unspoken) and one.kind == "note")
    return next((plain_title(strip_markup(note)) for note in notes if may_be_title(note)), None)


def _shorten_title(title: str | None) -> str | None:
    return " ".join((title or "").split())[:MAX_TITLE_CHARS] or None


def read_dialog_text(text: str, options: ImportOptions = DEFAULT_IMPORT) -> Imported:
    """Read typed or pasted text, exactly as `import_dialog` reads a file of it without a suffix.

    Raises:
        ScriptError: It is too large, or no dialog.
    """
    whole = text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)
    return import_dialog(whole.encode(), "The script", options)


TIMED = (Format.SRT, Format.VTT)
"""Formats with the times of lines."""


def export_dialog(
    dialog: Dialog,
    format_: Format,
    *,
    durations_s: Sequence[float] | None = None,
    pauses: PausesByLine | None = None,
) -> bytes:
    """Write a dialog as a file.

    Every format except subtitles reads back to the same dialog; `export_notices` has what subtitles
    leave out.

    Args:
        dialog: At least one line.
        format_: Its value is the file's suffix.
        durations_s: One for each line, for the times of subtitles; None estimates them.
        pauses: Where the pauses inside lines are, for subtitles; estimated for other lines.

    Returns:
        UTF-8; tables begin with a byte order mark, without which Excel takes them for Windows-1252.

    Raises:
        ScriptError: The dialog is empty, or a text in it is too long.
    """
    if not len(dialog):
        raise ScriptError("There is nothing to write: the dialog has no lines yet.")
    shown = Dialog(tuple(map(_remove_nul, dialog)))
    encoding = "utf-8-sig" if format_ in (Format.CSV, Format.TSV) else "utf-8"
    if format_ in TIMED:
        write = write_srt if format_ is Format.SRT else write_vtt
        return write(shown, durations_s, pauses).encode(encoding)
    return _write(shown, format_).encode(encoding)


def export_notices(dialog: Dialog, format_: Format) -> tuple[Notice, ...]:
    """Notices of what a format leaves out of a dialog."""
    remarks = ImportNotices()
    if format_ in TIMED:
        for number, line in enumerate(dialog, start=1):
            for what in _list_left_out(line, format_):
                remarks.add(f"{format_.label} leaves {what} out.", number)
    return remarks.notices()


def _remove_nul(line: Line) -> Line:
    """Remove NULs, which have no sound and make a file binary for any reader."""
    if isinstance(line, Speech | Unspoken) and "\0" in line.text:
        return replace(line, text=line.text.replace("\0", ""))
    return line


def _list_left_out(line: Line, format_: Format) -> list[str]:
    """What subtitles leave out of a line."""
    if isinstance(line, Audio):
        return ["reused audio"]
    if isinstance(line, Unspoken):
        return ["headings, notes and action"] if format_ is Format.SRT else []
    if not isinstance(line, Speech):
        return []
    lost = {
        "the language": line.language is not None and format_ is Format.SRT,
        "the seed": line.seed is not None,
        "the voice's settings": any(name not in (GAP, START) for name in line.params),
    }
    return [what for what, is_lost in lost.items() if is_lost]


def _write(dialog: Dialog, format_: Format) -> str:
    match format_:
        case Format.SCRIPT:
            return write_script(dialog)
        case Format.FOUNTAIN:
            return write_fountain(dialog)
        case Format.CSV:
            return write_table(dialog, ",")
        case Format.TSV:
            return write_table(dialog, "\t")
        case Format.JSON:
            return write_items(dialog)
        case _:
            return write_json_lines(dialog)
