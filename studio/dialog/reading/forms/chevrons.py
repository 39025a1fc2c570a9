"""Captions of broadcasts and of courts' writers: `>>NAME text`, `>> NAME: text`."""

from __future__ import annotations

import regex

from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source

_SAID = regex.compile(
    r">>\s?(?P<name>\p{Lu}[\p{Lu}\d.'’-]+(?:\s[\p{Lu}\d][\p{Lu}\d.'’-]+){0,3}):?\s+(?P<text>\S.*)"
)
_FEWEST = 2


def _explain(source: Source) -> Explanation | None:
    rows = source.shown.rows
    found = {idx: said for idx, (_, row) in enumerate(rows) if (said := _SAID.fullmatch(row))}
    if len(found) < _FEWEST:
        return None
    written = list(rows)
    for idx, said in found.items():
        written[idx] = (rows[idx][0], f"[{said['name']}] {said['text']}")
    return explain_rows(source, written, len(found))


FORMS = (Form("captions with a name behind “>>”", 2.6, _explain, (">>",)),)
