"""The people of a story: how they are called, which names are one person's, and her gender."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import regex

from studio.dialog.given_names import usual_gender
from studio.dialog.prose.words import NAME, TITLE, SayingWords

_NAME = regex.compile(rf"\b{NAME}")
_TITLED = regex.compile(rf"{TITLE}$")
_LOWER = regex.compile(r"^(?:\p{Ll}[\p{L}’'-]*\s+)+(?=\p{Lu})")
_OWNED = regex.compile(r"['’]s?$")
_WORD = regex.compile(r"\p{L}+")
_GENDERS = ("man", "woman")
_SELDOM = 3
_PRONOUN_CHARS = 120
"""How far behind a name its pronoun may stand."""


def _split_title(name: str) -> tuple[str, list[str]]:
    words = name.split()
    return (words[0], words[1:]) if len(words) > 1 and _TITLED.match(words[0]) else ("", words)


def _tidy_space(written: str) -> str:
    return _OWNED.sub("", " ".join(written.split()))


def tidy_name(written: str, words: SayingWords) -> str:
    """A name as found in a text, without “'s” and line breaks; empty for words that are none."""
    name = _tidy_space(written)
    if words.language != "de":  # whose nouns are written like names
        name = _LOWER.sub("", name)
    if name in ("Mr", "Mrs", "Ms", "Dr"):
        return ""
    first, _, rest = name.partition(" ")
    if first.casefold() not in words.nobody or name[0].islower():
        return name
    return tidy_name(rest, words)  # Then Mary


@dataclass(slots=True)
class People:
    """Who occurs in a text: a person's name by each of hers, her gender, and where she is named."""

    person_of: dict[str, str] = field(default_factory=dict)
    gender: dict[str, str] = field(default_factory=dict)
    places: list[tuple[int, str]] = field(default_factory=list)

    def before(self, at: int, reach: int) -> list[str]:
        """Who is named in the characters before a place, the last first."""
        first, last = (bisect_left(self.places, (one, "")) for one in (at - reach, at))
        return [person for _, person in self.places[first:last][::-1]]

    def inside(self, text: str) -> Iterator[str]:
        """The persons named in a text."""
        names = (_tidy_space(found[0]) for found in _NAME.finditer(text))
        return (self.person_of[name] for name in names if name in self.person_of)


def find_people(
    text: str, narrated: list[tuple[int, int]], tags: Counter[str], words: SayingWords
) -> People:
    """The people of a text.

    Args:
        text: All of it.
        narrated: Where narration stands.
        tags: Who is named beside verbs of saying.
        words: Of the language.
    """
    described = [name for name in tags if name[0].islower()]
    pattern = regex.compile(rf"\b(?:{'|'.join(map(regex.escape, described)) or '(?!)'})\b", regex.I)
    found = [
        (one.start(), name if one.re is _NAME else name.casefold())
        for span in narrated
        for search in (_NAME, pattern)
        for one in search.finditer(text, *span)
        if (name := tidy_name(one[0], words))
    ]
    counted = Counter(
        name
        for _, name in found
        if name in tags or _split_title(name)[0] or usual_gender(name.split()[0], words.language)
    )
    people = People(_join_names(counted + tags))
    known = people.person_of
    people.places = sorted((at, known[name]) for at, name in found if name in known)
    people.gender = _find_genders(text, people, words)
    return people


def _join_names(counted: Counter[str]) -> dict[str, str]:
    """The person by each name, as she is called most: “Darcy” is Mr. Darcy, the Bennets are two."""
    longer: dict[str, set[str]] = defaultdict(set)
    for name in counted:
        title, parts = _split_title(name)
        for word in {parts[0], parts[-1]} if title or len(parts) > 1 else ():
            longer[word].add(name)
    long_of = {}
    for name in counted:
        title, parts = _split_title(name)
        others = longer[parts[0]] - {name} if len(parts) == 1 else {" ".join(parts)}
        if not title:  # a woman isn't called by her family's name alone
            others = {
                one for one in others if _split_title(one)[0] == "" or usual_gender(one) != "woman"
            }
        elif len(parts) == 1:  # Mr. Vyse is Cecil Vyse, Mrs. Vyse no Miss Vyse
            is_man = usual_gender(name) == "man"
            bare = {one for one in others if not _split_title(one)[0]}
            bare = {one for one in bare if usual_gender(one) == "man" and is_man}
            bare = {one for one in bare if f"{title} {one}" not in counted}
            # A full name that is seldom is a son's, or a brother's.
            bare = {one for one in bare if _SELDOM * counted[one] >= counted[name]}
            others = bare | {one for one in others if one.startswith(f"{name} ")}
        ranked = sorted((others - {name}) & counted.keys(), key=lambda one: -counted[one])
        is_clear = len(ranked) == 1 or (ranked and counted[ranked[0]] > 2 * counted[ranked[1]])
        long_of[name] = ranked[0] if is_clear else name
    groups: dict[str, list[str]] = defaultdict(list)
    for name, one in long_of.items():
        groups[long_of[one]].append(name)
    called = {one: max(names, key=lambda name: counted[name]) for one, names in groups.items()}
    return {name: called[one] for one, names in groups.items() for name in names}


def _find_genders(text: str, people: People, words: SayingWords) -> dict[str, str]:
    """Of a title, else of a given name, else of the next pronoun, mostly."""
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for name, person in people.person_of.items():
        votes[person][usual_gender(name, words.language)] += 1_000 if _split_title(name)[0] else 100
    for at, person in people.places:
        behind = text[at + len(person) : at + len(person) + _PRONOUN_CHARS]
        whom = (words.persons.get(word.casefold()) for word in _WORD.findall(behind))
        votes[person][next((one for one in whom if one in _GENDERS), "")] += 1
    known = {one: [sex for sex, _ in votes[one].most_common() if sex in _GENDERS] for one in votes}
    return {person: genders[0] for person, genders in known.items() if genders}
