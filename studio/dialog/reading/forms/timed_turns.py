"""Transcripts with a name and a time beside each turn, however a program lays them out.

Times with the signs around them are taken out of each row; what is left is a name, a name before
words, or words. The layout that most rows have is that of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

import regex

from studio.dialog.markup import Row
from studio.dialog.model import name_key
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.captions import begins_timed
from studio.dialog.reading.form import Explanation, Form, Read
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source
from studio.dialog.reading.row_times import LEFT

_CLOCK = (
    r"(?:\d{1,2}:\d{1,2}:\d{1,2}\.\d{1,3}|\d{1,2}:\d{2}(?::\d{2})?(?:[.,:;]\d{1,3})?)"
    r"(?:\s?[AaPp]\.?[Mm]\b\.?)?"
)
_DATE = (
    r"(?:(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\p{L}{3,9}\.?\s\d{1,2},?\s\d{4}"
    r"|\d{1,2}\.?\s\p{L}{3,9}\.?\s\d{4}),?\s+(?:at\s+)?)?"
)
_ONE = rf"{_DATE}{_CLOCK}"
_TIME = regex.compile(
    rf"[\[(<{{]?{_ONE}(?:\s*[-–—>]{{1,3}}\s*{_ONE})?[\])>}}]?"
    r"|[\[(]\d{1,6}(?:\.\d{1,3})?\s?s[\])]"
)
_SIGNS = ' \t-–—|·•,:*_[]"“”'
_NAME = regex.compile(r"[@~]?\p{L}[\p{L}\p{N}.'’&-]*(?: [\p{L}\p{N}.'’&()-]+){0,4}(?<!\.)")
_NAMED = regex.compile(rf"(?P<name>{_NAME.pattern})(?:\s?[:：]|\t)\s*(?P<text>\S.*)")
_MOST_ABOVE = 8
_FEWEST = 2


class _Kind(Enum):
    """What stands where in a row with a time."""

    ALONE = auto()
    HEADED = auto()
    SAID = auto()


@dataclass(frozen=True, slots=True)
class _TimedTurn:
    kind: _Kind
    name: str = ""
    text: str = ""


def _explain(source: Source) -> Explanation | None:
    if source.delimiter is not None or source.suffix in ("srt", "vtt") or _is_subtitles(source):
        return None
    filled = source.filled
    found = {idx: turn for idx, (_, row) in enumerate(filled) if (turn := _read_row(row))}
    if len(found) < _FEWEST:
        return None
    kind = Counter(turn.kind for turn in found.values()).most_common(1)[0][0]
    turns = {idx: turn for idx, turn in found.items() if turn.kind is kind}
    said = list(_find_said(filled, turns, kind))
    names = Counter(name_key(name) for _, name, _ in said)
    if len(said) < max(_FEWEST, len(turns) - 1) or not said[0][2]:
        return None
    if min(said[0][0], _MOST_ABOVE + 1) > _MOST_ABOVE or (
        len(said) > 3 and len(names) == len(said)
    ):
        return None
    if not all(words for _, _, words in said) or (len(names) < _FEWEST and kind is not _Kind.SAID):
        return None
    above = filled[: said[0][0]]
    untimed = [row for idx, (_, row) in enumerate(filled) if idx not in found]
    if sum(map(source.names.speaks, untimed)) > len(said) // 4:
        return None  # somebody speaks without a time: those are of headings, or said
    rows = [(number, row if row.startswith("#") else f"// {row}") for number, row in above]
    for _, name, ((number, first), *others) in said:
        rows += [(number, f"[{name}] {first}"), *others]
    written = explain_rows(source, rows, len(said))

    def read(remarks: ImportNotices) -> Read:
        remarks.add(LEFT, filled[said[0][0]][0])
        return written.read(remarks)

    return Explanation(read)


def _is_subtitles(source: Source) -> bool:
    return source.text.lstrip().startswith("WEBVTT") or begins_timed(source.text)


def _read_row(row: str) -> _TimedTurn | None:
    """A row with a time in it; None for another."""
    if row.startswith(("#", "//")) or not (time := _TIME.search(row)):
        return None
    before, after = row[: time.start()].strip(_SIGNS), row[time.end() :].strip(_SIGNS)
    if not before and not after:
        return _TimedTurn(_Kind.ALONE)
    if _is_name(before or after) and not (before and after):
        return _TimedTurn(_Kind.HEADED, before or after)
    if named := _NAMED.fullmatch(row[time.end() :].lstrip(_SIGNS)) if not before else None:
        return _TimedTurn(_Kind.SAID, named["name"], named["text"])
    is_apart = time[0][0] in "[(<{" or time[0][-1] in "])>}"
    is_apart |= row[: time.start()].rstrip(" ")[-1:] in _SIGNS
    if before and after and is_apart and _is_name(before):
        return _TimedTurn(_Kind.SAID, before, row[time.end() :].lstrip(_SIGNS))
    if (named := _NAMED.fullmatch(row[: time.start()].rstrip())) and not after:
        return _TimedTurn(_Kind.SAID, named["name"], named["text"])
    return None


def _is_name(words: str) -> bool:
    return _NAME.fullmatch(words) is not None and not (words[0].islower() and " " in words)


def _find_said(
    filled: list[Row], turns: dict[int, _TimedTurn], kind: _Kind
) -> Iterator[tuple[int, str, list[Row]]]:
    """Where each turn begins, whose it is, and its rows of words."""
    starts = sorted(turns)
    names = {idx: turns[idx].name for idx in starts}
    first = dict.fromkeys(starts, 1)  # how many rows of a turn hold its name and time
    if kind is _Kind.ALONE:
        above = all(idx and _is_name(filled[idx - 1][1].strip(_SIGNS)) for idx in starts)
        name_at = {idx: idx - 1 if above else idx + 1 for idx in starts if idx + 1 < len(filled)}
        names = {idx: filled[at][1].strip(_SIGNS) for idx, at in name_at.items()}
        if not all(map(_is_name, names.values())):
            return
        starts = [idx - above for idx in names]
        names = {idx - above: name for idx, name in names.items()}
        first = dict.fromkeys(starts, 2)
    for start, end in zip(starts, [*starts[1:], len(filled)], strict=True):
        rows = filled[start + first[start] : end]
        if kind is _Kind.SAID:
            rows = [(filled[start][0], turns[start].text), *rows]
        yield start, names[start], rows


FORMS = (Form("a transcript with times and names", 3.35, _explain, (":",)),)
