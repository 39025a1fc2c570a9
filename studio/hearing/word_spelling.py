"""The words of a text, and the ways in which each may be written out."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import regex

from studio.dialog.spoken import Spoken, say
from studio.dialog.tags import strip_tags

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
    for first, last in strip_tags(text):
        for match in _WORD.finditer(text, first, last):
            word = match[0]
            is_sign = _SIGN.fullmatch(word) is not None
            found.append(WordUnit(*match.span(), word, _spell(word, language), is_sign))
    return found


def read_written(text: str, language: str, pronounce: Callable[[str], str]) -> list[WordUnit]:
    """The words that are said of a line's text, each with its place in that.

    What has a pronunciation may be said as that says, or as it is written.
    """
    said = say(text, language)
    written = [_place_back(unit, said, text) for unit in read_text(said.text, language)]
    spoken = read_text(say(pronounce(text), language).text, language)
    folded, also_folded = ([unit.spellings for unit in side] for side in (written, spoken))
    if folded == also_folded:
        return written
    matcher = SequenceMatcher(None, folded, also_folded, autojunk=False)
    units: list[WordUnit] = []
    for how, first, last, at, end in matcher.get_opcodes():
        replaced = written[first:last]
        if how == "equal":
            units += replaced
        elif how == "delete":
            units += [replace(one, is_optional=True) for one in replaced]
        elif replaced:
            instead = " ".join(one.spellings[0] for one in spoken[at:end])
            also = " ".join(one.spellings[0] for one in replaced)
            start, stop = replaced[0].start, replaced[-1].end
            units.append(WordUnit(start, stop, text[start:stop], (instead, also)))
    return units


def _place_back(unit: WordUnit, said: Spoken, text: str) -> WordUnit:
    start, end = said.find_written(unit.start, unit.end)
    return replace(unit, start=start, end=end, text=text[start:end])


def has_words(text: str) -> bool:
    """Whether text has words to compare, besides tags, signs and emoji."""
    return any(not unit.is_optional for unit in read_text(text, ""))
