"""The words of a text, and the ways in which each may be written out."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import regex

from studio.dialog.tags import strip_tags

_WORD = regex.compile(
    r"[$€£¥]?\p{N}[\p{N}.,:/]*\p{N}(?:\p{L}+|\s?[%‰€])?"  # 1,999.99 18:45 $20 35 % 1980s
    r"|[$€£¥]?\p{N}(?:\p{L}+|\s?[%‰€])?"
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


# English short forms, both as they are said. What stands for several words is said as those, too.
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
    "vs": ("versus",),
    "&": ("and",),
    "%": ("per cent",),
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
_CURRENCIES = {"$": "dollars", "€": "euros", "£": "pounds", "¥": "yen"}


def _spell(word: str, language: str) -> tuple[str, ...]:
    """The ways in which a word may be written out."""
    folded = unicodedata.normalize("NFKC", word).casefold().translate(_APOSTROPHES).strip("'")
    found = [folded]
    if language.startswith("en"):
        found += _SHORT.get(folded, ())
        for ending, whole in _ENDINGS.items():
            if folded.endswith(ending) and folded not in _SHORT:
                found += [folded.removesuffix(ending) + one for one in whole]
    if any(char.isdigit() for char in folded):
        found += _spell_number(folded)
    return tuple(dict.fromkeys(found))


_APOSTROPHES = str.maketrans(dict.fromkeys("’ʼ‘＇", "'"))
_NUMBER = regex.compile(r"([$€£¥]?)([\p{N}.,:/]+)\s?([%‰€]?)(\p{L}*)")


def _spell_number(word: str) -> Iterator[str]:
    """How people say a number otherwise than eSpeak NG reads it: years, times, sums, digits."""
    match = _NUMBER.fullmatch(word)
    if match is None:
        return
    sign, digits, mark, ending = match.groups()
    plain = digits.replace(",", "")
    if currency := _CURRENCIES.get(sign or mark):
        whole, _, cents = plain.partition(".")
        yield f"{whole} {currency} {cents}".strip()
        yield f"{whole} {currency} and {cents} cents" if cents else plain
    if mark == "%":
        yield f"{plain} percent"
    if plain.isdigit() and len(plain) == 4:
        yield f"{plain[:2]} {plain[2:]}{ending}"  # nineteen eighty-four
        yield f"{plain[0]},{plain[1:]}{ending}"  # one thousand nine hundred and eighty-four
    if not plain.isdigit():
        yield " ".join(regex.split(r"[.,:/]", plain))  # eighteen forty-five
    yield " ".join(char for char in plain if char.isdigit())


def read_text(text: str, language: str) -> list[WordUnit]:
    """The words of text outside of tags; a language, by BCP-47 code, has short forms of its own."""
    found = []
    for first, last in strip_tags(text):
        for match in _WORD.finditer(text, first, last):
            word = match[0]
            is_sign = _SIGN.fullmatch(word) is not None
            found.append(WordUnit(*match.span(), word, _spell(word, language), is_sign))
    return found


def read_written(text: str, language: str, pronounce: Callable[[str], str]) -> list[WordUnit]:
    """The words of a line's text; what has a pronunciation may be said as that says, too."""
    written, spoken_text = read_text(text, language), pronounce(text)
    if spoken_text == text:
        return written
    spoken = read_text(spoken_text, language)
    matcher = SequenceMatcher(
        None, [one.spellings for one in written], [one.spellings for one in spoken], autojunk=False
    )
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


def has_words(text: str) -> bool:
    """Whether text has words to compare, besides tags, signs and emoji."""
    return any(not unit.is_optional for unit in read_text(text, ""))
