"""The ways in which a rule says what it has found, such as money, or an ordinal in its case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import regex

from studio.dialog.spoken.languages import Language, read_table

_FIELD = regex.compile(r"\{(\w+)(?::([\w|]+))?\}")
_LETTERS = regex.compile(r"(?i)(.)\1+")


class Reader:
    """Says a match of a rule. A way is a method, a table to look into, or a form of a number."""

    def __init__(self, language: Language, match: regex.Match[str]) -> None:
        self._language, self._match, self._words = language, match, language.words
        self._groups: dict[str, str | None] = match.groupdict()

    def say(self, template: str) -> str | None:
        """What a template says of the match; None if that isn't what the rule took it for."""
        said, end = "", 0
        for one in _FIELD.finditer(template):
            value: str | None = self._groups.get(one[1], self._words.get(one[1])) or ""
            for way in filter(None, (one[2] or "").split("|")):
                value = self._say_in(way, value) if value else value
            if value is None:
                return None
            said += template[end : one.start()] + value
            end = one.end()
        said = regex.sub("  +", " ", said + template[end:])
        said = said if template[:1] == " " else said.lstrip()
        said = said if template[-1:] == " " else said.rstrip()
        return said if self._language.joint else said.replace(" ", "")

    def _say_in(self, way: str, value: str) -> str | None:
        method = getattr(self, f"_{way}", None)
        if method is not None:
            return method(value)  # type: ignore[no-any-return]
        table = self._words.get(way, read_table("tables")["shared"].get(way))
        return table.get(value) if isinstance(table, dict) else self._language.read(value, way)

    # Numbers.

    def _int(self, value: str) -> str:
        return str(int(value.replace(",", "")))

    def _title(self, value: str) -> str:
        return value.capitalize()

    def _digits(self, value: str) -> str:
        return self._language.digits(value)

    def _year(self, value: str) -> str:
        year = int(value) + (0 if len(value) > 2 else 1900 if value >= "50" else 2000)
        return self._language.spell(year, "year")

    def _version(self, value: str) -> str:
        return f" {self._words['points']['.']} ".join(map(self._language.read, value.split(".")))

    def _phone(self, value: str) -> str:
        zero, in_pairs = self._words["zero_digit"], self._words.get("phone_pairs")
        groups = regex.findall(r"\d+", value)
        return ", ".join(
            self._language.spell(int(one))
            if in_pairs and len(one) == 2 and one[0] != "0"
            else self._language.digits(one, zero)
            for one in groups
        )

    def _case(self, value: str) -> str:
        """A German ordinal, by what stands before it and the noun behind it."""
        noun = self._groups.get("noun") or ""
        for form, before, nouns in self._words["cases"]:
            if regex.search(before, self._before) and regex.search(nouns, noun):
                return self._language.spell(int(value), form)
        return self._language.spell(int(value), "ordinal")

    def _number(self, value: str) -> str:
        """A number alone: a year, or in the form that the noun behind it wants."""
        noun = self._noun
        if regex.fullmatch("1[1-9]..|20..", value) and value.isdigit():
            counting = self._words.get("counting", "(?!)")
            if not regex.search(counting, f"{self._before}|{noun}"):
                return self._language.spell(int(value), "year")
        forms = (
            form
            for nouns, form in self._words.get("noun_forms", ())
            if noun and regex.search(nouns, noun)
        )
        return self._language.read(value, next(forms, "count"))

    @property
    def _before(self) -> str:
        return self._match.string[max(0, self._match.start() - 40) : self._match.start()]

    @property
    def _noun(self) -> str:
        """The word behind the match."""
        found = regex.compile(r"\s([\p{L}\p{M}'’]{1,30})").match(
            self._match.string, self._match.end()
        )
        return found[1] if found else ""

    # Money and units.

    def _money(self, value: str) -> str:
        code = read_table("tables")["symbols"][value]
        one, many, gender, coin, coins = self._words["currencies"][code]
        amount, language = self._match["a"], self._language
        whole, _, fraction = language.split(amount)
        joint = language.joint
        if len(fraction) != 2 or self._match["b"] or self._match["mag"]:
            magnitude = self._magnitude(self._match["mag"]) if self._match["mag"] else ""
            said = (self._quantity(amount, gender), magnitude, self._name(one, many))
            return joint.join(filter(None, said))
        large = joint.join((language.spell(int(whole), gender), self._name(one, many, whole)))
        minor, name = int(fraction), coin if int(fraction) == 1 else coins
        if not minor or not name:
            return large
        if not int(whole):
            return joint.join((language.spell(minor, "m"), name))
        pattern = self._words["money_small" if minor < 10 else "money"]
        small = language.spell(minor, "m" if "{coin}" in pattern else "count")
        return str(pattern.format(major=large, minor=small, coin=name))

    def _name(self, one: str, many: str, amount: str | None = None) -> str:
        """The name of a currency or unit behind its number: one, several, or "de" several."""
        last = amount or self._match["b"] or self._match["a"]
        magnitude, whole = self._match["mag"], self._language.split(last)[0]
        is_one = self._language.is_one(last) and not (self._match["b"] and not amount)
        if not magnitude and (is_one or self._describes):
            return one
        is_noun = magnitude and magnitude not in self._words.get("adjectives", ())
        if is_noun or (not magnitude and regex.fullmatch("[1-9][0-9]*0{6}", whole)):
            of = self._words["of"]
            return f"d'{many}" if self._words.get("elides") and many[0] in "aeiouy" else of + many
        return many

    @property
    def _describes(self) -> bool:
        """Whether English puts the singular, as in "a five dollar bill" or "a 5-km run"."""
        is_led = regex.search(r"(?i)\b(?:an?|another|per) $", self._before) and self._noun
        return self._language.code == "en" and (self._groups.get("gap") == "-" or bool(is_led))

    def _quantity(self, value: str, gender: str = "") -> str:
        """A number, or a range of them, before a currency or a unit."""
        unit = self._groups.get("u")
        form = gender or [*self._words["units"][unit][2:], "m"][0] if unit or gender else "count"
        form = "m" if self._groups.get("mag") else form
        last, said = self._match["b"], self._language.read(value, form)
        if last is None:
            return said
        joint = regex.sub(r"\{[ab]:\w+\}", "{}", self._words["range"])
        return str(joint.format(said, self._language.read(last, form)))

    def _magnitude(self, value: str) -> str:
        return str(self._words["magnitudes"][value][not self._language.is_one(self._match["a"])])

    def _unit(self, value: str) -> str:
        return self._name(*self._words["units"][value][:2])

    def _one(self, value: str) -> str:
        return str(self._words["units"][value][0])

    def _many(self, value: str) -> str:
        return str(self._words["units"][value][1])

    # Addresses, and what people utter.

    def _address(self, value: str) -> str:
        said: list[str] = []
        signs, dot = self._words["address_signs"], self._words["address_signs"]["."]
        for part in regex.findall(r"[._+/-]|\d+|[^\W\d_]+", value):
            is_spelt = said[-1:] == [dot] and part.casefold() not in self._words["said_domains"]
            is_spelt = is_spelt and part.casefold() in self._words["domains"]
            said.append(" ".join(part.upper()) if is_spelt else signs.get(part) or self._code(part))
        return " ".join(said)

    def _code(self, part: str) -> str:
        if not part.isdigit():
            return part
        if regex.fullmatch(r"(?:1\d|20)\d\d|[1-9]\d{0,2}", part):
            return self._year(part) if len(part) > 2 else self._language.read(part)
        return self._digits(part)

    def _handle(self, value: str) -> str:
        parts = regex.findall(r"\d+|\p{Lu}+(?!\p{Ll})|\p{Lu}?[^\W\d_\p{Lu}]+", value)
        return " ".join(map(self._code, parts))

    def _interjection(self, value: str) -> str | None:
        known: dict[str, str] = self._words.get("interjections", {})
        said = known.get(_LETTERS.sub(r"\1", value.casefold()))
        return said.capitalize() if said and value[0].isupper() else said

    def _stuttered(self, value: str) -> str | None:
        ending = self._words.get("stutter")
        return "".join(f"{one}{ending} " for one in value.split("-")[:-1]) if ending else None

    def _stretched(self, value: str) -> str:
        doubled = _LETTERS.sub(r"\1\1", value)
        is_known = doubled.casefold() in self._words.get("doubled", ())
        return doubled if is_known else str(regex.sub(r"(?i)(.)\1{2,}", r"\1", value))


