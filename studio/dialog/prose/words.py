"""The words by which a language says who speaks, and the patterns that they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain

import regex

TITLE = (
    r"(?:(?:Mrs?|MRS?|Ms|Dr|DR|Capt|Mme|Mlle|M)\.?|Miss|MISS|Doctor|Sir|SIR|Lady|LADY|Lord|Captain|Colonel"
    r"|Major|Aunt|Uncle|Father|Mother|Sister|Brother|Master|Madame?|Mademoiselle|Monsieur|Herr|Frau|Fräulein"
    r"|[Dd]on|Doña|Señora?|Señorita|Signora?|Signor|Dona|Dom|Pan|Pani|King|Queen|Prince|Princess|Count"
    r"|Countess|Professor|Judge|Inspector|Sergeant)"
)
_SPACE = r"(?:[^\S\n]+\n?|\n)[^\S\n]*"  # not the end of a paragraph
_CAPITAL = r"\p{Lu}(?:(?:[’'-]?\p{L})+|\.)"
_OF = rf"(?:(?:de|du|von|van|la|der|del|di|da){_SPACE})*"
NAME = rf"(?:{TITLE}{_SPACE}{_OF})?{_CAPITAL}(?:{_SPACE}{_OF}{_CAPITAL}){{0,3}}"
_WORD = regex.compile(r"\p{L}+(?:['’-]\p{L}+)*")
_SAMPLE_CHARS = 200_000
_WIDE = ("ja", "zh")
_MANNERS = "[冷微苦大忙又便只连也听了就才一轻低急]"


@dataclass(frozen=True, slots=True)
class SayingWords:
    """The words of a language.

    Attributes:
        language: Its code.
        verbs: Of saying.
        persons: “man”, “woman” or “I” by pronoun.
        nobody: What is no name.
        tags: What finds who speaks beside words that are said, in a group `name`.
        inside: Finds a tag among words that are said, where no mark ends them.
    """

    language: str
    verbs: frozenset[str]
    persons: Mapping[str, str]
    nobody: frozenset[str]
    tags: Mapping[str, regex.Pattern[str]]
    inside: regex.Pattern[str]

    def says(self, text: str) -> bool:
        """Whether a verb of saying is among a few words; in Chinese, ends one of them."""
        found = map(str.casefold, _WORD.findall(text))
        ends = tuple(self.verbs) if self.language in _WIDE else ()
        return any(one in self.verbs or one.endswith(ends) for one in found)


@cache
def _read_lists() -> Mapping[str, list[list[str]]]:
    """The columns of the table by language."""
    rows = files(__package__).joinpath("words.txt").read_text("utf-8").splitlines()
    cells = ([cell.split() for cell in row.split("|")] for row in rows if "|" in row)
    return {language[0]: lists for language, *lists in cells}


def find_words(text: str, language: str | None = None) -> SayingWords:
    """The words of a language; if it isn't known, of that of which a text has most."""
    sample, known = text[:_SAMPLE_CHARS], (language or "").partition("-")[0]
    if known in _read_lists():
        return _words_of(known)
    if regex.search(r"\p{Hiragana}{2}", sample):
        return _words_of("ja")
    if regex.search(r"\p{Han}{4}", sample):
        return _words_of("zh")
    counted = Counter(map(str.casefold, _WORD.findall(sample)))
    found = {
        one: sum(counted[word] for word in {*chain.from_iterable(lists)})
        for one, lists in _read_lists().items()
    }
    return _words_of(max(found, key=lambda one: found[one]))


def _any(words: Iterable[str]) -> str:
    longest = sorted(map(regex.escape, words), key=len, reverse=True)
    return "|".join(longest).replace("_", r"\s+") or "(?!)"  # went_on


