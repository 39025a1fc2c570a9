"""Numbers in the words of a language, by CLDR's spelling rules, and the tables of its words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

_MOST_DIGITS = 15
"""Of a number that is said as one; a longer one is said digit by digit."""
_REGIONS = {"pt-pt": "pt_PT", "fr-ch": "fr_CH", "fr-be": "fr_BE", "de-ch": "de_CH"}


@cache
def read_table(name: str) -> Mapping[str, Any]:
    """The content of a TOML file beside this one."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))


@dataclass(frozen=True)
class WordLanguage:
    """What is known of a language: its code, CLDR's name of its spelling rules, and its table.

    British English puts "and" behind hundreds, and days before months.
    """

    code: str
    engine: str
    words: Mapping[str, Any] = field(hash=False)
    is_british: bool = False

    def spell(self, number: int, form: str = "count") -> str:
        """A number that isn't negative in words.

        `form` is "count" as in counting, "m", "f" or "n" before a noun, "year" or an "ordinal".
        """
        if form in "mf" and self.code == "it" and number > 1:  # ventuno libri
            form = "count"
        rules = self.words.get(form) or self.words["count"]
        if rules == "digits":
            return self.digits(str(number))
        if self.is_british and form == "count":
            rules += "-verbose"
        return _format(self.engine, number, rules)

    def digits(self, written: str, zero: str | None = None) -> str:
        """Digits one by one; what else there is parts them into groups."""
        names = self.words.get("digits") or [self.spell(one) for one in range(10)]
        names = [zero or names[0], *names[1:]]
        groups = re.findall(r"\d+", written)
        return ", ".join(
            self.words["joint"].join(names[int(one)] for one in group) for group in groups
        )

    def read(self, written: str, form: str = "count") -> str:
        """A number as it is written, with its separators, in words."""
        whole, point, fraction = self.split(written)
        if len(whole) > _MOST_DIGITS or (len(whole) > 1 and whole[0] == "0" and not fraction):
            return self.digits(whole)
        if not fraction:
            return self.spell(int(whole), form)
        tail = fraction.lstrip("0")
        behind = self.digits(fraction)
        if tail and len(fraction) <= self.words["fraction_digits"]:
            zeros = [self.spell(0)] * (len(fraction) - len(tail))
            behind = " ".join((*zeros, self.spell(int(tail))))
        joint: str = self.words["joint"]
        return joint.join((self.spell(int(whole)), self.words["points"][point], behind))

    def split(self, written: str) -> tuple[str, str, str]:
        """The whole part of a number in digits, its point, and the digits behind that."""
        written = re.sub(r"\s", "", written)
        marks = re.sub(r"\d", "", written)
        head, point, behind = written.rpartition(marks[-1:] or "\0")
        is_group = len(behind) == 3 and set(marks) <= set(self.words["group"])
        if not point or is_group or marks.count(point) > 1:
            return re.sub(r"\D", "", written), "", ""
        return re.sub(r"\D", "", head), point, behind

    def is_one(self, written: str) -> bool:
        """Whether a unit behind a number is in the singular."""
        whole, _, fraction = self.split(written)
        below = self.words.get("singular_below")
        return int(whole) < below if below else int(whole) == 1 and not fraction


@lru_cache(maxsize=200)
def find_language(code: str | None) -> WordLanguage | None:
    """The language of a BCP-47 code; None of one without a table."""
    code = (code or "").casefold().replace("_", "-")
    base = code.partition("-")[0].replace("cmn", "zh")
    words = read_table("tables").get(base, {})
    if "engine" not in words:
        return None
    is_british = base == "en" and code not in ("en", "en-us", "en-ca")
    return WordLanguage(base, _REGIONS.get(code, words["engine"]), words, is_british)


@lru_cache(maxsize=20_000)
def _format(engine: str, number: int, rules: str) -> str:
    said: str = _load(engine).format_number(number, ruleset_names=[rules]).text
    said = (
        said.replace("\xad", "")
        .replace("vingt-et-onz", "vingt-onz")
        .replace(",", "")
        .replace("oh-", "oh ")
    )
    # In Portuguese "e" stands only before the last part.
    return re.sub(r"(lh(?:ão|ões)) e (?=\S*(?:ent[oa]s|cento) e)", r"\1 ", said)


@cache
def _load(engine: str) -> Any:
    from unicode_rbnf import RbnfEngine  # noqa: PLC0415 - takes 80 ms; few need it

    return RbnfEngine.for_language(engine)
