"""The formats a dialog is read from and written to."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePath

import regex

from studio.dialog.formats.building import ImportNotices
from studio.dialog.formats.captions import begins_timed, is_timed
from studio.dialog.formats.fountain import looks_like_fountain
from studio.dialog.formats.tables import delimiter_of
from studio.dialog.script import parse_header
from studio.errors import NameRejected, ScriptError


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
        """What people call it, to stand in a sentence."""
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
    """The format that a file's name promises; None where it promises nothing."""
    return _SUFFIXES.get(PurePath(file_name).suffix.lower())


_LIST = regex.compile(r"\s*\[\s*(?:\{\s*\"|\]\s*$)")
_OBJECT = regex.compile(r"\s*\{\s*\"")
_VTT = regex.compile(r"\s*WEBVTT(?:\s|$)")
_LOOKED_AT_LINES = 200

_ALIKE = (
    {Format.CSV, Format.TSV},  # a .csv with tabs or semicolons is an everyday thing
    {Format.JSON, Format.JSON_LINES},
)


def detect(text: str, file_name: str, remarks: ImportNotices) -> Format:
    """Find out a text file's format; a suffix that misleads is remarked on."""
    promised = format_of_suffix(file_name)
    found = _by_content(text, promised)
    if promised not in (None, found) and {promised, found} not in _ALIKE:
        remarks.add(f"“{file_name}” holds {found.label}, and is read as that.", 1)
    return found


def _by_content(text: str, promised: Format | None) -> Format:
    if _LIST.match(text):
        return Format.JSON
    if _OBJECT.match(text):
        return Format.JSON_LINES
    if _VTT.match(text) and (promised is Format.VTT or is_timed(text)):
        return Format.VTT
    return _by_lines(text, promised)


def _by_lines(text: str, promised: Format | None) -> Format:
    if begins_timed(text):
        return Format.VTT if promised is Format.VTT else Format.SRT
    if promised in (Format.SRT, Format.VTT) and is_timed(text):
        return promised
    if delimiter := delimiter_of(text):
        return Format.TSV if delimiter == "\t" else Format.CSV
    return _by_names(text, promised)


def _by_names(text: str, promised: Format | None) -> Format:
    """Tell a script from a screenplay, by whether names begin lines or stand above them."""
    lines = list(filter(str.strip, text.splitlines()[:_LOOKED_AT_LINES]))
    named = sum(map(_begins_with_name, lines))
    if promised in (Format.CSV, Format.TSV) and 2 * named > len(lines):
        return Format.SCRIPT
    if promised in (None, Format.SCRIPT, Format.SRT, Format.VTT):
        beginning = "\n".join(text.splitlines()[:_LOOKED_AT_LINES])
        if looks_like_fountain(beginning, has_names=named > 0):
            return Format.FOUNTAIN
        return Format.SCRIPT if named or promised is None else promised
    return promised


def _begins_with_name(line: str) -> bool:
    try:
        return parse_header(line.strip()) is not None
    except (ScriptError, NameRejected):
        return True
