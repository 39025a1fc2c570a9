"""Subtitles of Advanced SubStation Alpha, `.ass` and `.ssa`."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.captions import Cue, read_cue_list
from studio.dialog.reading.form import Explanation, Form, Read
from studio.dialog.reading.lexer import Source
from studio.dialog.reading_limits import PATTERN_S, Cost
from studio.errors import ScriptError

_ASS = regex.compile(r"\s*(?:;[^\n]*\n\s*)*\[Script Info\]", regex.IGNORECASE)
_CLOCK = regex.compile(r"(\d{1,2}):(\d{2}):(\d{2})[.:](\d{1,3})")
_OVERRIDES = regex.compile(r"\{[^{}]*\}")
_DRAWING = regex.compile(r"\{(?:(?!\\p[1-9])[^{}])*+\\p[1-9][^{}]*+\}")
_USUAL_FIELDS = (
    "layer",
    "start",
    "end",
    "style",
    "name",
    "marginl",
    "marginr",
    "marginv",
    "effect",
)
_SIGN = regex.compile(r"\b(?:signs?|title|typeset|ts|note|credits?)\b", regex.IGNORECASE)
_DRAWN = "What the subtitles only draw is left out."
_TITLED = regex.compile(r"(?m)^Title:[ \t]*(?P<title>(?!Default Aegisub|<)\S.*)$")
_NO_EVENTS = "The subtitles hold no lines that begin with “Dialogue:”."


def _explain(source: Source) -> Explanation | None:
    if not _ASS.match(source.text, timeout=PATTERN_S):
        return None
    return Explanation(lambda remarks: _read(source, remarks))


def _read(source: Source, remarks: ImportNotices) -> Read:
    """Names from the field Name, gaps as silences."""
    text = source.text
    source.budget.spend(Cost.ROWS, text.count(r"\N") + text.count(r"\n"))
    cues = sorted(_events(text, remarks), key=lambda cue: (cue.start_ms or 0, cue.line_number))
    if not cues:
        raise ScriptError(_NO_EVENTS)
    titled = _TITLED.search(text, timeout=PATTERN_S)
    parsed = read_cue_list(cues, remarks, fit=source.fit)
    title = titled["title"].rstrip(" \t") if titled else None
    return Read(parsed, title, timed=True)


def _events(text: str, remarks: ImportNotices) -> Iterator[Cue]:
    fields: tuple[str, ...] = _USUAL_FIELDS
    is_event = False
    for number, row in enumerate(text.splitlines(), start=1):
        key, _, value = row.partition(":")
        if row.startswith("["):
            is_event = row.strip().casefold() == "[events]"
        elif is_event and key.strip() == "Format":
            fields = tuple(name.strip().casefold() for name in value.split(",")[:-1])
        elif is_event and key.strip() == "Comment":
            words = value.split(",", len(fields))[len(fields) :]
            for row in _shown_rows("".join(words)):
                remarks.keep(number, row)
        elif is_event and key.strip() == "Dialogue":
            yield from _cue(value, fields, number, remarks)


def _cue(value: str, fields: tuple[str, ...], number: int, remarks: ImportNotices) -> Iterator[Cue]:
    cells = value.split(",", len(fields))
    words = cells[-1] if len(cells) > len(fields) else ""
    event = dict(zip(fields, (cell.strip() for cell in cells), strict=False))
    if _DRAWING.search(words):
        remarks.add(_DRAWN, number)
        return
    name = event.get("name") or event.get("actor")
    shown = _shown_rows(words)
    if not name and _SIGN.search(event.get("style") or ""):
        for row in shown:
            remarks.set_aside(_DRAWN, number, row)
        return
    if shown and name:
        shown[0] = f"<v {name}>{shown[0]}"
    timing = f"{event.get('start')} --> {event.get('end')}"
    start_ms, end_ms = _milliseconds(event.get("start")), _milliseconds(event.get("end"))
    lines = tuple((number, row) for row in shown)
    yield Cue(number, timing, start_ms, end_ms if start_ms is not None else None, lines)


def _shown_rows(words: str) -> list[str]:
    shown = _OVERRIDES.sub("", words).replace(r"\h", " ").replace(r"\n", r"\N")
    return [row for row in map(str.strip, shown.split(r"\N")) if row]


def _milliseconds(written: str | None) -> int | None:
    found = _CLOCK.fullmatch(written or "")
    if found is None:
        return None
    hours, minutes, seconds = map(int, found.groups()[:3])
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + int(found[4].ljust(3, "0"))


FORMS = (Form("SubStation subtitles", 3.8, _explain, ("[",), "srt", is_file=False),)
