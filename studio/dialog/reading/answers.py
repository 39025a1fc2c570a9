"""Finds what a language model says before a script, and behind it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from studio.dialog.reading.lexer import Names
from studio.dialog.reading.row_kinds import (
    PlacedRow,
    acted_words,
    announces,
    is_count,
    is_cue,
    is_farewell,
    is_instruction,
    is_ornament,
    is_preface,
    plain_bold,
)

_MOST_ROWS = 24


def find_answer(
    rows: list[PlacedRow], names: Names, ruled: Collection[int], *, is_answer: bool, is_script: bool
) -> set[int]:
    """The numbers of the rows that are a language model's own.

    “Here is a script:” and “I hope you like it” may be a script's own words. They are taken for the
    model's where another sign of its answer stands: names in bold, a rule between them and the
    script, a preface that announces the names below it, or both a preface and a farewell.

    Args:
        rows: Of the whole text.
        names: Tells who speaks in a row.
        ruled: The numbers of rows beside a rule.
        is_answer: Whether names stand in bold.
        is_script: Whether names with colons speak, which a preface may announce.
    """
    prefaces = list(_list_prefaces(rows, names, is_script=is_script))
    farewell = _list_farewell(rows, names)
    if is_script:
        is_answer |= bool(prefaces and farewell) or any(announces(row.text) for row in prefaces)
        is_answer |= any(is_count(row.text) for row in farewell)
    found: set[int] = set()
    if is_answer or any(row.number in ruled for row in prefaces):
        found.update(row.number for row in prefaces)
    if is_answer or any(row.number in ruled for row in farewell[:1]):
        found.update(row.number for row in farewell)
    return found


def _list_prefaces(rows: list[PlacedRow], names: Names, *, is_script: bool) -> Iterator[PlacedRow]:
    """What a language model may say above the first line, without marks."""
    for row in rows[:_MOST_ROWS]:
        text = acted_words(row.text) or row.text
        if text and names.speaks(text) and not is_instruction(text):
            return
        if (row.begins or row.ends or text != row.text) and is_preface(text):
            yield row._replace(text=text)
        elif not is_script and text and not is_ornament(text):
            return


def _list_farewell(rows: list[PlacedRow], names: Names) -> list[PlacedRow]:
    """The rows from which on a language model may offer what else it can do."""
    found = last = len(rows)
    for idx in range(last - 1, max(0, last - _MOST_ROWS) - 1, -1):
        row = rows[idx]
        text = acted_words(row.text) or plain_bold(row.text)
        if row.begins and text and is_farewell(text):
            found = idx
        elif text and (names.of(text) is not None or is_cue(text)):
            break
    return [row for row in rows[found:] if row.text and not is_ornament(row.text)]
