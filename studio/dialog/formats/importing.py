"""Files to dialogs."""

from __future__ import annotations

from dataclasses import dataclass

from studio.dialog.formats.captions import read_captions
from studio.dialog.formats.chat import read_chat
from studio.dialog.formats.detection import detect
from studio.dialog.formats.encoding import decode
from studio.dialog.formats.file_format import Format, format_of_suffix
from studio.dialog.formats.fountain import read_fountain
from studio.dialog.formats.loose_items import typed_items
from studio.dialog.formats.remarks import Remarks
from studio.dialog.formats.table import read_table
from studio.dialog.items import parse_items
from studio.dialog.model import Dialog, Notice, ParsedScript
from studio.dialog.script import parse_script


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
    remarks = Remarks()
    text = decode(data, file_name, remarks)
    if format_of_suffix(file_name) in (None, Format.SCRIPT):
        chat = read_chat(text, remarks)
        if chat is not None:
            return Imported(chat.dialog, chat.notices, Format.SCRIPT)
    format_ = detect(text, file_name, remarks)
    parsed = _parse(text, format_, remarks, options)
    return Imported(parsed.dialog, parsed.notices, format_)


def _parse(text: str, format_: Format, remarks: Remarks, options: ImportOptions) -> ParsedScript:
    match format_:
        case Format.SRT | Format.VTT:
            is_vtt = format_ is Format.VTT
            return read_captions(text, remarks, is_vtt=is_vtt, min_gap_s=options.min_gap_s)
        case Format.CSV | Format.TSV:
            return read_table(text, remarks)
        case Format.FOUNTAIN:
            return read_fountain(text, remarks, narrator=options.narrator)
        case Format.JSON | Format.JSON_LINES:
            parsed = parse_items(typed_items(text))
        case Format.SCRIPT:
            parsed = parse_script(text)
    return ParsedScript(parsed.dialog, remarks.notices() + parsed.notices)
