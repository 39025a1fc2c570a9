"""Turns that tags begin: `[S1] … [S2] …`, `[alice] … [/alice]`, `<Person1> … </Person1>`."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from studio.dialog.markup import Row
from studio.dialog.model import MAX_SPEAKERS, check_line_count
from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source

_ALIAS = regex.compile(r"<sub\s+alias\s*=\s*[\"'](?P<alias>[^\"'<>]*)[\"']\s*>[^<>]*</sub>")
_SSML = regex.compile(r"</?(?:emphasis|prosody|say-as|lang|sub|phoneme|mark|speak|p|s)\b[^<>]*>")
_NUMBERED = r"\[(?P<name>S\d{1,2})\]"


def _explain(source: Source) -> Explanation | None:
    """Tags that end turns tell which begin them; `[S1]` begins one without an end, too."""
    rows = source.shown.rows
    either = "|".join(map(regex.escape, sorted(source.closed_turns)))
    if len(source.closed_turns) > MAX_SPEAKERS:
        return None
    inside = rf"(?P<close>/?)(?P<name>{either})" if either else "(?!)(?P<close>)"
    tags = regex.compile(rf"(?i:{_NUMBERED})|\[{inside}\]|<{inside}>")
    first = [tag for _, row in rows if (tag := tags.match(row))]
    if not first:
        return None
    begun = sum(not tag["close"] for tag in first)
    written: list[Row] = []
    for row in rows:
        # A row may name `[S1]` in the middle, but none ends a turn that it hasn't begun.
        written += _split(row, tags) if either or tags.match(row[1]) else [row]
        check_line_count(len(written) - len(rows))
    return explain_rows(source, written, begun)


def _split(row: Row, tags: regex.Pattern[str]) -> Iterator[Row]:
    number, text = row
    if "<" in text:  # models are asked for SSML inside of turns
        text = _SSML.sub("", _ALIAS.sub(r"\g<alias>", text))
    begins, end = "", 0
    for tag in tags.finditer(text):
        if words := f"{begins} {text[end : tag.start()].strip()}".strip():
            yield number, words
        begins, end = "" if tag["close"] else f"[{tag['name']}]", tag.end()
    if (words := f"{begins} {text[end:].strip()}".strip()) or not end:
        yield number, words


FORMS = (Form("turns between tags", 1.6, _explain, ("[", "<")),)
