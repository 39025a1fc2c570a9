"""Detects the format of a dialog's file, reads and writes it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from pathlib import PurePath
from typing import Any

import regex

from studio.dialog.documents.reading import find_document_kind, read_document
from studio.dialog.formats.building import ImportNotices
from studio.dialog.formats.caption_writer import PausesByLine, write_srt, write_vtt
from studio.dialog.formats.captions import (
    begins_timed,
    find_vtt_title,
    is_timed,
    read_captions,
    read_cue_list,
)
from studio.dialog.formats.chat import read_chat
from studio.dialog.formats.encoding import decode_text
from studio.dialog.formats.foreign import find_ass_title, is_ass, is_yarn, read_ass, read_yarn
from studio.dialog.formats.fountain import (
    looks_like_fountain,
    read_fountain,
    read_own_fountain,
    write_fountain,
)
from studio.dialog.formats.game_scripts import read_game_script
from studio.dialog.formats.json_wrappers import add_direction, list_notes, unwrap_items
from studio.dialog.formats.model_answers import take_script, write_turns
from studio.dialog.formats.pasted_sources import (
    find_markdown_table,
    read_timed_rows,
    show_source,
    write_columns,
    write_yaml_lines,
)
from studio.dialog.formats.plain_text import read_plain_text
from studio.dialog.formats.plays import find_play
from studio.dialog.formats.printed_pages import cut_page_breaks
from studio.dialog.formats.row_kinds import may_be_title, plain_title
from studio.dialog.formats.tables import (
    OWN,
    Role,
    assign,
    delimiter_of,
    is_headless,
    is_noted,
    leave_counts,
    read_own,
    read_table,
    role_of,
    write_table,
)
from studio.dialog.formats.time_rows import cut_times
from studio.dialog.formats.turns import has_closed_turns
from studio.dialog.gaps import GAP
from studio.dialog.items import parse_items, write_items, write_json_lines
from studio.dialog.markup import strip_markup
from studio.dialog.model import MAX_LINES, Audio, Dialog, Line, Notice, Speech, Unspoken
from studio.dialog.reading_limits import check_reading, limited_reading
from studio.dialog.script import parse_header, read_own_script, write_script
from studio.errors import NameRejected, ScriptError
from studio.storage.json_bounds import MAX_VALUES, has_too_many_values


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


# With the first key whole: a speaker may be called `{"`.
_FIRST_KEY = r"\{\s*\"(?:[^\"\\\n]|\\.){0,200}+\"\s*:"
JSON_BEGINS = regex.compile(rf"\s*(?:{_FIRST_KEY}|\[\s*(?:{_FIRST_KEY}|\]\s*$))")
_VTT = regex.compile(r"\s*WEBVTT(?:\s|$)")
_LOOKED_AT_LINES = 200

_ALIKE = (
    {Format.CSV, Format.TSV},  # a .csv with tabs or semicolons is common
    {Format.JSON, Format.JSON_LINES},
)


def detect(text: str, file_name: str, remarks: ImportNotices) -> Format:
    """Detect a text file's format; a misleading suffix becomes a notice."""
    promised = format_of_suffix(file_name)
    found = _detect_by_content(text, promised)
    if promised not in (None, found) and {promised, found} not in _ALIKE:
        remarks.add(f"“{file_name}” holds {found.label}, and is read as that.", 1)
    return found


def _detect_by_content(text: str, promised: Format | None) -> Format:
    if JSON_BEGINS.match(text):
        return Format.JSON if text.lstrip().startswith("[") else Format.JSON_LINES
    if _VTT.match(text) and (promised is Format.VTT or is_timed(text)):
        return Format.VTT
    return _detect_by_lines(text, promised)


def _detect_by_lines(text: str, promised: Format | None) -> Format:
    if begins_timed(text):
        return Format.VTT if promised is Format.VTT else Format.SRT
    if promised in (Format.SRT, Format.VTT) and is_timed(text):
        return promised
    if delimiter := delimiter_of(text):
        return Format.TSV if delimiter == "\t" else Format.CSV
    if is_headless(text):
        return Format.CSV
    return _detect_by_names(text, promised)


def _detect_by_names(text: str, promised: Format | None) -> Format:
    """Tell a script from a screenplay: do names start the lines, or are they above them?"""
    rows = text.splitlines()[:_LOOKED_AT_LINES]
    lines = list(filter(str.strip, rows))
    named = sum(map(_begins_with_name, lines))
    if promised in (Format.CSV, Format.TSV) and 2 * named > len(lines):
        return Format.SCRIPT
    if promised in (None, Format.SCRIPT, Format.SRT, Format.VTT):
        beginning = "\n".join(rows)
        if named and 2 * named >= len(lines):  # a scene's heading in a script makes no screenplay
            return Format.SCRIPT
        is_play = find_play(list(enumerate(map(str.strip, rows), 1))) is not None
        if not is_play and looks_like_fountain(beginning, has_names=named > 0):
            return Format.FOUNTAIN
        return Format.SCRIPT if named or promised is None else promised
    return promised


