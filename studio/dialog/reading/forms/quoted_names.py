"""Japanese scripts, with the name before words in 「…」; what stands between is action."""

from __future__ import annotations

from collections import Counter

import regex

from studio.dialog.markup import Row
from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source

_SAID = regex.compile(
    r"(?P<name>[^\s「」『』、。，．,.:：（）()“”\"!?！？]{1,12})(?P<how>（[^（）]{1,30}）)?\s?"
    r"(?:「(?P<text>[^「」]+)」|『(?P<text>[^『』]+)』)"
)
_CORNERS = (("「", "」"), ("『", "』"))
_MOST_JOINED_CHARS = 2_000
_NO_SQUARES = str.maketrans("[]", "（）")
_LEAST_SHARE = 1 / 3
"""Names that come again and again, as they don't in a novel."""


def _explain(source: Source) -> Explanation | None:
    rows = _join_quoted(source.shown.rows)
    found = {number: match for number, row in rows if (match := _SAID.fullmatch(row))}
    names = Counter(match["name"] for match in found.values())
    filled = sum(bool(row) for _, row in rows)
    if len(names) < 2 or max(names.values()) < 2 or len(found) < _LEAST_SHARE * filled:
        return None
    written = [(number, _write(row, found.get(number))) for number, row in rows]
    return explain_rows(source, written, len(found))


def _join_quoted(rows: list[Row]) -> list[Row]:
    """Join rows of words in 「…」 that are broken."""
    joined: list[Row] = []
    for number, row in rows:
        last = joined[-1][1] if joined else ""
        is_open = row and any(last.rfind(left) > last.rfind(right) for left, right in _CORNERS)
        if is_open and len(last) < _MOST_JOINED_CHARS:
            joined[-1] = (joined[-1][0], last + row)
        else:
            joined.append((number, row))
    return joined


def _write(row: str, said: regex.Match[str] | None) -> str:
    if said is not None:
        return f"{said['name']}：{said['how'] or ''}{said['text']}"
    if not row or row.startswith(("#", "[", "//")) or "：" in row or ":" in row:
        return row
    if row.startswith(("○", "◯", "●", "■", "□", "◆", "◇")):
        return f"## {row[1:].strip()}"
    return f"[{row.translate(_NO_SQUARES)}]"


FORMS = (Form("a script with words in 「…」", 2.2, _explain, ("「", "『")),)
