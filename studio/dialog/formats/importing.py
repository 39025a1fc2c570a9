"""Files to dialogs."""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from pathlib import PurePath

import regex

from studio.dialog.formats.building import ImportNotices
from studio.dialog.formats.captions import read_captions
from studio.dialog.formats.chat import read_chat
from studio.dialog.formats.encoding import decode_text
from studio.dialog.formats.file_format import Format, detect, format_of_suffix
from studio.dialog.formats.fountain import read_fountain
from studio.dialog.formats.tables import Role, assign, read_table, role_of
from studio.dialog.items import parse_items
from studio.dialog.model import MAX_SCRIPT_BYTES, Dialog, Notice, ParsedScript
from studio.dialog.script import parse_script
from studio.errors import ScriptError

_KEYS = {
    Role.SPEAKER: "speaker_id",
    Role.TEXT: "text",
    Role.LANGUAGE: "language",
    Role.SEED: "seed",
}


def add_item_types(text: str) -> str:
    """Give items the type and keys of dialog items, by the meaning of the keys they have.

    Returns:
        The text unchanged where it is no JSON or needs no change, so that whoever reads it next
        explains what is wrong; items and lines keep their numbers.
    """
    if text.lstrip("\ufeff \t\r\n").startswith("["):
        return _typed(text)
    return "\n".join(_typed(line) if line.strip() else line for line in text.split("\n"))


def _typed(text: str) -> str:
    try:
        found = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return text
    items = found if isinstance(found, list) else [found]
    if not any(map(_is_loose, items)):
        return text
    typed = [_with_type(item) if _is_loose(item) else item for item in items]
    return json.dumps(typed if isinstance(found, list) else typed[0], ensure_ascii=False)


def _is_loose(item: object) -> bool:
    return isinstance(item, dict) and "type" not in item and Role.TEXT in assign(list(item))


def _with_type(item: dict[str, object]) -> dict[str, object]:
    keys = list(item)
    columns = assign(keys)
    named = {_KEYS[role]: item[keys[columns[role]]] for role in _KEYS if role in columns}
    others = {key: value for key, value in item.items() if role_of(key) is None}
    return {"type": "speech", **others, **named}


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How files are read where there is a choice.

    `narrator` speaks the action and scene headings of a screenplay; without one they are left out.
    `min_gap_s` is the shortest time between two subtitles that becomes silence.
    """

    narrator: str | None = None
    min_gap_s: float = 0.3


@dataclass(frozen=True, slots=True)
class Imported:
    """A dialog, what the person should know about how it was read, and as what."""

    dialog: Dialog
    notices: tuple[Notice, ...]
    format: Format


_DEFAULTS = ImportOptions()


def import_dialog(data: bytes, file_name: str, options: ImportOptions = _DEFAULTS) -> Imported:
    """Read a file of any format and any common encoding.

    The content decides where it is plain; else the name's suffix does.

    Args:
        data: The whole file, at most `MAX_SCRIPT_BYTES`.
        file_name: For its suffix and for messages.
        options: What to do where there is a choice.

    Raises:
        ScriptError: It is no text, too large or no dialog, or a line of it can't be kept; the
            message names the line and the remedy.
    """
    remarks = ImportNotices()
    text = decode_text(data, file_name, remarks)
    if format_of_suffix(file_name) in (None, Format.SCRIPT):
        chat = read_chat(text, remarks)
        if chat is not None:
            return Imported(chat.dialog, chat.notices, Format.SCRIPT)
    format_ = detect(text, file_name, remarks)
    parsed = _parse(text, format_, remarks, options)
    return Imported(parsed.dialog, parsed.notices, format_)


def _parse(
    text: str, format_: Format, remarks: ImportNotices, options: ImportOptions
) -> ParsedScript:
    match format_:
        case Format.SRT | Format.VTT:
            is_vtt = format_ is Format.VTT
            return read_captions(text, remarks, is_vtt=is_vtt, min_gap_s=options.min_gap_s)
        case Format.CSV | Format.TSV:
            return read_table(text, remarks)
        case Format.FOUNTAIN:
            return read_fountain(text, remarks, narrator=options.narrator)
        case Format.JSON | Format.JSON_LINES:
            parsed = parse_items(add_item_types(text))
        case Format.SCRIPT:
            parsed = parse_script(text)
    return ParsedScript(parsed.dialog, remarks.notices() + parsed.notices)


_ITEM_SUFFIXES = frozenset((".json", ".jsonl", ".ndjson"))
_ITEMS_BEGIN = regex.compile(r"""\s*(?:\[\s*\{\s*"\w*"\s*:|\[\s*\]\s*$|\{)""")


def read_dialog(data: bytes, *, name: str) -> ParsedScript:
    """Read a file as a script, a JSON list or JSON lines, by its suffix or else by its content.

    Args:
        data: The whole file; UTF-8, or UTF-16 with its mark.
        name: The file's name, for its suffix and for messages.

    Raises:
        ScriptError: It is too large, no text, in another encoding, or no dialog.
    """
    if len(data) > MAX_SCRIPT_BYTES:
        raise ScriptError(
            f"“{name}” has {len(data) / 1e6:.1f} MB; a script has at most "
            f"{MAX_SCRIPT_BYTES // 1_000_000} MB. Divide it into parts."
        )
    text = _decode(data, name)
    if not text.strip():
        raise ScriptError(
            f"“{name}” is empty: it holds no lines. Write at least one, "
            "such as “Anna: Good evening.”"
        )
    is_items = PurePath(name).suffix.lower() in _ITEM_SUFFIXES or _ITEMS_BEGIN.match(text)
    return parse_items(text) if is_items else parse_script(text)


def read_dialog_text(text: str) -> ParsedScript:
    """Read what a person typed or pasted, as `read_dialog` reads a file.

    Raises:
        ScriptError: It is too large, or no dialog.
    """
    return read_dialog(text.encode("utf-8", "surrogatepass"), name="The script")


def _decode(data: bytes, name: str) -> str:
    encoding = _encoding(data)
    if encoding == "utf-8-sig" and b"\0" in data:
        raise _no_text(name)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ScriptError(
            f"“{name}” is not UTF-8 text (the first wrong byte is in line {line}). "
            "Open it in a text editor and save it as UTF-8."
        ) from error
    if "\0" in text:
        raise _no_text(name)
    return text


def _encoding(data: bytes) -> str:
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if is_utf16 else "utf-8-sig"


def _no_text(name: str) -> ScriptError:
    return ScriptError(
        f"“{name}” is not a text file, so it can't be a dialog. "
        "Save a document as plain text (UTF-8) first."
    )
