"""Takes the times out of a script or a transcript that has them beside its rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import regex

from studio.dialog.markup import Row
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.row_kinds import is_titled

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
LEFT = "The times of a transcript aren't spoken; they are left out."
_KEPT = "Times that nobody says stand between the lines:"


def cut_times(text: str, remarks: ImportNotices) -> str:
    """Text without times alone on a row, and between names and words: `Ruth: [00:02] Welcome`.

    Unchanged unless there are two, or where it is subtitles. Rows keep their numbers; times alone
    are notes.
    """
    if "-->" in text or not regex.search(r"\d:\d\d", text):
        return text
    rows = text.splitlines()
    alone = [idx for idx, row in enumerate(rows) if _ALONE.fullmatch(row)]
    if len(alone) < _FEWEST or not _times_turns(rows, alone):
        alone = []
    behind = {idx: found for idx, row in enumerate(rows) if (found := _BEHIND_NAME.match(row))}
    named = sum(_NAMED.match(row) is not None for row in rows)
    if len(behind) < _FEWEST or 3 * len(behind) < 2 * named:  # then they belong to what is said
        behind = {}
    for idx in alone:
        remarks.set_aside(_KEPT, idx + 1, rows[idx].strip())
        rows[idx] = ""
    for idx, found in behind.items():
        remarks.add(LEFT, idx + 1)
        rows[idx] = found["name"] + rows[idx][found.end() :]
    return "\n".join(rows)


def _times_turns(rows: list[str], alone: list[int]) -> bool:
    """Whether times alone on their rows are those of turns, and not what somebody says.

    They count up, and the first stands above all words but a title and a name.
    """
    above = [row for row in map(str.strip, rows[: alone[0]]) if row]
    times = [list(map(float, regex.findall(r"\d+", rows[idx]))) for idx in alone]
    if not all(len(before) != len(after) or before <= after for before, after in pairwise(times)):
        return False
    is_lead = all(is_titled(row) or row.startswith("#") for row in above)
    is_named = not above or not rows[alone[0] - 1].strip() or above[-1].istitle()
    return is_lead and is_named and not any(map(_NAMED.match, above))


def cut_row_times(rows: list[Row], remarks: ImportNotices) -> list[Row]:
    """A script's rows without the times that begin them.

    `[01:23] The weir` is a chapter's heading, and `[01:23] Ruth: Welcome` her line.
    """
    found = {idx: time["rest"] for idx, (_, row) in enumerate(rows) if (time := _time_before(row))}
    if len(found) < _FEWEST and not any(_NAMED.match(row) for _, row in rows):
        return rows
    cut = list(rows)
    stands_above = any(row and idx not in found for idx, (_, row) in enumerate(rows))
    for idx, rest in found.items():
        number = rows[idx][0]
        is_said = _NAMED.match(rest) is not None
        is_headed = stands_above and is_titled(rest) and not (rest.startswith("#") or is_said)
        cut[idx] = (number, f"## {rest}" if is_headed else rest)
        if is_said:
            remarks.add(LEFT, number)
        else:
            remarks.set_aside(_KEPT, number, rows[idx][1].removesuffix(rest).strip(" -–—"))
    return cut


def _time_before(row: str) -> regex.Match[str] | None:
    return _BEFORE.fullmatch(row) if row[:1] in _TIME_BEGINS else None


_NUMBERED_CUE = regex.compile(r"\(?(?P<number>\d{1,4})[.):]?\s+(?P<row>\S.*)")
_CUE_BEGINS = frozenset("(0123456789")
_FEWEST_COUNTED = 3
_NUMBERS = "The numbers before names and cues aren't spoken; they are left out."


def cut_cue_numbers(
    rows: list[Row], name_of: Callable[[str], str | None], remarks: ImportNotices
) -> list[Row]:
    """Rows without the numbers of a radio script's cues: `4. ARTHUR: …`, or `4 FX: …`.

    Unchanged unless they count names and cues up, as “1 Witch” and “2 Witch” don't.
    """
    numbered = {
        idx: found
        for idx, (_, row) in enumerate(rows)
        if row[:1] in _CUE_BEGINS and (found := _NUMBERED_CUE.fullmatch(row))
    }
    names = {idx: name for idx, found in numbered.items() if (name := name_of(found["row"]))}
    counted = [int(numbered[idx]["number"]) for idx in names]
    if len(counted) < _FEWEST_COUNTED or len(set(names.values())) < _FEWEST:
        return rows
    restarts = sum(after <= before for before, after in pairwise(counted))
    if _FEWEST_COUNTED * restarts >= len(counted) or max(counted) > 2 * len(rows) + counted[0]:
        return rows
    cut = list(rows)
    for idx, found in numbered.items():
        if idx in names or int(found["number"]) in range(counted[0], max(counted) + 2):
            cut[idx] = (rows[idx][0], found["row"])
    first = next(old[0] for new, old in zip(cut, rows, strict=True) if new is not old)
    remarks.add(_NUMBERS, first)
    return cut