def _begins_with_name(line: str) -> bool:
    try:
        return parse_header(line.strip()) is not None
    except (ScriptError, NameRejected):
        return True


_KEYS = {
    Role.SPEAKER: "speaker_id",
    Role.TEXT: "text",
    Role.LANGUAGE: "language",
    Role.SEED: "seed",
}


_TURN_ITEM = regex.compile(r"\s*\[S\d{1,2}\]")


def _join_turn_items(text: str) -> str | None:
    """The text of items that only hold turns: `{"text": "[S1] Hi. [S2] Ho."}`; None for others."""
    if "[S" not in text:
        return None
    rows = text.lstrip("\ufeff \t\r\n")
    try:
        found = (
            json.loads(rows) if rows.startswith("[") else list(map(json.loads, rows.splitlines()))
        )
    except (ValueError, RecursionError):
        return None
    items = [one for one in found if isinstance(one, dict) and _KEYS[Role.SPEAKER] not in one]
    texts = [str(one.get("text")) for one in items]
    is_turns = len(texts) == len(found) > 0 and all(map(_TURN_ITEM.match, texts))
    return "\n".join(texts) if is_turns else None


def add_item_types(text: str) -> str:
    """Add the type and keys of dialog items to similar items, such as ones with `name` and `line`.

    Returns:
        The text, with the same numbers of lines, and notes as items of their own; unchanged if it
        isn't JSON or needs no change, so that the next reader reports what is wrong.
    """
    if text.lstrip("\ufeff \t\r\n").startswith("["):
        return _add_types(text)
    return "\n".join(_add_types(line) if line.strip() else line for line in text.split("\n"))


def _add_types(text: str) -> str:
    try:
        found = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return text
    items = found[: MAX_LINES + 1] if isinstance(found, list) else [found]
    if not any(map(_is_untyped, items)):
        return text
    if not isinstance(found, list):
        return json.dumps(_add_type(found), ensure_ascii=False)
    typed = [one for item in items for one in (_split_notes(item) if _is_untyped(item) else [item])]
    return json.dumps(typed, ensure_ascii=False)


def _split_notes(item: dict[str, object]) -> list[dict[str, object]]:
    """An item of an array, and below it the notes that it has beside its words."""
    said = {key: value for key, value in item.items() if not is_noted(key)}
    return [_add_type(said), *list_notes(item)]


def _is_untyped(item: object) -> bool:
    return isinstance(item, dict) and "type" not in item and Role.TEXT in assign(list(item))


def _add_type(item: dict[str, Any]) -> dict[str, object]:
    keys = list(item)
    columns = {role: keys[column] for role, column in assign(keys).items()}
    named = {_KEYS[role]: item[columns[role]] for role in _KEYS if role in columns}
    others = {key: value for key, value in item.items() if role_of(key) is None}
    for role in filter(columns.__contains__, OWN):
        if isinstance(value := item[columns[role]], str | int | float):
            others[OWN[role]] = value  # as it is, if it can't be read
            with suppress(ScriptError):
                others = {**others, OWN[role]: None, **read_own(role, columns[role], str(value))}
    return {"type": "speech", **others, **add_direction(named, item)}


MAX_TITLE_CHARS = 100
_SURROGATES = regex.compile(r"\p{Cs}")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import.

    `narrator` speaks action, headings and stage directions; with None they are left out.
    `min_gap_s` is the shortest gap between two subtitles that becomes silence.
    """

    narrator: str | None = None
    min_gap_s: float = 0.3


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
    """

    dialog: Dialog
    notices: tuple[Notice, ...]
    format: Format
    title: str | None = None
    unspoken: int = 0
    chat: bool = False


_DEFAULTS = ImportOptions()


@limited_reading()
def import_dialog(data: bytes, file_name: str, options: ImportOptions = _DEFAULTS) -> Imported:
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
    own = _read_own(text, format_of_suffix(file_name), options)
    if own is not None:
        return replace(own, notices=remarks.notices() + own.notices)
    read = _read_foreign_text(text, file_name, remarks, options)
    return replace(read, dialog=remarks.weave(read.dialog))


def _read_own(text: str, suffix: Format | None, options: ImportOptions) -> Imported | None:
    """Read what the studio itself wrote by its own grammar; None for other text."""
    if suffix is Format.FOUNTAIN and (own := read_own_fountain(text, narrator=options.narrator)):
        return Imported(own.parsed.dialog, own.parsed.notices, suffix, unspoken=own.unspoken)
    is_script = suffix in (None, Format.SCRIPT) and options.narrator is None
    if not is_script or _TIMED_TURN.search(text) or not (script := read_own_script(text)):
        return None
    title = _shorten_title(_find_title(script.dialog))
    return Imported(script.dialog, script.notices, Format.SCRIPT, title)


# A transcript's or a chat's, which may have a script's form: its times aren't who speaks, or said.
_TIMED_TURN = regex.compile(r"(?m)^(?:\[[^\[\]|\n]{0,200}\d[:.]\d\d|[^:\n]{1,60}: [\[(]\d\d?:\d\d)")


