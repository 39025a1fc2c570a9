"""The words of a text, and the ways in which each may be written out."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import merge

import regex

from studio.dialog.spoken import say
from studio.dialog.tags import hide_tags
from studio.dialog.text_view import TextView

_WORD = regex.compile(
    r"(?:(?<!\S)[-−])?[$€£¥]?\p{N}[\p{N}.,:/]*\p{N}(?:\p{L}+|\s?[%‰€])?"  # 1,999.99 18:45 35 %
    r"|(?:(?<!\S)[-−])?[$€£¥]?\p{N}(?:\p{L}+|\s?[%‰€])?"  # 7 -7 $7 7th
    r"|°[CF]\b"
    r"|[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}]\p{M}*"
    r"|\p{L}[\p{L}\p{M}\p{N}]*(?:['’ʼ.&-]\p{L}[\p{L}\p{M}]*)*['’]?"
    r"|[&@+=%#§©°]|\p{So}\p{M}*"
)
_SIGN = regex.compile(r"[^\p{L}\p{N}]+")


@dataclass(frozen=True, slots=True)
class WordUnit:
    """A word of a text, or of a transcript.

    Attributes:
        spellings: Ways to write what may be said, folded; the usual one first.
        is_optional: Whether it may be left out, as a sign or an emoji may.
    """

    start: int
    end: int
    text: str
    spellings: tuple[str, ...]
    is_optional: bool = False


# English short forms; what is said as several words may be written so, too.
_SHORT = {
    "can't": ("can not", "cannot"),
    "cannot": ("can not",),
    "won't": ("will not",),
    "shan't": ("shall not",),
    "let's": ("let us",),
    "gonna": ("going to",),
    "wanna": ("want to",),
    "gotta": ("got to",),
    "lemme": ("let me",),
    "gimme": ("give me",),
    "'cause": ("because",),
    "'em": ("them",),
    "'til": ("until",),
    "ok": ("okay",),
    "st": ("saint", "street"),
}
_ENDINGS = {
    "n't": (" not",),
    "'re": (" are",),
    "'ve": (" have",),
    "'ll": (" will",),
    "'m": (" am",),
    "'d": (" would", " had"),
    "'s": (" is", " has"),
}


def _spell(word: str, language: str) -> tuple[str, ...]:
    """The ways in which a word may be written out."""
    folded = unicodedata.normalize("NFKC", word).casefold().translate(_FOLDED).strip("'")
    found = [folded]
    if language.startswith("en"):
        found += _SHORT.get(folded) or _spell_endings(folded)
    return tuple(dict.fromkeys(found))


def _spell_endings(folded: str) -> Iterator[str]:
    """English words without their short endings, of which they may have two: they'd've."""
    for ending, whole in _ENDINGS.items():
        if folded.endswith(ending):
            stem = folded.removesuffix(ending)
            yield from (one + end for one in (stem, *_spell_endings(stem)) for end in whole)


_FOLDED = str.maketrans({**dict.fromkeys("’ʼ‘＇", "'"), "⁄": "/", "−": "-"})


def read_text(text: str, language: str) -> list[WordUnit]:
    """The words of text outside of tags, in a language by its BCP-47 code."""
    found = []
    for match in _WORD.finditer(hide_tags(text)):
        word = match[0]
        is_sign = _SIGN.fullmatch(word) is not None
        found.append(WordUnit(*match.span(), word, _spell(word, language), is_sign))
    return found


def read_written(text: str, language: str, pronounce: Callable[[str], TextView]) -> list[WordUnit]:
    """The words that are said of a line's text, each with its place in that.

    What has a pronunciation may be said as that says, or as it is written.
    """
    said = pronounce(text)
    written = _read_view(say(text, language), text, language)
    spoken = _read_view(say(said.text, language).over(said), text, language)
    units: list[WordUnit] = []
    for units_here, units_there in _pair(written, spoken):
        if [one.spellings for one in units_here] == [one.spellings for one in units_there]:
            units += units_here
        elif not units_there:
            units += [replace(one, is_optional=True) for one in units_here]
        elif units_here:
            instead = " ".join(one.spellings[0] for one in units_there)
            also = " ".join(one.spellings[0] for one in units_here)
            start, end = units_here[0].start, units_here[-1].end
            units.append(WordUnit(start, end, text[start:end], (instead, also)))
    return units


def _read_view(said: TextView, text: str, language: str) -> list[WordUnit]:
    """The words that are said of a text, with their places in that."""
    units = []
    for unit in read_text(said.text, language):
        start, end = said.find_source(unit.start, unit.end)
        units.append(replace(unit, start=start, end=end, text=text[start:end]))
    return units


def _pair(
    written: list[WordUnit], spoken: list[WordUnit]
) -> Iterator[tuple[list[WordUnit], list[WordUnit]]]:
    """The words of two readings of a text that stand for the same part of it."""
    both = merge(
        ((unit, 0) for unit in written),
        ((unit, 1) for unit in spoken),
        key=lambda one: one[0].start,
    )
    found: tuple[list[WordUnit], list[WordUnit]] = [], []
    end = 0
    for unit, side in both:
        if unit.start >= end:
            yield found
            found = [], []
        found[side].append(unit)
        end = max(end, unit.end)
    yield found


def has_words(text: str) -> bool:
    """Whether text has words to compare, besides tags, signs and emoji."""
    return any(not unit.is_optional for unit in read_text(text, ""))
