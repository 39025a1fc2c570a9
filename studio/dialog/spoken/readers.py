"""The ways in which a rule says what it has found, such as a unit, or an ordinal in its case."""

from __future__ import annotations

from functools import lru_cache

import regex

from studio.dialog.spoken.languages import WordLanguage, read_table

_FIELD = regex.compile(r"\{(\w+)(?::([\w|]+))?\}")
_PART = regex.compile(r"(?<!\(\?P)<(\w+)>")


class Reader:
    """Says a match of a rule. A way is a method, a table to look into, or a form of a number."""

    def __init__(self, language: WordLanguage, match: regex.Match[str]) -> None:
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
        said += template[end:]
        while "  " in said:
            said = said.replace("  ", " ")
        said = said if template[:1] == " " else said.lstrip()
        said = said if template[-1:] == " " else said.rstrip()
        return said if self._words["joint"] else said.replace(" ", "")

    def _say_in(self, way: str, value: str) -> str | None:
        method = getattr(self, f"_{way}", None)
        if method is not None:
            return method(value)  # type: ignore[no-any-return]
        table = self._words.get(way, read_table("tables")["shared"].get(way))
        if isinstance(table, dict):
            return table.get(value)
        return self._language.read(value, way) if value[-1].isdigit() else None

    # Numbers.

    def _int(self, value: str) -> str:
        return str(int(value.replace(",", "")))

    def _digits(self, value: str) -> str:
        return self._language.digits(value)

    def _year(self, value: str) -> str:
        year = int(value) + (0 if len(value) > 2 else 1900 if value >= "50" else 2000)
        return self._language.spell(year, "year")

    def _phone(self, value: str) -> str:
        return self._language.digits(value, self._words["zero_digit"])

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
        counting = regex.search(self._words.get("counting", "(?!)"), f"{self._before}|{noun}")
        if regex.fullmatch(r"1[1-9]\d\d|20\d\d", value) and not counting:
            return self._language.spell(int(value), "year")
        forms = self._words.get("noun_forms", ()) if noun else ()
        fitting = (form for nouns, form in forms if regex.search(nouns, noun))
        return self._language.read(value, next(fitting, "count"))

    @property
    def _before(self) -> str:
        return self._match.string[max(0, self._match.start() - 40) : self._match.start()]

    @property
    def _noun(self) -> str:
        """The word behind the match."""
        string, end = self._match.string, self._match.end()
        found = regex.match(r"\s([\p{L}\p{M}'’]{1,30})", string, pos=end)
        return found[1] if found else ""

    # Money and units.

    @property
    def _names(self) -> list[str]:
        """What is known of the match's currency or unit, as the tables have it."""
        if "coin" in self._groups:
            coins = self._words["currencies"]
            return coins[read_table("tables")["symbols"][self._match["coin"]]]  # type: ignore[no-any-return]
        return self._words["units"][self._match["u"]]  # type: ignore[no-any-return]

    def _coin(self, _: str) -> str:
        """The name behind a number: one, several, or "de" several behind a million."""
        one, many = self._names[:2]
        last, magnitude = self._groups.get("b"), self._groups.get("mag")
        is_led = regex.search(r"(?i)\b(?:an?|another|per) $", self._before) and self._noun
        describes = is_led or self._groups.get("gap") == "-"  # a five dollar bill, a 5-km run
        is_one = not last and not magnitude and self._language.is_one(self._match["a"])
        if is_one or (describes and self._language.code == "en"):
            return one
        whole = self._language.split(last or self._match["a"])[0]
        is_noun = magnitude and magnitude not in self._words.get("adjectives", ())
        if is_noun or (not magnitude and regex.fullmatch("[1-9][0-9]*0{6}", whole)):
            of = str(self._words["of"])
            return f"d'{many}" if self._words.get("elides") and many[0] in "aeiouy" else of + many
        return many

    _unit = _coin

    def _small_coin(self, _: str) -> str | None:
        return self._names[3 if self._match["c"] == "01" else 4] or None

    def _quantity(self, value: str) -> str:
        """A number, or a range of them, before a currency or a unit."""
        form = "m" if self._groups.get("mag") else [*self._names[2:3], "m"][0]
        said, last = self._language.read(value, form), self._groups.get("b")
        joint = regex.sub(r"\{[ab]:\w+\}", "{}", self._words["range"])
        return str(joint.format(said, self._language.read(last, form))) if last else said

    def _magnitude(self, value: str) -> str:
        return str(self._words["magnitudes"][value][not self._language.is_one(self._match["a"])])

    # Addresses, and what people utter.

    def _address(self, value: str) -> str:
        said: list[str] = []
        signs, words = self._words["address_signs"], self._words
        for part in regex.findall(r"[._+/-]|\d+|\p{Lu}+(?!\p{Ll})|\p{Lu}?[^\W\d_\p{Lu}]+", value):
            is_domain = said[-1:] == [signs["."]] and part.casefold() in words["domains"]
            if regex.fullmatch(r"[1-9]\d{0,2}|(?:1\d|20)\d\d", part):
                said.append(self._language.spell(int(part), "year"))
            elif part.isdigit():
                said.append(self._language.digits(part))
            else:
                is_spelt = is_domain and part.casefold() not in words["said_domains"]
                said.append(" ".join(part.upper()) if is_spelt else signs.get(part, part))
        return " ".join(said)

    def _squeezed(self, value: str) -> str:
        return str(regex.sub(r"(.)\1+", r"\1", value.casefold()))

    def _twice(self, value: str) -> str:
        return str(regex.sub(r"(.)\1+", r"\1\1", value.casefold()))

    def _once(self, value: str) -> str:
        return str(regex.sub(r"(?i)(.)\1{2,}", r"\1", value))


@lru_cache(maxsize=20)
def list_rules(language: WordLanguage) -> list[tuple[regex.Pattern[str], str, bool]]:
    """The rules for a language: pattern, template, and whether it may end a sentence, too."""
    rules = []
    for one in read_table("rules")["rules"]:
        codes = one.get("languages", language.code).replace(
            "us", "" if language.is_british else "en"
        )
        say = language.words.get(one["say"][1:]) if one["say"][:1] == "@" else one["say"]
        pattern = make_pattern(language, one["pattern"])
        if language.code in codes.split() and say is not None and pattern is not None:
            rules.append((pattern, say, one.get("stop", False)))
    return rules


@lru_cache(maxsize=3_000)
def make_pattern(language: WordLanguage, written: str) -> regex.Pattern[str] | None:
    """A pattern with a language's words in it; None where it has none of a kind."""
    rules, tables = read_table("rules"), read_table("tables")
    while found := _PART.search(written):
        name = found[1]
        words = language.words.get(name, tables["shared"].get(name, rules.get(name, ())))
        if name == "coins":
            known = language.words["currencies"]
            words = [one for one, code in tables["symbols"].items() if code in known]
        if name == "group":
            words = f"[{regex.escape(words)}]"
        elif not isinstance(words, str):
            words = "|".join(sorted(map(regex.escape, words), key=len, reverse=True))
        if not words:
            return None
        written = f"{written[: found.start()]}(?:{words}){written[found.end() :]}"
    return regex.compile(written)
