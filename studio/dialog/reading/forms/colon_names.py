"""What has no other form: names before the words, `Name: text`; and prose, with hardly any."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from studio.dialog.markup import Row, strip_markup
from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.lexer import Source
from studio.dialog.reading.row_kinds import BROKEN, PlacedRow, is_sound, plain_bold
from studio.dialog.reading.script_rows import RowReader, read_script_rows

_FEW_NAMED = 10
"""In prose at most one paragraph in so many begins with what looks like a name, none twice."""


def explain_rows(source: Source, rows: list[Row], explained: int) -> Explanation:
    """The explanation of a form that has written its rows as a script has them."""
    shown = replace(source.shown, rows=rows)
    read = partial(read_script_rows, source, shown)
    return Explanation(read, explained, source.shown.filled)


def _explain(source: Source) -> Explanation:
    return explain_rows(source, source.shown.rows, source.counted.total())


class _ProseReader(RowReader):
    def read_row(self, row: PlacedRow) -> None:
        self.begin_narrator(row.number)
        self.say("\\" + strip_markup(plain_bold(row.text)), row.number)


def _explain_prose(source: Source) -> Explanation | None:
    shown = source.shown
    names = source.counted
    if shown.has_bold_names or (not names and any(is_sound(row) for _, row in shown.rows)):
        return None
    if names and not _has_few_names(source):
        return None
    return Explanation(
        lambda remarks: _ProseReader(source, shown, source.take(remarks)).read(),
        shown.filled - names.total(),
        shown.filled,
    )


def _has_few_names(source: Source) -> bool:
    """Whether only some paragraphs begin with what looks like a name."""
    rows = source.shown.rows
    names = source.counted
    first = next((row for _, row in rows if row), "")
    if BROKEN in names or source.names.of(first) is not None or max(names.values()) > 1:
        return False
    paragraphs = sum(
        bool(row) and (idx == 0 or not rows[idx - 1][1]) for idx, (_, row) in enumerate(rows)
    )
    is_sentence = first.rstrip("”’\"'")[-1:] in (".", "!", "?")
    return (2 if is_sentence else _FEW_NAMED) * names.total() < paragraphs


FORMS = (Form("a script", 0.5, _explain), Form("prose", 0.5, _explain_prose))
