"""What has no other form: names before the words, `Name: text`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from studio.dialog.markup import Row
from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.lexer import Source
from studio.dialog.reading.script_rows import read_script_rows


def explain_rows(source: Source, rows: list[Row], explained: int) -> Explanation:
    """The explanation of a form that has written its rows as a script has them."""
    shown = replace(source.shown, rows=rows)
    read = partial(read_script_rows, source, shown)
    return Explanation(read, explained, source.shown.filled)


def _explain(source: Source) -> Explanation:
    return explain_rows(source, source.shown.rows, source.counted.total())


FORMS = (Form("a script", 0.5, _explain),)