@cache
def _words_of(language: str) -> SayingWords:
    verbs, he, she, tells, before, until = _read_lists()[language]
    persons = dict.fromkeys(he, "man") | dict.fromkeys(she, "woman") | dict.fromkeys(tells, "I")
    said, who, around = _any(verbs), _any(persons), {*before, *until}
    is_wide = language in _WIDE
    tags = _tags_of_han(said, who) if is_wide else _tags(said, who, before, until)
    turned = rf"{tags['name']}\s+(?:{said})\b".replace("?P<name>", "")
    tag = rf"{tags['verb']}{tags['name']}" + (f"|{turned}" if language == "en" else "")
    inside = (
        rf"(?<=[\s\p{{P}}\p{{L}}])[—–―-](?=\s?(?:\p{{L}}+\s){{0,3}}(?:{said})\b)[^—–―]*"
        rf"|(?<=[,.!?…;]\s+)(?:{tag})[^.,;:!?…—–]*[.,;:!?…]*\s*"
    )
    return SayingWords(
        language, frozenset(verbs), persons, frozenset({*around, *verbs}) - persons.keys(),
        {sign: regex.compile(one, regex.IGNORECASE) for sign, one in tags.items()},
        regex.compile(inside, regex.IGNORECASE),
    )  # fmt: skip


def _tags(said: str, who: str, before: list[str], until: list[str]) -> dict[str, str]:
    manner = r"\p{L}+ly" if before else r"\p{L}+[oо]"
    noun = (
        rf"(?:(?!(?:{_any([*before, *until])}|{who}|{said}|{manner})\b)\p{{L}}+(?:[’'-]\p{{L}}+)*)"
    )
    nouns = (
        rf"(?:{_any(before)})\s+{noun}(?:\s+{noun}){{0,3}}"
        if before
        else rf"(?-i:(?=\p{{Ll}})){noun}"
    )
    around = rf"(?:{_any([*before, *until])}|{who})\b"
    kind = rf"(?:(?!{around})(?-i:\p{{Ll}}+)\s+(?-i:(?=\p{{Lu}})))?"  # old Mr. Todd
    proper = rf"{kind}(?P<name>(?-i:{NAME})|(?:{who})\b"
    named = rf"{proper}|{nouns})"
    verb = rf"(?:{said})(?:-t)?(?:\s+\p{{L}}+ly)?[\s-]+"
    aside = r"(?:\s+(?:\p{L}+ly|then|had|only|just|once|now|again|at\s+last|half)){0,2}"
    other = rf"(?!{around})(?-i:\p{{Ll}}+)(?:\s+(?:on|in|out|up))?"
    return {
        "name": named,
        "verb": verb,
        "after verb": rf"[\s,;:.—–―-]*(?:and\s+)?{verb}{named}",
        "after name": rf"[\s,;:.—–―-]*{named}{aside}\s+(?:{said})\b(?!\s+that\b)",
        "after any verb": rf"[\s,—–]*{other}\s+(?P<name>(?-i:{NAME}))",
        "after comma": rf"\s*{proper})\s+(?-i:\p{{Ll}})",
        "before name": rf"(?<!\p{{L}}){named}{aside}\s+(?:{said})\b[^.!?]{{0,80}}[,:—–-]?\s*$",
        "before verb": rf"(?<!\p{{L}})(?:{said})\s+{named}[^.!?]{{0,40}}[,:—–-]\s*$",
        "action": rf"[\s,;.]*{named}",
    }


def _tags_of_han(said: str, who: str) -> dict[str, str]:
    """For Chinese and Japanese, without spaces: a name ends at a verb, a manner, は or が."""
    before = (
        rf"(?P<name>{who}|\p{{Han}}{{2,4}}?){_MANNERS}{{0,3}}(?:{said})[^。]{{0,6}}[：:，,]\s*$"
    )
    after = rf"(?:[はが][^。「]{{0,16}}?|{_MANNERS}{{0,3}})(?:{said})"
    return {
        "name": "(?!)",
        "verb": "(?!)",
        "before name": rf"(?:^|[^\p{{Han}}]){before}",
        "after name": rf"[とて]?、?(?P<name>{who}|[\p{{Han}}\p{{Katakana}}ー]{{2,8}}?){after}",
        "action": "(?!)",
    }
