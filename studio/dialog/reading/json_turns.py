"""Finds who says what in JSON of other programs, whatever its lists and keys are called.

A turn is an object with words, and mostly with who says them. Where the same words are in several
lists, as recognisers write them (by segment, by word, as one text), the one that names speakers is
read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

import regex

from studio.dialog.directions import word_set, write_direction
from studio.dialog.model import MAX_LINES
from studio.dialog.reading.building import FIRST_SPEAKER, NO_NAME, ImportNotices
from studio.dialog.reading.headings import Role, is_noted, rank_of, role_of
from studio.dialog.reading.tables import OWN, read_own
from studio.dialog.reading_limits import Budget, Cost
from studio.errors import ScriptError

Item = dict[str, Any]
"""An object of JSON."""

_OWN_TYPES = frozenset(("speech", "silence", "audio", "heading", "note", "action"))
_LISTS = word_set(
    "inputs segments conversations messages transcript dialogue dialog lines script turns"
    " utterances"
)
_OTHER_KEYS = {
    **dict.fromkeys(
        ("from", "voice_id", "author", "host", "sender", "sender_name", "user", "address"),
        "speaker",
    ),
    **dict.fromkeys(("speakertag", "speaker_tag", "spk"), "speaker"),
    **dict.fromkeys(("value", "body", "display", "displaytext", "message", "utf8"), "text"),
    "input": "text",
}
_BEST_FIRST = ("nBest", "alternatives")
_WORDS = ("elements", "segs", "words")
_PARTS = (*_WORDS, "sentences")
_WORD_KEYS = ("punctuated_word", "word", "value", "text", "content", "utf8", "display")
_WORD_TYPES = frozenset(("word", "spacing", "pronunciation", "punctuation", "punct"))
_NAMES = ("nickname", "display_name", "name", "username", "label", "id")
_NAMED = ("speakers", "characters", "participants")
_TITLES = ("title", "scene_title", "heading", "name", "setting", "location", "scene")
_ACTIONS = word_set("action stage stage_direction stagedirection sfx sound music setting")
_RECORDED = ("ts", "start", "offset", "timestamp", "words", "input")
_DEEPEST = 12
_MOST_KEYS = 200
_MOST_SPAN_KEYS = 3
_ALIKE = 0.8
_FEW_WORDS = 2
_ENDED = regex.compile(r"[.!?…。！？][\"”’』」)]*\s*$")
_BEFORE_PUNCTUATION = regex.compile(r"\s+(?=[.,!?;:…。、！？])")
_WORD = regex.compile(r"\w+")
_CJK = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{P}\s]+")


def find_turns(found: object) -> list[Item]:
    """The items of a dialog that JSON holds; none if it holds no turns.

    Raises:
        ScriptError: There are too many.
    """
    return _Turns(dict(_list_names(found, 3))).find(found, "", _DEEPEST)


def find_listed_turns(found: list[Any]) -> list[list[Item]]:
    """The items of each object in a list; what else such an object has is a setting of its line.

    An object that is no turn is given as it is.
    """
    turns = _Turns({}, keeps_settings=True)
    if whole := turns.find_whole(found, ""):
        return [[one] for one in whole]
    # One more shows that there are too many.
    read = found[: MAX_LINES + 1]
    return [turns.find_listed(one, "", _DEEPEST) or _as_it_is(one) for one in read]


def is_flat(item: Item) -> bool:
    """Whether an object holds no other."""
    return len(item) > _MOST_KEYS or not any(isinstance(one, dict | list) for one in item.values())


def _as_it_is(item: Any) -> list[Any]:
    if not isinstance(item, dict):
        return [] if item is None else [item]
    if not is_flat(item):
        return []
    layout = _layout(tuple(item)) if len(item) <= _MOST_KEYS else None
    if layout is None or not layout.texts:
        return [item]
    return [{"type": "speech", "speaker_id": "", "text": item[layout.texts[0]]}]


def name_all(items: Iterable[tuple[int, Any]], remarks: ImportNotices) -> Iterator[Any]:
    """Items with the last speaker where none is given: a recogniser leaves out whom it doubts."""
    last = FIRST_SPEAKER
    for number, item in items:
        if isinstance(item, dict) and item.get("type") == "speech":
            if (named := item.get("speaker_id")) in (None, ""):
                remarks.add(NO_NAME.format(last), number)
                item = {**item, "speaker_id": last}
            elif isinstance(named, str):
                last = named
        yield item


def list_other_notes(held: Item) -> list[Item]:
    """Notes of the words that stand beside what is read, with their keys."""
    others = _layout(tuple(held)).others if len(held) <= _MOST_KEYS else ()
    return [
        {"type": "note", "text": f"{key}: {held[key]}"}
        for key in others
        if isinstance(held[key], str) and " " in held[key].strip()
    ]


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the keys of an object mean; the best first."""

    speakers: tuple[str, ...]
    texts: tuple[str, ...]
    roles: tuple[tuple[str, Role], ...]
    unknown: tuple[str, ...]
    noted: tuple[str, ...]
    others: tuple[str, ...]
    is_recorded: bool
    """Whether it is a recogniser's or a chat's, whose ids and scores are nobody's settings."""


