"""Names behind the words of every row: `“How long?” – Mira`."""

from __future__ import annotations

from collections import Counter

import regex

from studio.dialog.model import name_key
from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source

_FEWEST_NAMES = 2
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


FORMS = (Form("quotations with a name behind each", 2.1, _explain_behind, tuple(_OPENING_QUOTES)),)