_PART = regex.compile(r"(?<!\(\?P)<(\w+)>")
Rule = tuple[regex.Pattern[str], str, bool]


@lru_cache(maxsize=20)
def list_rules(language: Language) -> list[Rule]:
    """The rules for a language: pattern, template, and whether it may end a sentence, too."""
    rules: list[Rule] = []
    for one in read_table("rules")["rules"]:
        codes = one.get("languages", language.code).replace(
            "us", "" if language.is_british else "en"
        )
        say = language.words.get(one["say"][1:]) if one["say"][:1] == "@" else one["say"]
        pattern = make_pattern(language, one["pattern"])
        if language.code in codes.split() and say is not None and pattern is not None:
            rules.append((pattern, say, one.get("stop", False)))
    return rules


@lru_cache(maxsize=20)
def make_quick_look(language: Language) -> regex.Pattern[str]:
    """Finds whether anything may be said otherwise than it is written, in a tenth of the time."""
    pattern = make_pattern(language, read_table("rules")["quick"])
    assert pattern is not None
    return pattern


def make_pattern(language: Language, written: str) -> regex.Pattern[str] | None:
    """A pattern with a language's words in it; None where it has none of a kind."""
    while found := _PART.search(written):
        words = "|".join(_list_words(language, found[1]))
        if not words:
            return None
        written = f"{written[: found.start()]}(?:{words}){written[found.end() :]}"
    return regex.compile(written)


def _list_words(language: Language, name: str) -> Iterable[str]:
    """Patterns of the words of a kind, the longest first; or one of all."""
    rules, tables = read_table("rules"), read_table("tables")
    words = language.words.get(name, tables["shared"].get(name, rules.get(name, ())))
    if isinstance(words, str):
        return [f"[{regex.escape(words)}]" if name == "group" else words]
    if name == "coins":
        words = [
            one for one, code in tables["symbols"].items() if code in language.words["currencies"]
        ]
    if name == "bare":
        words = ["\0", *_find_bare(language)]
    return sorted(map(regex.escape, words), key=len, reverse=True)


def _find_bare(language: Language) -> Iterator[str]:
    for table in ("titles", "abbreviations"):
        yield from (one for one in language.words.get(table, ()) if one.isalpha())
