"""The formats a dialog is read from and written to."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePath


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
