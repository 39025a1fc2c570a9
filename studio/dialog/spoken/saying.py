"""Says a text in words, and tells which place of what is written each of them comes from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import regex

from studio.dialog.spoken.languages import Language, find_language, read_table
from studio.dialog.spoken.readers import Reader, list_rules, make_quick_look
from studio.dialog.tags import find_tags

_TAGS_LAST = 5
"""Rules for markup, some of which looks like tags, before the tags are taken out of sight."""
_MOST_READ = 1_000
_MOST_DIGITS = 1_000
"""In one run. More of them are no number that anybody would listen to, and stay as they are."""


@dataclass(frozen=True, slots=True)
class Place:
    """Words of a spoken text that stand for other ones: where they are, and where those are."""

    start: int
    end: int
    from_start: int
    from_end: int


@dataclass(frozen=True, slots=True)
class Spoken:
    """What is said of a text.

    Attributes:
        text: The words.
        places: Of those that aren't written so, in order; the rest is as it is written.
    """

    text: str
    places: Sequence[Place] = ()

    def find_written(self, start: int, end: int) -> tuple[int, int]:
        """The place in the written text of a part of the spoken one."""
        return self._go_back(start, is_end=False), self._go_back(end, is_end=True)

    def _go_back(self, at: int, *, is_end: bool) -> int:
        key = at - 1 if is_end else at
        number = bisect_right(self.places, key, key=lambda one: one.start) - 1
        if number < 0:
            return at
        place = self.places[number]
        if key < place.end:
            return place.from_end if is_end else place.from_start
        return at - place.end + place.from_end


def tell_language(text: str) -> str | None:
    """The language of a text by its most common words; None if those don't tell."""
    found = set(regex.findall(r"[\p{L}'’]+", text[:_MOST_READ].casefold()))
    known: dict[str, str] = read_table("tables")["common"]
    counts = {code: len(found.intersection(words.split())) for code, words in known.items()}
    best, second = sorted(counts.values(), reverse=True)[:2]
    return max(counts, key=lambda one: counts[one]) if best > second else None


@lru_cache(maxsize=20_000)
def say(text: str, language: str | None) -> Spoken:
    """Say a text in words; in time that is linear in it.

    Args:
        text: One paragraph. Its tags and pauses are left alone.
        language: Its BCP-47 code; text in one that isn't known, or in none, stays as it is.
    """
    known = find_language(language)
    if known is None or make_quick_look(known).search(text) is None:
        return Spoken(text)
    said = sorted(_find(text, known))
    return _put_together(text, said) if said else Spoken(text)


_Said = tuple[int, int, str]
_TAKEN = "\ue000"
"""Stands in what rules see for what is said already, and for tags."""
_ENDS = regex.compile(r"[”»\"')\]]*(?:$|\s+[\p{P}“«]?\p{Lu})")


def _find(text: str, language: Language) -> Iterator[_Said]:
    """What is said otherwise: start, end, words; no two overlap."""
    left = regex.sub(rf"\d{{{_MOST_DIGITS},}}", lambda one: _TAKEN * len(one[0]), text)
    for number, (pattern, template, may_end) in enumerate(list_rules(language)):
        if number == _TAGS_LAST:
            for start, end in find_tags(left):
                left = left[:start] + _TAKEN * (end - start) + left[end:]
        kept, at = [], 0
        for match in pattern.finditer(left):
            start, end = match.span()
            words = Reader(language, match).say(template) if _TAKEN not in match[0] else None
            if words is not None and start < end:
                kept += [left[at:start], _TAKEN * (end - start)]
                at = end
                is_end = may_end and match[0].endswith(".") and _ENDS.match(left, end)
                yield start, end, f"{words}." if is_end else words
        if at:
            left = "".join((*kept, left[at:]))


def _put_together(text: str, said: list[_Said]) -> Spoken:
    out: list[str] = []
    places: list[Place] = []
    length = at = 0
    for start, end, words in [*said, (len(text), len(text), "")]:
        kept = text[at:start]
        if kept and _is_seam(out, kept):
            out[-1] += " "
            length += 1
            places[-1] = replace(places[-1], end=length)
        out += filter(None, [kept])
        length += len(kept)
        if not words.strip():  # what is left out leaves no second space behind
            is_apart = not out or out[-1][-1].isspace()
            words = "" if is_apart else words
            while is_apart and end < len(text) and text[end].isspace():
                end += 1
        elif _is_seam(out, words):
            words = f" {words}"
        if start < end:
            places.append(Place(length, length + len(words), start, end))
        out += filter(None, [words])
        length, at = length + len(words), end
    return Spoken("".join(out), tuple(places))


def _is_seam(out: list[str], words: str) -> bool:
    """Whether words would run into the one before them, where words are parted by spaces."""
    return bool(out) and _is_spaced(out[-1][-1]) and _is_spaced(words[0])


def _is_spaced(char: str) -> bool:
    return char.isalnum() and char < "\u2e80"
