"""An interview with its questions in bold, and nobody's name."""

from __future__ import annotations

import regex

from studio.dialog.markup import Row, strip_markup
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.form import Explanation, Form, Read
from studio.dialog.reading.lexer import Names, Source, show
from studio.dialog.reading.script_rows import read_script_rows
from studio.dialog.reading_limits import Budget

_FEWEST = 2
_ASKED = regex.compile(r"\*\*(?P<question>[^*]+[?？])\s*\*\*(?P<answer>.*)")
_INTERVIEWER, _GUEST = "Interviewer", "Guest"
_NOTICE = (
    "Questions in bold go to “Interviewer”, and what follows them to “Guest”. Change it where that "
    "is wrong."
)


def _explain(source: Source) -> Explanation | None:
    """Two questions or more, nothing else in bold, and nobody has a name twice."""
    rows = source.rows
    bold = sum(row.startswith("**") for _, row in rows)
    asked = {number: found for number, row in rows if (found := _ASKED.fullmatch(row))}
    others = [row for number, row in rows if row and number not in asked]
    names = [name for row in others if (name := source.names.or_cue(row))]
    if len(asked) < max(_FEWEST, bold) or len(names) > len(set(names)):
        return None

    def read(remarks: ImportNotices) -> Read:
        for number in asked:
            remarks.add(_NOTICE, number)
        return read_script_rows(source, show(_write(rows, asked, source.names), Budget()), remarks)

    return Explanation(read, 2 * len(asked), sum(row != "" for _, row in rows))


def _write(rows: list[Row], asked: dict[int, regex.Match[str]], names: Names) -> list[Row]:
    written: list[Row] = []
    is_answer = False
    for number, row in rows:
        if found := asked.get(number):
            written.append((number, f"[{_INTERVIEWER}] {found['question']}"))
            is_answer, row = True, found["answer"].strip()
            if not row:
                continue
        if row and is_answer and not row.startswith("#"):
            row, is_answer = f"[{_GUEST}] {row}", False
        elif row and names.or_cue(row):
            row = "\\" + strip_markup(row)  # “One thing: the cat.” is said, too
        written.append((number, row))
    return written


FORMS = (Form("an interview", 2.5, _explain, ("**",)),)
