"""Takes the times out of a transcript that has them beside names and words, not as subtitles."""

from __future__ import annotations

import regex

from studio.dialog.formats.building import ImportNotices

_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?"
_ALONE = regex.compile(rf"\s*[\[(]?{_CLOCK}(?:\s*[-–—]\s*{_CLOCK})?[\])]?\s*")
_BEHIND_NAME = regex.compile(
    rf"(?P<name>\s*[^:：\[\]()]{{1,60}}[:：](?:\*\*)?\s*)[\[(]{_CLOCK}[\])]\s+(?=\S)"
)
_NAMED = regex.compile(r"\s*[^:：\[\]()]{1,60}[:：](?:\*\*)?\s")
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
