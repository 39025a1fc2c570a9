"""Transcripts with times in their rows: Whisper's, labels, lyrics (LRC), and YouTube's `.sbv`."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from studio.dialog.markup import Row
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.captions import Cue, read_cue_list
from studio.dialog.reading.form import Explanation, Form, Read
from studio.dialog.reading.lexer import Source

_TIMED_ROW = regex.compile(
    r"\[(?P<start>[\d:.,]{5,12})\s*(?:-->|-|–)\s*(?P<end>[\d:.,]{5,12})\]\s*(?P<text>.*)"
)
_LABEL = regex.compile(r"(?P<start>\d{1,6}\.\d{1,6})\t(?P<end>\d{1,6}\.\d{1,6})\t\s*(?P<text>.*)")
_TIMES = r"(?P<start>[\d:.,]{5,12})\t\s*(?P<end>[\d:.,]{5,12})"
_NAMED = regex.compile(
    rf"(?:(?P<name>\p{{L}}[^\t]{{0,59}})\t\s*{_TIMES}|{_TIMES}\t\s*(?P<name>\p{{L}}[^\t]{{0,59}}))"
    r"\t\s*(?P<text>.*)"
)
_LYRIC = regex.compile(r"\[(?P<start>\d{1,3}:\d{2}[.:]\d{2,3})\]\s*(?P<text>.*)")
_SBV = regex.compile(r"(?P<start>\d+:\d{2}:\d{2}\.\d{3}),(?P<end>\d+:\d{2}:\d{2}\.\d{3})")
_FORMS = (_SBV, _TIMED_ROW, _LYRIC, _LABEL, _NAMED)
_LYRIC_TAG = regex.compile(r"\[[a-z]{2,6}:[^\]]*\]")
_TAGS = "What a file of lyrics says about the song isn't spoken; it stands between the lines:"


def _explain(source: Source) -> Explanation | None:
    first = next((row for _, row in source.filled if not _LYRIC_TAG.fullmatch(row)), "")
    form = next((one for one in _FORMS if one.fullmatch(first)), None)
    if form is None:
        return None
    filled = [one for one in source.filled if not _LYRIC_TAG.fullmatch(one[1])]
    found = [form.fullmatch(row) for _, row in filled]
    if form is not _SBV and not all(found):
        return None
    cues = list(_captions(filled) if form is _SBV else _cues(filled, found))

    def read(remarks: ImportNotices) -> Read:
        for number, row in source.filled if form is not _SBV else ():
            if _LYRIC_TAG.fullmatch(row):
                remarks.set_aside(_TAGS, number, row)
        return Read(read_cue_list(cues, remarks, fit=source.fit), timed=True)

    return Explanation(read) if cues else None


def _cues(filled: list[Row], found: list[regex.Match[str] | None]) -> Iterator[Cue]:
    starts = [_milliseconds(one["start"]) for one in found if one]
    for idx, ((number, row), one) in enumerate(zip(filled, found, strict=True)):
        assert one is not None
        given, name = one.groupdict().get("end"), one.groupdict().get("name")
        end = _milliseconds(given) if given else starts[min(idx + 1, len(starts) - 1)]
        if one["text"]:
            text = f"{name}: {one['text']}" if name else one["text"]
            yield Cue(number, row, starts[idx], end, ((number, text),))


def _captions(rows: list[Row]) -> Iterator[Cue]:
    timing: tuple[int, regex.Match[str]] | None = None
    lines: list[Row] = []
    for number, row in [*rows, (0, "")]:
        at = _SBV.fullmatch(row)
        if (at or not row) and timing is not None and lines:
            start, end = _milliseconds(timing[1]["start"]), _milliseconds(timing[1]["end"])
            yield Cue(timing[0], timing[1][0], start, end, tuple(lines))
        if at:
            timing, lines = (number, at), []
        elif row:
            lines.append((number, row))


def _milliseconds(written: str) -> int:
    """Of `1:02:03.5` or `02:03,50`."""
    parts = written.replace(",", ".").split(":")
    if "." not in parts[-1]:
        parts[-1] += ".0"
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + float(part)
    return round(seconds * 1000)


FORMS = (Form("a transcript with times", 3.7, _explain, (":", "\t"), "srt", is_file=False),)
