"""A script in what a language model answers: below its thoughts, or in a block of code."""

from __future__ import annotations

from collections import Counter
from functools import partial

import regex

from studio.dialog.markup import spend_marks, strip_markup
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.form import Explanation, Form, Read, read_source
from studio.dialog.reading.lexer import Names, Source
from studio.dialog.reading.row_kinds import PREFACE_NOTICE
from studio.dialog.reading_limits import PATTERN_S, Budget

_THOUGHT = regex.compile(
    r"\A\s*<(?P<tag>think|thinking|thought)>.*?</(?P=tag)>", regex.DOTALL | regex.IGNORECASE
)
_FENCE = regex.compile(r"\s*(?P<mark>`{3,}|~{3,})[^`]*")
_DATA = ("[", "{")


def _explain_thought(source: Source) -> Explanation | None:
    thought = _THOUGHT.match(source.text, timeout=PATTERN_S)
    count = len(thought[0].splitlines()) if thought else 0
    return Explanation(partial(_read_without, source, set(range(count)), set())) if count else None


def _explain_block(source: Source) -> Explanation | None:
    """One block of code, with a model's words around it, or nothing."""
    rows = source.text.splitlines()
    marks = [idx for idx, row in enumerate(rows) if _FENCE.fullmatch(row)]
    if len(marks) != 2:
        return None
    spend_marks(rows, Budget())
    start, end = marks
    inside, around = rows[start + 1 : end], [*range(start), *range(end + 1, len(rows))]
    is_data = "".join(inside).lstrip().startswith(_DATA)
    outside = _count_names(source.names, [rows[idx] for idx in around])
    if not any(map(str.strip, inside)) or (
        outside and _is_script(outside, _count_names(source.names, inside), is_data=is_data)
    ):
        return None
    # A heading outside may be the title.
    left = {idx for idx in around if is_data or not rows[idx].lstrip().startswith("#")}
    return Explanation(partial(_read_without, source, left, set(marks)))


def _is_script(outside: Counter[str], inside: Counter[str], *, is_data: bool) -> bool:
    """Whether those named outside of a block speak there, and not only in it."""
    if not (inside or is_data):
        return True
    return any(count > 1 or name in inside for name, count in outside.items())


def _count_names(names: Names, rows: list[str]) -> Counter[str]:
    plain = [strip_markup(row.strip()) for row in rows]
    return Counter(name for row in plain if names.speaks(row) and (name := names.of(row)))


def _read_without(source: Source, left: set[int], marks: set[int], remarks: ImportNotices) -> Read:
    """Read the other rows, with the same numbers; those that are left are notes."""
    rows = source.text.splitlines()
    for idx in left:
        if row := rows[idx].strip():
            remarks.set_aside(PREFACE_NOTICE, idx + 1, row)
    kept = ("" if idx in left or idx in marks else row for idx, row in enumerate(rows))
    return read_source(source.of("\n".join(kept)), remarks)


FORMS = (
    Form("a model's answer", 4.5, _explain_thought, ("<think", "<thought")),
    Form("a model's block of code", 4.4, _explain_block, ("```", "~~~")),
)
