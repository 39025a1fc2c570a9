"""The words of a text, and the ways in which each may be written out."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import regex

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
    "°c": ("degrees celsius", "degrees"),
    "°f": ("degrees fahrenheit", "degrees"),
    "e.g": ("for example",),
    "i.e": ("that is",),
    "km": ("kilometers",),
    "cm": ("centimeters",),
    "mm": ("millimeters",),
    "kg": ("kilograms",),
    "mph": ("miles per hour",),
    "1/2": ("a half", "one half", "and a half"),
    "1/3": ("a third", "one third"),
    "2/3": ("two thirds",),
    "1/4": ("a quarter", "one fourth"),
    "3/4": ("three quarters", "three fourths", "and three quarters"),
}
_SHORT_ELSEWHERE = {
    "de": {"dr": "doktor", "prof": "professor", "nr": "nummer", "st": "sankt",
           "z.b": "zum beispiel", "d.h": "das heißt", "bzw": "beziehungsweise", "ca": "circa"},
    "es": {"dr": "doctor", "dra": "doctora", "sr": "señor", "sra": "señora", "ud": "usted"},
    "fr": {"dr": "docteur", "m": "monsieur", "mm": "messieurs", "mme": "madame",
           "mlle": "mademoiselle"},
}  # fmt: skip
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
_CURRENCIES_ELSEWHERE = {"$": "dollar", "€": "euro", "£": "pfund", "¥": "yen"}


def _spell(word: str, language: str) -> tuple[str, ...]:
    """The ways in which a word may be written out."""
    folded = unicodedata.normalize("NFKC", word).casefold().translate(_FOLDED).strip("'")
    is_english = language.startswith("en")
    found = [folded]
    if is_english:
        found += _SHORT.get(folded, ())
        found += [] if folded in _SHORT else _spell_endings(folded)
    elif folded in (short := _SHORT_ELSEWHERE.get(language[:2], {})):
        found.append(short[folded])
    if any(char.isdigit() for char in folded):
        found += _spell_number(folded, is_english=is_english)
    elif _ROMAN.fullmatch(word):
        found += [str(_read_roman(word)), f"the {_read_roman(word)}th"]
    elif "." in folded:
        found.append(" dot ".join(folded.split(".")))  # an address
    return tuple(dict.fromkeys(found))


def _spell_endings(folded: str) -> Iterator[str]:
    """English words without their short endings, of which they may have two: they'd've."""
    for ending, whole in _ENDINGS.items():
        if folded.endswith(ending):
            stem = folded.removesuffix(ending)
            yield from (one + end for one in (stem, *_spell_endings(stem)) for end in whole)


_ROMAN = regex.compile(r"(?=\p{L}{2})(X{0,3})(IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10}


def _read_roman(numeral: str) -> int:
    values = [_ROMAN_VALUES[char] for char in numeral]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < following else value for value, following in pairs)


_FOLDED = str.maketrans({**dict.fromkeys("’ʼ‘＇", "'"), "⁄": "/", "−": "-"})
_NUMBER = regex.compile(r"-?([$€£¥]?)([\p{N}.,:/]+)\s?([%‰€]?)(\p{L}*)")


def _spell_number(word: str, *, is_english: bool) -> Iterator[str]:
    """How people say a number otherwise than eSpeak NG reads it: years, times, sums, digits."""
    match = _NUMBER.fullmatch(word)
    if match is None:
        return
    sign, digits, mark, ending = match.groups()
    if word.startswith("-"):
        yield f"minus {word[1:]}"
    if not is_english and "," in digits:  # 1.250,50
        digits = digits.replace(".", "").replace(",", ".")
    plain = digits.replace(",", "")
    if is_english and digits.isdigit() and len(digits) <= 2 and not ending:
        yield f"{digits}th"  # of a month
    if currency := (_CURRENCIES if is_english else _CURRENCIES_ELSEWHERE).get(sign or mark):
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