@lru_cache(maxsize=200)
def _layout(keys: tuple[str, ...]) -> _Layout:
    known = {key: _OTHER_KEYS.get(key.casefold(), key) for key in keys}
    roles = {key: role for key in keys if (role := role_of(known[key])) is not None}
    ranked = sorted(roles, key=lambda key: rank_of(known[key]))
    unknown = tuple(key for key in keys if key not in roles and key != "type")
    noted = tuple(key for key in unknown if is_noted(key))
    titles = {key for key in keys if key in _TITLES or key.casefold().endswith("title")}
    return _Layout(
        tuple(key for key in ranked if roles[key] is Role.SPEAKER),
        tuple(key for key in ranked if roles[key] is Role.TEXT),
        tuple(roles.items()),
        tuple(key for key in unknown if key not in noted),
        noted,
        tuple(key for key in unknown if key not in noted and key not in titles),
        any(key.casefold().startswith(_RECORDED) for key in keys),
    )


def _list_names(found: object, depth: int) -> Iterator[tuple[str, str]]:
    """What speakers are called who have numbers or keys."""
    if not isinstance(found, dict) or not depth:
        return
    for key, one in found.items():
        yield from _list_names(one, depth - 1)
        for named in one if key in _NAMED and isinstance(one, list) else ():
            if isinstance(named, dict) and isinstance(named.get("name"), str) and "id" in named:
                yield str(named["id"]), named["name"]
        if key in _NAMED and isinstance(one, dict):
            yield from ((mark, name) for mark, name in one.items() if isinstance(name, str))