def _find_title(dialog: Dialog) -> str | None:
    """The first note above the lines that may be a title."""
    lead = takewhile(lambda line: isinstance(line, Unspoken), dialog)
    notes = (one.text for one in lead if isinstance(one, Unspoken) and one.kind == "note")
    return next((plain_title(strip_markup(note)) for note in notes if may_be_title(note)), None)


def _read_foreign_text(
    text: str, file_name: str, remarks: ImportNotices, options: ImportOptions
) -> Imported:
    """Read what people, models and other programs wrote, of which some may be set aside."""
    _check_json_size(text)
    text = write_turns(text) or take_script(text, remarks)
    text = show_source(text) or write_columns(text) or write_yaml_lines(text) or text
    check_reading()
    foreign = _read_foreign(text, remarks, options)
    if foreign is not None:
        return foreign
    may_be_chat = format_of_suffix(file_name) in (None, Format.SCRIPT)
    if may_be_chat and not has_closed_turns(text) and delimiter_of(text) is None:
        chat = read_chat(text, remarks)
        if chat is not None:
            title = _shorten_title(chat.title)
            return Imported(
                chat.parsed.dialog, chat.parsed.notices, Format.SCRIPT, title, chat=True
            )
    check_reading()
    text = cut_times(text, remarks)
    if delimiter_of(text) is None:
        text = cut_page_breaks(text, remarks)
    format_ = detect(text, file_name, remarks)
    return _parse(text, format_, remarks, options)


def _check_json_size(text: str) -> None:
    """Refuse JSON that would take hundreds of megabytes once it is parsed.

    Raises:
        ScriptError: It holds too many values.
    """
    is_json = text.lstrip("\ufeff \t\r\n").startswith(("[", "{"))
    if is_json and has_too_many_values(text.encode(errors="replace")):
        raise ScriptError(f"This holds more than {MAX_VALUES:,} values. Divide it into parts.")


def _read_foreign(text: str, remarks: ImportNotices, options: ImportOptions) -> Imported | None:
    """Read what only other programs write; None for everything else."""
    if is_ass(text):
        parsed = read_ass(text, remarks, min_gap_s=options.min_gap_s)
        title = _shorten_title(find_ass_title(text))
        return Imported(parsed.dialog, parsed.notices, Format.SRT, title)
    if is_yarn(text):
        parsed = read_yarn(text, remarks)
        return Imported(parsed.dialog, parsed.notices, Format.SCRIPT)
    if cues := read_timed_rows(text, remarks):
        parsed = read_cue_list(cues, remarks, is_vtt=False, min_gap_s=options.min_gap_s)
        return Imported(parsed.dialog, parsed.notices, Format.SRT)
    if game := read_game_script(text, remarks):
        return Imported(game.parsed.dialog, game.parsed.notices, Format.SCRIPT, game.title)
    if table := find_markdown_table(text, remarks):
        parsed = read_table(table.text, remarks)
        return Imported(parsed.dialog, parsed.notices, Format.TSV, table.title)
    return None


def _parse(text: str, format_: Format, remarks: ImportNotices, options: ImportOptions) -> Imported:
    title, unspoken = None, 0
    match format_:
        case Format.SRT | Format.VTT:
            is_vtt = format_ is Format.VTT
            title = find_vtt_title(text) if is_vtt else None
            parsed = read_captions(text, remarks, is_vtt=is_vtt, min_gap_s=options.min_gap_s)
        case Format.CSV | Format.TSV:
            parsed = read_table(text, remarks)
        case Format.FOUNTAIN:
            screenplay = read_fountain(text, remarks, narrator=options.narrator)
            parsed, title, unspoken = screenplay.parsed, screenplay.title, screenplay.unspoken
        case Format.JSON | Format.JSON_LINES if (turns := _join_turn_items(text)) is not None:
            parsed = read_plain_text(turns, remarks, narrator=None).parsed
        case Format.JSON | Format.JSON_LINES:
            unwrapped, title = unwrap_items(text)
            typed = add_item_types(unwrapped)
            parsed = parse_items(typed)
            parsed = parsed if typed == unwrapped else leave_counts(parsed)
        case Format.SCRIPT:
            plain = read_plain_text(text, remarks, narrator=options.narrator)
            parsed, title, unspoken = plain.parsed, plain.title, plain.unspoken
    # What a `DialogBuilder` has built has the remarks already.
    is_own = format_ in (Format.SCRIPT, Format.JSON, Format.JSON_LINES)
    notices = remarks.notices() + parsed.notices if is_own else parsed.notices
    return Imported(parsed.dialog, notices, format_, _shorten_title(title), unspoken)


def _shorten_title(title: str | None) -> str | None:
    return " ".join((title or "").split())[:MAX_TITLE_CHARS] or None


def read_dialog_text(text: str, options: ImportOptions = _DEFAULTS) -> Imported:
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
        "the voice's settings": any(name != GAP for name in line.params),
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
