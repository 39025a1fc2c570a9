"""Text as a voice says it: numbers, money, dates, units, abbreviations and addresses as words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import regex

from studio.dialog.spoken.languages import WordLanguage, find_language, read_table
from studio.dialog.spoken.readers import Reader, list_rules, make_pattern
from studio.dialog.tags import hide_tags
from studio.dialog.text_view import TextView, ViewBuilder

_TAGS_LAST = 5  # rules for markup, some of which looks like tags, come before tags are hidden
_LONG_CHARS = 1_000
_TAKEN = "\ue000"  # stands in what rules see for what is said already, and for tags
_DIGITS = regex.compile(r"\d{1000,}")  # no number that anybody would listen to


def tell_language(text: str) -> str | None:
    """The language of a text by its most common words; None if those don't tell."""
    found = set(regex.findall(r"[\p{L}'’]+", text[:1_000].casefold()))
    known: dict[str, str] = read_table("tables")["common"]
    counts = {code: len(found.intersection(words.split())) for code, words in known.items()}
    best, second = sorted(counts.values(), reverse=True)[:2]
    return max(counts, key=lambda one: counts[one]) if best > second else None


def say(text: str, language: str | None) -> TextView:
    """Say a text in words; in time that is linear in it.

    Args:
        text: One paragraph. Its tags and pauses are left alone.
        language: Its BCP-47 code; text in one that isn't known, or in none, stays as it is.
    """
    return (_remember if len(text) < _LONG_CHARS else _remember_last)(text, language)


def _say(text: str, language: str | None) -> TextView:
    known = find_language(language)
    quick = make_pattern(known, read_table("rules")["quick"]) if known else None
    if known is None or quick is None or quick.search(text) is None:
        return TextView(text)
    return _put_together(text, sorted(_find(text, known)))


_remember = lru_cache(maxsize=40_000)(_say)  # for each line of a project it is asked often
_remember_last = lru_cache(maxsize=4)(_say)  # a check asks some times about the line it is at


def _find(text: str, language: WordLanguage) -> Iterator[tuple[int, int, str]]:
    """What is said otherwise: start, end, words; no two overlap."""
    ends = language.words.get("ends", read_table("rules")["ends"])
    left = _DIGITS.sub(lambda one: _TAKEN * len(one[0]), text)
    for number, (pattern, template, may_end) in enumerate(list_rules(language)):
        if number == _TAGS_LAST:
            left = hide_tags(left, _TAKEN)
        kept, at = [], 0
        for match in pattern.finditer(left):
            start, end = match.span()
            words = Reader(language, match).say(template) if _TAKEN not in match[0] else None
            if words is not None and start < end:
                if not start and text[0].isupper():
                    words = words[:1].upper() + words[1:]
                kept += [left[at:start], _TAKEN * (end - start)]
                at = end
                is_end = may_end and match[0].endswith(".") and regex.match(ends, left, pos=end)
                yield start, end, f"{words}." if is_end else words
        if at:
            left = "".join((*kept, left[at:]))


def _put_together(text: str, said: list[tuple[int, int, str]]) -> TextView:
    view = ViewBuilder()
    for start, end, words in [*said, (len(text), len(text), "")]:
        start = max(start, view.at)
        kept = text[view.at : start]
        if kept and view.places and _is_seam(view.parts, kept):
            view.put(" ", 0)
        view.keep(TextView(kept), len(kept))
        if not words.strip():  # what is left out leaves no second space behind
            is_apart = not view.parts or view.parts[-1][-1].isspace()
            words = "" if is_apart else words
            while is_apart and end < len(text) and text[end].isspace():
                end += 1
        elif _is_seam(view.parts, words):
            words = f" {words}"
        if start < end:
            view.put(words, end - start)
    return view.finish()


def _is_seam(out: list[str], words: str) -> bool:
    """Whether words would run into the one before them, where words are parted by spaces."""
    return bool(out) and all(one.isalnum() and one < "\u2e80" for one in (out[-1][-1], words[0]))
