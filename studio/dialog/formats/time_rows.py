"""Takes the times out of a script or a transcript that has them beside its rows."""

from __future__ import annotations

import regex

from studio.dialog.formats.building import ImportNotices
from studio.dialog.formats.row_kinds import is_titled
from studio.dialog.markup import Row

_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?"
_ALONE = regex.compile(rf"\s*[\[(]?{_CLOCK}(?:\s*[-–—]\s*{_CLOCK})?[\])]?\s*")
_BEHIND_NAME = regex.compile(
    rf"(?P<name>\s*[^:：\[\]()]{{1,60}}[:：](?:\*\*)?\s*)[\[(]{_CLOCK}[\])]\s+(?=\S)"
)
_BEFORE = regex.compile(
    rf"[\[(]{_CLOCK}[\])]\s*(?:[-–—]\s*)?(?P<rest>[^\s\d(].*)"
    rf"|{_CLOCK}\s*[-–—]\s*(?P<rest>\p{{Lu}}.{{0,80}}[^\s.!?…:,;])"
)
_NAMED = regex.compile(r"\s*[^:：\[\]()]{1,60}[:：](?:\*\*)?\s")
_TIME_BEGINS = frozenset("[(0123456789")
_FEWEST = 2
_LEFT = "The times of a transcript aren't spoken; they are left out."


def cut_times(text: str, remarks: ImportNotices) -> str:
    """Text without times alone on a row, and between names and words: `Ruth: [00:02] Welcome`.

    Unchanged unless there are two, or where it is subtitles. Rows keep their numbers.
    """
    if "-->" in text or not regex.search(r"\d:\d\d", text):
        return text
    rows = text.splitlines()
    alone = [idx for idx, row in enumerate(rows) if _ALONE.fullmatch(row)]
    behind = {idx: found for idx, row in enumerate(rows) if (found := _BEHIND_NAME.match(row))}
    named = sum(_NAMED.match(row) is not None for row in rows)
    if 3 * len(behind) < 2 * named:  # then they belong to what is said
        behind = {}
    if len(alone) + len(behind) < _FEWEST:
        return text
    for idx in alone:
        rows[idx] = ""
    for idx, found in behind.items():
        rows[idx] = found["name"] + rows[idx][found.end() :]
    remarks.add(_LEFT, min([*alone, *behind]) + 1)
    return "\n".join(rows)


def cut_row_times(rows: list[Row], remarks: ImportNotices) -> list[Row]:
    """A script's rows without the times that begin them.

    `[01:23] The weir` is a chapter's heading, and `[01:23] Ruth: Welcome` her line.
    """
    found = {idx: time["rest"] for idx, (_, row) in enumerate(rows) if (time := _time_before(row))}
    if len(found) < _FEWEST and not any(_NAMED.match(row) for _, row in rows):
        return rows
    cut = list(rows)
    for idx, rest in found.items():
        number = rows[idx][0]
        is_headed = is_titled(rest) and not (rest.startswith("#") or _NAMED.match(rest))
        cut[idx] = (number, f"## {rest}" if is_headed else rest)
        remarks.add(_LEFT, number)
    return cut


def _time_before(row: str) -> regex.Match[str] | None:
    return _BEFORE.fullmatch(row) if row[:1] in _TIME_BEGINS else None
