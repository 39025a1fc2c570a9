"""Names beside the words of every row: `“How long?” – Mira`, and `(Mira) How long?`."""

from __future__ import annotations

from collections import Counter

import regex

from studio.dialog.model import name_key
from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source

_FEWEST_NAMES = 2
_BEFORE = regex.compile(r"\((?P<name>\p{Lu}[^()]{0,30})\)\s+(?P<text>\S.*)")
_OPENING_QUOTES = frozenset('"“„«')
_BEHIND = regex.compile(
    r"[\"“„«](?P<text>[^\"“”„«»]+)[\"”“»]\s*[-–—]{1,2}\s*(?P<name>\p{Lu}[\p{L}\p{N} .'’-]{0,40})"
)


def _explain_behind(source: Source) -> Explanation | None:
    """The name may stand on the row below. A collection of quotations has each name once."""
    rows = source.shown.rows
    filled = [idx for idx, (_, row) in enumerate(rows) if row]
    if not filled or rows[filled[0]][1][0] not in _OPENING_QUOTES:
        return None
    joined, idx = list(rows), 0
    names = Counter[str]()
    while idx < len(filled):
        said = _BEHIND.fullmatch(rows[filled[idx]][1])
        below = filled[idx] + 1
        if said is None and below < len(rows):
            said = _BEHIND.fullmatch(f"{rows[filled[idx]][1]} {rows[below][1]}")
            idx += 1
            joined[below] = (rows[below][0], "")
        if said is None:
            return None
        start = below - 1
        joined[start] = (rows[start][0], f"[{said['name']}] {said['text']}")
        names[name_key(said["name"])] += 1
        idx += 1
    is_dialog = len(names) >= _FEWEST_NAMES and (max(names.values()) > 1 or len(filled) == 2)
    return explain_rows(source, joined, len(filled)) if is_dialog else None


def _explain_before(source: Source) -> Explanation | None:
    rows = source.shown.rows
    found = {number: _BEFORE.fullmatch(row) for number, row in rows if row}
    names = Counter(one["name"] for one in found.values() if one)
    if not all(found.values()) or len(names) < _FEWEST_NAMES or max(names.values()) < 2:
        return None
    written = [(number, _BEFORE.sub(r"\g<name>: \g<text>", row)) for number, row in rows]
    return explain_rows(source, written, len(found))


FORMS = (
    Form("quotations with a name behind each", 2.1, _explain_behind, tuple(_OPENING_QUOTES)),
    Form("rows that begin with a name in parentheses", 2.0, _explain_before, ("(",)),
)