class _Turns:
    def __init__(self, names: dict[str, str], *, keeps_settings: bool = False) -> None:
        self._keeps_settings = keeps_settings
        self._names = names

    def find(self, held: object, key: str, depth: int) -> list[Item]:
        """The turns that a value holds under a key."""
        if isinstance(held, list) and depth:
            if whole := self.find_whole(held, key):
                return whole
            found: list[Item] = []
            last: list[Item] = []
            for one in held[:1] if key in _BEST_FIRST else held:
                found += last
                last = self.find_listed(one, key, depth - 1)
                Budget().spend(Cost.LINES, len(found) + len(last))
            found = last if _says_again(found, last) else found + last
            is_item = bool(held) and isinstance(held[0], dict) and len(held[0]) <= _MOST_KEYS
            return _join_short(found) if is_item and _layout(tuple(held[0])).is_recorded else found
        if not isinstance(held, dict) or not depth or not 0 < len(held) <= _MOST_KEYS:
            return []
        if held.get("type") in _OWN_TYPES:
            return [held]
        return self._find_in(held, depth)

    def find_listed(self, one: object, key: str, depth: int) -> list[Item]:
        """The turns of an object in a list, which may be nothing but a name and words."""
        is_pair = isinstance(one, dict) and len(one) == 1
        pair = _read_pairs(list(one.items())) if isinstance(one, dict) and is_pair else []
        return pair or self.find(one, key, depth)

    def find_whole(self, held: list[Any], key: str) -> list[Item]:
        """The turns of a list of words, or of pairs; none of any other."""
        if _are_words(held, key):
            return list(self._say_words(held))
        return _read_pairs(held) or _guess_turns(held)

    def _find_in(self, held: Item, depth: int) -> list[Item]:
        layout = _layout(tuple(held))
        who, text = self._name(held, layout), _read_text(held, layout)
        if who is None and any(_is_texts(held[key]) for key in layout.texts):
            return []  # rows of a script, which JSON only holds
        inner = [] if who and text is not None else self._choose(held, depth)
        said = [one for one in inner if one.get("type") == "speech"]
        are_named = any("speaker_id" in one for one in said)
        if text is not None and not are_named and len(said) < _FEW_WORDS:
            return self._say(held, layout, who, text) if text.strip() else []
        titles = [key for key in _TITLES if isinstance(held.get(key), str)] if said else []
        if who and not are_named:
            titles = [key for key in titles if key not in layout.speakers]
            inner = [{"speaker_id": who, **one} if one in said else one for one in inner]
        return [
            {"type": "heading", "text": held[key]} for key in titles if depth < _DEEPEST
        ] + inner

    def _choose(self, held: Item, depth: int) -> list[Item]:
        """The turns of all lists in an object, each said once."""
        found = {
            key: turns
            for key, one in held.items()
            if isinstance(one, dict | list) and (turns := self.find(one, key, depth - 1))
        }
        known = [key for key in found if key in _LISTS]
        kept: dict[str, Counter[str]] = {}
        for key in sorted(known or found, key=lambda key: -_quality(key, found[key])):
            words = _count_words(found[key])
            is_new = not any(_are_alike(words, other) for other in kept.values())
            if is_new and not (kept and (key in _WORDS or key == "items")):
                kept[key] = words
        return [turn for key in found if key in kept for turn in found[key]]

    def _name(self, item: Item, layout: _Layout) -> str | None:
        who = next((item[key] for key in layout.speakers if item[key] is not None), None)
        if who is None:
            inner = next((item[key] for key in _BEST_FIRST if key in item), None)
            first = inner[0] if isinstance(inner, list) and inner else None
            if not isinstance(first, dict) or len(first) > _MOST_KEYS:
                return None
            return self._name(first, _layout(tuple(first)))
        if isinstance(who, dict):
            who = next((who[key] for key in _NAMES if who.get(key)), None)
        if isinstance(who, bool) or not isinstance(who, str | int | float) or who == "":
            return None
        return self._names.get(str(who), who if isinstance(who, str) else f"Speaker {who}")

    def _say(self, item: Item, layout: _Layout, who: str | None, text: str) -> list[Item]:
        said: Item = {"type": "speech", **({"speaker_id": who} if who else {}), "text": text}
        for key, role in layout.roles:
            value = item[key]
            if role in (Role.LANGUAGE, Role.SEED) and not layout.is_recorded:
                said.setdefault(role.value, value)
            elif role in OWN and not layout.is_recorded and isinstance(value, str | int | float):
                said[OWN[role]] = value  # as it is, if it can't be read
                with suppress(ScriptError):
                    said |= {OWN[role]: None, **read_own(role, key, str(value))}
            elif role is Role.DIRECTION and isinstance(value, str) and value.strip():
                said["text"] = f"{write_direction(value, is_first=True)} {said['text']}"
        notes = [
            {"type": "note", "text": item[key]}
            for key in layout.noted
            if isinstance(item[key], str) and item[key].strip()
        ]
        if not self._keeps_settings:
            return [said, *notes, *list_other_notes(item)]
        if not layout.is_recorded:
            said |= {key: item[key] for key in layout.unknown if key not in said}
        return [said, *notes]

    def _say_words(self, words: list[Item]) -> Iterator[Item]:
        """Turns of words that lie beside each other and are of one speaker."""
        last: str | None = None
        said: list[tuple[str | None, str]] = []
        for word in words:
            last = self._name(word, _layout(tuple(word))) or last
            said.append((last, _read_word(word) or ""))
        for who, ones in groupby(said, key=lambda one: one[0]):
            if text := _join(word for _, word in ones).strip():
                yield {"type": "speech", **({"speaker_id": who} if who else {}), "text": text}


def _guess_turns(held: list[Any]) -> list[Item]:
    """The turns of objects with the same unknown keys: one has names that return, one sentences."""
    held = [one for one in held if one is not None]
    keys = tuple(held[0]) if held and isinstance(held[0], dict) else ()
    if not 1 < len(keys) <= _MOST_KEYS or not all(
        isinstance(one, dict) and tuple(one) == keys for one in held
    ):
        return []
    layout = _layout(keys)
    texts = [key for key in keys if all(isinstance(one[key], str) for one in held)]
    if layout.texts or not texts or held[0].get("type") in _OWN_TYPES:
        return []
    words = {key: sum(len(one[key].split()) for one in held) for key in texts}
    text = max(texts, key=lambda key: words[key])
    names = [
        key
        for key in (*layout.speakers, *texts)
        if key in texts and key != text and words[key] <= _FEW_WORDS * len(held)
        and (len({one[key] for one in held}) < len(held) or len(held) == _FEW_WORDS)
    ]  # fmt: skip
    if not names or words[text] < _FEW_WORDS * len(held):
        return []
    Budget().spend(Cost.LINES, len(held))
    return [{"type": "speech", "speaker_id": one[names[0]], "text": one[text]} for one in held]


