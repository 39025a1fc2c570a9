"""VOICEVOX's text: `name,words` and `name(style),words` in every row."""

from __future__ import annotations

from collections import Counter

import regex

from studio.dialog.directions import write_direction
from studio.dialog.model import name_key
from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source

_SAID = regex.compile(
    r"(?P<name>[\p{L}\p{N}][\p{L}\p{N}・ー_-]{0,19})(?:[(（](?P<style>[^()（）,]{1,20})[)）])?,(?P<words>\S.*)"
)


def _explain(source: Source) -> Explanation | None:
    """All rows are so, without a space behind the comma, as no sentence has it."""
    rows = source.shown.rows
    found = {number: _SAID.fullmatch(row) for number, row in rows if row}
    names = Counter(name_key(one["name"]) for one in found.values() if one)
    if not found or not all(found.values()) or (len(found) > 2 and max(names.values()) < 2):
        return None
    written = [(number, _write(found.get(number))) for number, _ in rows]
    return explain_rows(source, written, len(found))


def _write(said: regex.Match[str] | None) -> str:
    if said is None:
        return ""
    how = f"{write_direction(said['style'], is_first=True)} " if said["style"] else ""
    return f"[{said['name']}] {how}{said['words']}"


FORMS = (Form("VOICEVOX's text", 2.7, _explain, (",",)),)
