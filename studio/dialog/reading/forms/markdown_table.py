"""A table in Markdown, with headings and a model's remarks around it."""

from __future__ import annotations

import csv
import io
from itertools import takewhile

import regex

from studio.dialog.markup import spend_marks, strip_markup
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.form import Explanation, Form, Read
from studio.dialog.reading.lexer import Names, Source
from studio.dialog.reading.row_kinds import PREFACE_NOTICE, is_farewell, is_preface
from studio.dialog.reading.tables import read_table
from studio.dialog.reading_limits import Budget, Cost

_RULE = regex.compile(r"\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)+\|?\s*")
_DRAWN = regex.compile(r"\+(?:[-=]+\+)+")
_CELLS = regex.compile(r"(?<!\\)\|")
_HOW = frozenset({"note", "notes"})


def _explain(source: Source) -> Explanation | None:
    rows = _draw_rule(source.text.splitlines())
    rule = next((idx for idx, row in enumerate(rows) if _RULE.fullmatch(row)), 0)
    if rule == 0 or "|" not in rows[rule - 1]:
        return None
    spend_marks(rows, Budget())
    below = takewhile(lambda idx: "|" in rows[idx], range(rule + 1, len(rows)))
    inside = {rule - 1, rule, *below}
    bars = sum(rows[idx].count("|") - rows[idx].count("\\|") - 1 for idx in inside)
    source.budget.spend(Cost.CELLS, bars)
    title, left = None, []
    for idx, row in enumerate(map(str.strip, rows)):
        if not row or idx in inside:
            continue
        plain = strip_markup(row.lstrip("# "))
        if _is_said(plain, source.names):
            return None
        if title is None and (row.startswith("#") or row.strip("*") != row):
            title = plain
        elif row.startswith("#") or row.strip("*") != row or is_preface(row) or is_farewell(row):
            left.append((idx + 1, row))
        else:
            return None

    def read(remarks: ImportNotices) -> Read:
        for number, row in left:
            remarks.set_aside(PREFACE_NOTICE, number, row)
        table = _write_tabs(rows, rule, inside, remarks)
        parsed, columns = read_table(table, remarks, fit=source.fit, chosen=source.columns)
        return Read(parsed, title, columns=columns)

    return Explanation(read)


def _draw_rule(rows: list[str]) -> list[str]:
    """A table that is drawn with `+---+` as Markdown has it, in the same rows."""
    drawn = [idx for idx, row in enumerate(rows) if _DRAWN.fullmatch(row.strip())]
    if len(drawn) < 2:
        return rows
    rows = list(rows)
    for idx in drawn:
        rows[idx] = ""
    rows[drawn[1]] = "|---|---|"
    return rows


def _is_said(row: str, names: Names) -> bool:
    """Whether somebody speaks in a row beside the table, which is no script then."""
    return names.speaks(row) and not is_preface(row)


def _write_tabs(rows: list[str], rule: int, inside: set[int], remarks: ImportNotices) -> str:
    written = io.StringIO()
    table = csv.writer(written, delimiter="\t", lineterminator="\n")
    for idx, row in enumerate(rows):
        if idx == rule or idx not in inside:
            written.write("\n")
            continue
        remarks.add_links(row, idx + 1)
        cells = [cell.strip().replace("\\|", "|") for cell in _CELLS.split(row.strip().strip("|"))]
        plain = [strip_markup(regex.sub(r"<br\s*/?>", " ", cell)) for cell in cells]
        if idx == rule - 1:
            plain = ["direction" if cell.casefold() in _HOW else cell for cell in plain]
        table.writerow(plain)
    return written.getvalue()


FORMS = (
    Form(
        "a table",
        3.5,
        _explain,
        ("|--", "| -", "|:-", "--|", "- |", "-+", "=+"),
        "tsv",
        is_file=False,
    ),
)
