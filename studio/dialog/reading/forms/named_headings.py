"""Headings that are names, each above words: `### Mira`; and so `Speaker 1` alone in a row."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import regex

from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source
from studio.dialog.reading.row_kinds import is_heading

_LABEL = regex.compile(
    r"(?i:speaker|host|guest|voice|person|participant|sprecher(?:in)?|stimme|locuteur|voix|hablante"
    r"|voz|relatore|voce|话者|說話人|说话人|話者)[ _]?\d{1,2}"
)
_FEWEST = 2
_MOST_NAME_WORDS = 5
_NO_WORDS = tuple("#[(*_/\\")


def _explain(source: Source) -> Explanation | None:
    rows = source.shown.rows
    words = [
        row.lstrip("# ") if row.startswith("#") or _LABEL.fullmatch(row) else "" for _, row in rows
    ]
    headings = Counter(one for one in words if one and not is_heading(one))
    if max(headings.values(), default=0) < _FEWEST:
        return None
    filled = [idx for idx, (_, row) in enumerate(rows) if row]
    named = {
        idx: (rows[idx][0], f"[{words[idx].strip('[]:')}]")
        for idx, below in pairwise(filled)
        if words[idx] in headings
        and len(words[idx].split()) <= _MOST_NAME_WORDS
        and not rows[below][1].startswith(_NO_WORDS)
        and source.names.of(rows[below][1]) is None
    }
    if len(named) < headings.total() - 1:  # the title has no words below it
        return None
    return explain_rows(source, [named.get(idx, row) for idx, row in enumerate(rows)], len(named))


_NAME = regex.compile(r"\p{Lu}[\p{L}\p{N}.'’-]*(?:\s\p{Lu}[\p{L}\p{N}.'’-]*){0,2}")


def _explain_blocks(source: Source) -> Explanation | None:
    """Blocks between empty rows, each a name above its words; names that return."""
    rows = source.shown.rows
    above = ("", *(row for _, row in rows))
    first = [idx for idx, (_, row) in enumerate(rows) if row and not above[idx]]
    names = Counter(rows[idx][1] for idx in first)
    if (
        len(names) < _FEWEST
        or max(names.values()) < _FEWEST
        or not all(map(_NAME.fullmatch, names))
    ):
        return None
    if not all(idx + 1 < len(rows) and rows[idx + 1][1] for idx in first):
        return None
    heads = set(first)
    written = [
        (number, f"[{row}]" if idx in heads else row) for idx, (number, row) in enumerate(rows)
    ]
    return explain_rows(source, written, len(first))


FORMS = (
    Form("a script with names as headings", 2.4, _explain, ("#", "1", "2")),
    Form("blocks with names above", 1.45, _explain_blocks, ("\n\n",)),
)