def _are_words(held: list[Any], key: str) -> bool:
    """Whether a list is of single words, each an object."""
    return bool(held) and all(
        isinstance(one, dict)
        and (key in _WORDS or "word" in one or one.get("type") in _WORD_TYPES)
        and len(one) <= _MOST_KEYS
        and _read_word(one) is not None
        for one in held
    )


def _read_word(item: Item) -> str | None:
    found = next((item[key] for key in _WORD_KEYS if isinstance(item.get(key), str)), None)
    inner = item.get("alternatives") if found is None else None
    is_held = isinstance(inner, list) and inner and isinstance(inner[0], dict)
    return _read_word(inner[0]) if is_held and inner else found


def _join(words: Iterable[str]) -> str:
    """Words as a text: with spaces, unless they bring them or need none."""
    parts = list(filter(None, words))
    if any(part != part.strip() for part in parts):
        return "".join(parts).strip()
    space = "" if all(map(_CJK.fullmatch, parts)) else " "
    return _BEFORE_PUNCTUATION.sub("", space.join(parts))


def _read_text(item: Item, layout: _Layout) -> str | None:
    """The words of an object, in one text or in parts; None if it has none."""
    for key in layout.texts:
        if isinstance(item[key], str):
            return str(item[key])
    for key in _BEST_FIRST:
        inner = item.get(key)
        if isinstance(inner, list) and inner and isinstance(inner[0], dict):
            found = _read_text(inner[0], _layout(tuple(inner[0])))
            return found if found is not None else _read_word(inner[0])
    for key in (*layout.texts, *_PARTS):
        if (inner := item.get(key)) and isinstance(inner, list):
            parts = [_read_word(one) if isinstance(one, dict) else one for one in inner]
            words = [part for part in parts if isinstance(part, str)]
            is_one = key in _PARTS or all(isinstance(one, str) or _is_span(one) for one in inner)
            return _join(words) if len(words) == len(inner) and is_one else None
    return None


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _is_span(one: Any) -> bool:
    """Whether an object is a part of a text, such as its bold words, and no turn."""
    return "text" in one and _layout(tuple(one)).speakers == () and len(one) <= _MOST_SPAN_KEYS


def _read_pairs(held: list[Any]) -> list[Item]:
    """Turns of a name and words each: `["Anna", "How long?"]`, or `{"Anna": "How long?"}`."""
    for one in held:
        is_pair = isinstance(one, list | tuple) and len(one) == 2
        if not is_pair or not (isinstance(one[0], str) and isinstance(one[1], str)):
            return []
        if role_of(one[0]) is not None or one[0].casefold() in _OTHER_KEYS:
            return []
    return [_read_pair(who, text) for who, text in held]


def _read_pair(who: str, text: str) -> Item:
    if who.casefold() in _ACTIONS:
        return {"type": "action", "text": text}
    return {"type": "speech", "speaker_id": who, "text": text}


def _quality(key: str, turns: list[Item]) -> int:
    """Sorts turns with speakers before those without, and long ones before single words."""
    are_named = any("speaker_id" in one for one in turns)
    return 4 * are_named + 2 * (key not in _WORDS and key != "items") + (len(turns) > 1)


def _count_words(turns: list[Item]) -> Counter[str]:
    texts = (str(one.get("text", "")).casefold() for one in turns if one.get("type") == "speech")
    return Counter(word for text in texts for word in _WORD.findall(text))


def _are_alike(one: Counter[str], other: Counter[str]) -> bool:
    return (one & other).total() >= _ALIKE * max(one.total(), other.total())


def _says_again(turns: list[Item], last: list[Item]) -> bool:
    """Whether a list's last object has the words of all others, and says whose they are."""
    if any("speaker_id" in one for one in turns) or not any("speaker_id" in one for one in last):
        return False
    return bool(turns) and _are_alike(_count_words(turns), _count_words(last))


def _join_short(turns: list[Item]) -> list[Item]:
    """Turns of whole sentences, where a file has one or two words in each."""
    texts = [one["text"] for one in turns if "speaker_id" in one]
    cut = [one for one in texts if len(one.split()) <= _FEW_WORDS and not _ENDED.search(one)]
    if not cut or 2 * len(cut) < len(texts):
        return turns
    joined: list[tuple[Item, list[str]]] = []
    for turn in turns:
        last, parts = joined[-1] if joined else ({}, [])
        is_next = "speaker_id" in turn and last.get("speaker_id") == turn["speaker_id"]
        if is_next and not _ENDED.search(parts[-1]):
            parts.append(turn["text"])
        else:
            joined.append((turn, [str(turn.get("text", ""))]))
    return [{**turn, "text": _join(parts)} for turn, parts in joined]
