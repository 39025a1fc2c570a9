"""The gender that people usually mean by a name: what a listener expects of an automatic voice."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_ANY = "*"
"""Instead of a language: words for people, which count in all of them, and before names."""

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# What has no form without its mark in Unicode's decomposition.
_PLAIN = str.maketrans("łøđðıßæœ", "loddisao")
_AGE = re.compile(r"[,(]\s*(?:[^\W\d_]+,\s*)?(\d{1,3})s?\s*\)?$")
_CHILDREN, _OLD = range(3, 13), 60  # below 3 it numbers extras: "Guard (2)"
_ELDER = re.compile(
    "abuel[ao]|babcia|dziadek|elderly|gramps|gran(?:ny)?|grand?-?(?:dad|father|ma|mother|pa|pere)"
    "|nana|nonn[ao]|old|oma|opa"
)


def usual_age(name: str) -> str:
    """How old a character's name says that it is, in a number or a word.

    Args:
        name: As a script writes it, such as "Tom (8)", "CHILD, 8", "Grandpa" or "MARY, 70s".

    Returns:
        "child", "old" or empty.
    """
    said = _AGE.search(name.strip())
    if said is not None:
        age = int(said[1])
        return "child" if age in _CHILDREN else "old" if age >= _OLD else ""
    words = {_fold(word) for word in _WORD.findall(name)}
    if any(_read_names().get(word, {}).get(_ANY) == "child" for word in words):
        return "child"
    return "old" if any(map(_ELDER.fullmatch, words)) else ""


def usual_gender(name: str, language: str | None = None) -> str:
    """Whom a character's name suggests.

    A word for a person decides, such as a title or "Grandma"; else the first word that is a given
    name: in the language if it is one there, else in most of the languages that have it.

    Args:
        name: As a script writes it, with or without a title and a family name.
        language: BCP-47, of the script.

    Returns:
        "woman", "man" or "child"; empty where nobody can say, or both are usual.
    """
    if usual_age(name) == "child":
        return "child"
    words = [_fold(word.replace("’", "'")) for word in _WORD.findall(name)]
    genders = [_read_names().get(word, {}) for word in words]
    for found in genders:
        if _ANY in found:
            return found[_ANY]
    spoken = (language or "").partition("-")[0].casefold()
    for found in filter(None, genders):
        if spoken in found:
            return found[spoken]
        women = sum(one == "woman" for one in found.values())
        if 2 * women != len(found):
            return "woman" if 2 * women > len(found) else "man"
    return ""


def _fold(word: str) -> str:
    """A word in small letters, Latin ones without accents."""
    if not any("a" <= char <= "z" for char in word.casefold()):
        return word.casefold()
    plain = (char for char in unicodedata.normalize("NFKD", word.casefold()))
    return "".join(char for char in plain if not unicodedata.combining(char)).translate(_PLAIN)


@cache
def _read_names() -> Mapping[str, Mapping[str, str]]:
    """Gender by language, by word."""
    text = files(__package__).joinpath("given_names.txt").read_text("utf-8")
    names: dict[str, dict[str, str]] = {}
    for row in text.splitlines():
        head, colon, words = row.partition(": ")
        if not colon or row.startswith("#"):
            continue
        language, gender = head.split()
        for word in words.split():
            names.setdefault(word, {})[language] = gender
    return names
