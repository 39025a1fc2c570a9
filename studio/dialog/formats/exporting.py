"""Dialogs to files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from studio.dialog.formats.building import ImportNotices
from studio.dialog.formats.caption_writing import write_srt, write_vtt
from studio.dialog.formats.file_format import Format
from studio.dialog.formats.fountain import write_fountain
from studio.dialog.formats.tables import write_table
from studio.dialog.items import write_items, write_json_lines
from studio.dialog.model import Audio, Dialog, Line, Notice, Speech
from studio.dialog.script import write_script
from studio.errors import ScriptError

TIMED = (Format.SRT, Format.VTT)
"""Formats that say when each line is heard."""


def export_dialog(
    dialog: Dialog, format_: Format, *, durations_s: Sequence[float] | None = None
) -> bytes:
    """Write a dialog as a file.

    Every format but the subtitles reads back to the same dialog; `export_notices` tells what
    subtitles leave out.

    Args:
        dialog: At least one line.
        format_: Its value is the file's suffix.
        durations_s: One a line, for the times of subtitles; None estimates them from the text.

    Returns:
        UTF-8; tables begin with a byte order mark, without which Excel takes them for Windows-1252.

    Raises:
        ScriptError: The dialog is empty, or a text in it is too long.
        NameRejected: A speaker's name can't stand in a file.
    """
    if not len(dialog):
        raise ScriptError("There is nothing to write: the dialog has no lines yet.")
    shown = Dialog(tuple(map(_without_nul, dialog)))
    encoding = "utf-8-sig" if format_ in (Format.CSV, Format.TSV) else "utf-8"
    return _write(shown, format_, durations_s).encode(encoding)


def export_notices(dialog: Dialog, format_: Format) -> tuple[Notice, ...]:
    """What a format can't hold of a dialog, to be told before or after it is written."""
    remarks = ImportNotices()
    if format_ in TIMED:
        for number, line in enumerate(dialog, start=1):
            for what in _left_out(line, format_):
                remarks.add(f"{format_.label} leaves {what} out.", number)
    return remarks.notices()


def _without_nul(line: Line) -> Line:
    """A NUL makes a file binary to every reader, and nobody hears it."""
    if isinstance(line, Speech) and "\0" in line.text:
        return replace(line, text=line.text.replace("\0", ""))
    return line


def _left_out(line: Line, format_: Format) -> list[str]:
    """What subtitles leave out of a line."""
    if isinstance(line, Audio):
        return ["reused audio"]
    if not isinstance(line, Speech):
        return []
    lost = {
        "the language": line.language is not None and format_ is Format.SRT,
        "the seed": line.seed is not None,
        "the voice's settings": bool(line.params),
    }
    return [what for what, is_lost in lost.items() if is_lost]


def _write(dialog: Dialog, format_: Format, durations_s: Sequence[float] | None) -> str:
    match format_:
        case Format.SCRIPT:
            return write_script(dialog)
        case Format.FOUNTAIN:
            return write_fountain(dialog)
        case Format.SRT:
            return write_srt(dialog, durations_s)
        case Format.VTT:
            return write_vtt(dialog, durations_s)
        case Format.CSV:
            return write_table(dialog, ",")
        case Format.TSV:
            return write_table(dialog, "\t")
        case Format.JSON:
            return write_items(dialog)
        case Format.JSON_LINES:
            return write_json_lines(dialog)
