"""A court's transcript: `Q.` and `A.`, with or without the numbers of rows."""

from __future__ import annotations

import regex

from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source

_ROW_NUMBER = r"(?:\d{1,2}\s+)?"
_SAID = regex.compile(
    rf"{_ROW_NUMBER}(?P<who>[QA])(?:\.(?:\s\.(?!\.))*\s*|\s{{2,}}|(?<=\d\s+[QA])\s)(?P<said>\S.*)"
)
_EXAMINER = regex.compile(rf"{_ROW_NUMBER}(?P<by>BY (?:MR|MRS|MS|DR)\. \p{{Lu}}[^:]*):?")
_BEGINS = frozenset("QA0123456789")
_FEWEST = 2
"""Questions, and answers."""


def _explain(source: Source) -> Explanation | None:
    rows = source.shown.rows
    found = [_SAID.match(row) for _, row in rows if row[:1] in _BEGINS]
    whose = [one["who"] for one in found if one]
    if min(whose.count("Q"), whose.count("A")) < _FEWEST:
        return None
    is_numbered = all(row[0].isdigit() for _, row in rows if row)
    written = [(number, _write(row, is_numbered=is_numbered)) for number, row in rows]
    return explain_rows(source, written, len(whose))


def _write(row: str, *, is_numbered: bool) -> str:
    if found := _SAID.fullmatch(row):
        return f"{found['who']}: {found['said']}"
    if found := _EXAMINER.fullmatch(row):
        return f"#> {found['by']}"
    return row.lstrip("0123456789").lstrip() if is_numbered else row


FORMS = (Form("a court's transcript", 2.3, _explain),)
