"""Turns that tags begin: `[S1] … [S2] …`, `[alice] … [/alice]`, `<Person1> …`, `【花子】…`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import regex

from studio.dialog.directions import is_direction, tells_action
from studio.dialog.markup import Row
from studio.dialog.model import MAX_SPEAKERS, name_key
from studio.dialog.reading.form import Explanation, Form
from studio.dialog.reading.forms.colon_names import explain_rows
from studio.dialog.reading.lexer import Source
from studio.dialog.reading_limits import Budget, Cost
from studio.dialog.tags import SOUND_TAGS, sound_name

_ALIAS = regex.compile(r"<sub\s+alias\s*=\s*[\"'](?P<alias>[^\"'<>]*)[\"']\s*>[^<>]*</sub>")
_SSML = regex.compile(r"</?(?:emphasis|prosody|say-as|lang|sub|phoneme|mark|speak|p|s)\b[^<>]*>")
_CUES = ("sfx", "fx", "music", "sound", "pause", "beat", "overlap", "intro", "outro")
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
        Budget().spend(Cost.LINES, max(0, len(written) - len(rows)))
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


_NAMED = regex.compile(r"\[(?P<name>\p{L}[\p{L}\p{N} .'’_-]{0,40})\](?![(:\[])")
_FEWEST_NAMES = 2


def _explain_named(source: Source) -> Explanation | None:
    """`[Alice] … [Bob] …` in one row, where their names begin rows so, or return."""
    rows = source.rows
    found = [(idx, tag) for idx, (_, row) in enumerate(rows) for tag in _NAMED.finditer(row)]
    tags = [(idx, tag) for idx, tag in found if not _is_performed(tag["name"])]
    first = {name_key(tag["name"]) for _, tag in tags if tag.start() == 0}
    names = Counter(name_key(tag["name"]) for _, tag in tags)
    if not first or source.counted.total() > sum(row.startswith("[") for _, row in rows):
        first = {name for name, count in names.items() if count > 1}
        if source.counted or len(names) < _FEWEST_NAMES or first != set(names):
            return None
    if len(first) < _FEWEST_NAMES and not (len(names) >= _FEWEST_NAMES and len(rows) < 3):
        return None
    known = first if len(first) >= _FEWEST_NAMES else set(names)
    inner = sum(name_key(tag["name"]) in known and tag.start() > 0 for _, tag in tags)
    if not inner:
        return None
    either = "|".join(regex.escape(name) for name in sorted(known))
    split = regex.compile(rf"(?i:\[(?P<close>)(?P<name>{either})\])")
    written = [part for row in rows for part in _split(row, split)]
    Budget().spend(Cost.LINES, max(0, len(written) - len(rows)))
    return explain_rows(source, written, sum(row != "" for _, row in rows))


_LENTICULAR = regex.compile(r"【(?P<name>[^【】:：|]{1,30})】[ \u3000]*(?P<text>\S.*)")


def _explain_lenticular(source: Source) -> Explanation | None:
    """`【花子】…`, as Japanese and Chinese scripts have it, where a name returns."""
    found = [(row, _LENTICULAR.fullmatch(row[1])) for row in source.rows]
    names = Counter(name_key(tag["name"]) for _, tag in found if tag)
    if not names or names.total() == len(names):
        return None
    written = [
        (row[0], f"[{tag['name'].strip()}] {tag['text']}") if tag else row for row, tag in found
    ]
    return explain_rows(source, written, names.total())


def _is_performed(inside: str) -> bool:
    is_cue = inside.casefold().startswith(_CUES)
    return (
        sound_name(inside) in SOUND_TAGS or is_direction(inside) or tells_action(inside) or is_cue
    )


FORMS = (
    Form("rows of several turns", 1.55, _explain_named, ("[",)),
    Form("names in brackets", 1.6, _explain_lenticular, ("【",)),
    Form("turns between tags", 1.6, _explain, ("[", "<")),
)
