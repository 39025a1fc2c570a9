"""Subtitles and annotations of older programs: MicroDVD, SAMI, Praat's TextGrid."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import regex

from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.captions import Cue, read_cue_list
from studio.dialog.reading.form import Explanation, Form, Read
from studio.dialog.reading.lexer import Source
from studio.dialog.reading_limits import Cost

_FRAMES = regex.compile(r"(?m)^\{(?P<start>\d{1,7})\}\{(?P<end>\d{0,7})\}(?P<text>[^\n]*)$")
_RATE = regex.compile(r"\d{2,3}(?:[.,]\d{1,3})?")
_USUAL_RATE_HZ = 23.976
_STYLE = regex.compile(r"\{[a-zA-Z]:[^{}]*\}")

_SYNC = regex.compile(r"(?i)<SYNC\s+Start\s*=\s*\"?(?P<start>\d{1,9})\"?[^<>]*>")
_TAG = regex.compile(r"<[^<>]*>")
_BREAK = regex.compile(r"(?i)<br\s*/?>|\n")

_TIER = regex.compile(r"\s*name\s*=\s*\"(?P<name>[^\"]*)\"\s*")
_BOUND = regex.compile(r"\s*(?P<which>xmin|xmax)\s*=\s*(?P<at>\d{1,7}(?:\.\d{1,12})?)\s*")
_SAID = regex.compile(r"\s*text\s*=\s*\"(?P<text>(?:[^\"]|\"\")*)\"\s*")


def _find_frames(source: Source) -> Iterator[Cue]:
    rate_hz = _USUAL_RATE_HZ
    for number, row in source.filled:
        if not (found := _FRAMES.fullmatch(row)):
            continue
        text = _STYLE.sub("", found["text"]).strip()
        if found["start"] == found["end"] and _RATE.fullmatch(text):
            rate_hz = max(1.0, float(text.replace(",", ".")))
            continue
        start, end = (
            round(int(one or 0) * 1000 / rate_hz) for one in (found["start"], found["end"])
        )
        rows = tuple((number, part.strip(" /")) for part in text.split("|"))
        yield Cue(number, row, start, max(start, end), rows)


def _find_synced(source: Source) -> Iterator[Cue]:
    marks = [*_SYNC.finditer(source.text)]
    number, last = 1, 0
    for mark, after in pairwise([*marks, None]):
        assert mark is not None
        number, last = number + source.text.count("\n", last, mark.start()), mark.start()
        written = source.text[mark.end() : after.start() if after else len(source.text)]
        plain = (html.unescape(_TAG.sub("", part)) for part in _BREAK.split(written))
        rows = tuple((number, row) for row in map(str.strip, plain) if row)
        start = int(mark["start"])
        if rows:
            yield Cue(
                number, mark[0], start, max(start, int(after["start"])) if after else start, rows
            )


def _find_intervals(source: Source) -> Iterator[Cue]:
    """Of all tiers, by their starts; a tier is a speaker."""
    cues: list[Cue] = []
    name, bounds = "", {"xmin": 0.0, "xmax": 0.0}
    for number, row in source.filled:
        if tier := _TIER.fullmatch(row):
            name = tier["name"]
        elif bound := _BOUND.fullmatch(row):
            bounds[bound["which"]] = float(bound["at"])
        elif (said := _SAID.fullmatch(row)) and (text := said["text"].replace('""', '"').strip()):
            start, end = (round(bounds[which] * 1000) for which in ("xmin", "xmax"))
            cues.append(
                Cue(number, row, start, end, ((number, f"{name}: {text}" if name else text),))
            )
    yield from sorted(cues, key=lambda cue: cue.start_ms or 0)


def _explain(
    is_so: Callable[[str], object], find: Callable[[Source], Iterator[Cue]], source: Source
) -> Explanation | None:
    if not is_so(source.text):
        return None
    cues = list(find(source))
    source.budget.spend(Cost.LINES, len(cues))

    def read(remarks: ImportNotices) -> Read:
        return Read(read_cue_list(cues, remarks, fit=source.fit), timed=True)

    return Explanation(read) if cues else None


_MICRO_DVD = regex.compile(r"\s*\{\d{1,7}\}\{\d{0,7}\}").match
_SAMI = regex.compile(r"(?i)\s*<SAMI\b").match
_TEXT_GRID = regex.compile(r"\s*File type = \"ooTextFile\"\s+Object class = \"TextGrid\"").match

FORMS = (
    Form(
        "MicroDVD subtitles",
        3.7,
        partial(_explain, _MICRO_DVD, _find_frames),
        ("}{",),
        "srt",
        False,
    ),
    Form("SAMI subtitles", 4.3, partial(_explain, _SAMI, _find_synced), ("<S", "<s"), "srt", False),
    Form(
        "a TextGrid",
        3.7,
        partial(_explain, _TEXT_GRID, _find_intervals),
        ("TextGrid",),
        "srt",
        False,
    ),
)
