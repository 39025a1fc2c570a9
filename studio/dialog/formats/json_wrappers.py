"""Takes the lines out of JSON of another program, or of a language model.

ElevenLabs has them as `inputs`, WhisperX and `transcript.json` of podcasts as `segments`, chats
with a model as `messages` or `conversations`, `words.json` as `lines`; others by scenes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from studio.dialog.directions import write_direction
from studio.dialog.formats.tables import OWN, Role, assign, is_noted, role_of
from studio.dialog.model import MAX_LINES

_LISTS = (
    "inputs",
    "segments",
    "conversations",
    "messages",
    "transcript",
    "dialogue",
    "dialog",
    "lines",
    "script",
    "turns",
    "utterances",
)
_OTHER_KEYS = {"from": "speaker", "value": "text", "voice_id": "speaker", "body": "text"}
_SAID = (Role.SPEAKER, Role.TEXT, Role.LANGUAGE)
_TITLES = ("title", "scene_title", "heading", "name", "setting", "location", "scene")
_DEEPEST = 6


def unwrap_items(text: str) -> tuple[str, str | None]:
    """The lines that JSON holds as a list of items, and the title of the whole.

    Returns:
        The text as it is, and None, if it is anything else.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text, None
    if isinstance(found, list) and found and all(map(_is_pair, found)):
        return json.dumps([_read_pair(one) for one in found], ensure_ascii=False), None
    if not isinstance(found, dict) or "type" in found:
        return text, None
    items = list(islice(_find_items(found, _DEEPEST), MAX_LINES + 1))
    if not items:
        return text, None
    title = next((found[key] for key in found if key.casefold().endswith("title")), None)
    items = [*_list_other_notes(found), *items]
    return json.dumps(items, ensure_ascii=False), title if isinstance(title, str) else None


def _find_items(held: dict[str, Any], depth: int) -> Iterator[object]:
    lists = [value for value in held.values() if isinstance(value, list)]
    known = next((held[key] for key in _LISTS if isinstance(held.get(key), list)), None)
    for one in [known] if known is not None else lists:
        for item in one:
            if not isinstance(item, dict) or not _holds_items(item):
                yield from _read_item(item, is_known=known is not None)
            elif depth:
                titles = (item[key] for key in _TITLES if isinstance(item.get(key), str))
                yield from ({"type": "heading", "text": title} for title in titles)
                yield from _find_items(item, depth - 1)


def _holds_items(item: dict[str, Any]) -> bool:
    """Whether a list of lines may be in an item, and not of the words of its own line."""
    lists = {key for key in item if isinstance(item[key], list)}
    is_said = Role.TEXT in assign(list(map(str, item)))
    return not lists.isdisjoint(_LISTS) if is_said else bool(lists)


def _read_item(item: object, *, is_known: bool) -> Iterator[object]:
    """An item of a list; of one that isn't known as that of the lines only what is said."""
    if not isinstance(item, dict):
        yield from [item] if is_known else []
    elif _is_pair(item):
        yield _read_pair(item)
    elif is_known or {Role.TEXT, Role.SPEAKER} <= assign(list(map(str, item))).keys():
        yield _keep_said(item)
        yield from list_notes(item)
        yield from _list_other_notes(item)


def _list_other_notes(held: dict[str, Any]) -> Iterator[object]:
    """Notes of the words that stand beside what is read, with their keys."""
    for key, value in held.items():
        is_read = role_of(key) is not None or is_noted(key) or key in (*_OTHER_KEYS, *_TITLES)
        is_read |= key.casefold().endswith("title")
        if isinstance(value, str) and " " in value.strip() and not is_read:
            yield {"type": "note", "text": f"{key}: {value}"}


def _is_pair(item: object) -> bool:
    """Whether an item is nothing but a name and words: `{"Anna": "How long?"}`."""
    if not isinstance(item, dict) or len(item) != 1:
        return False
    ((key, value),) = item.items()
    return isinstance(value, str) and role_of(key) is None and key not in _OTHER_KEYS


def _read_pair(item: dict[str, str]) -> dict[str, str]:
    ((speaker, text),) = item.items()
    return {"speaker": speaker, "text": text}


def _keep_said(item: dict[str, Any]) -> dict[str, Any]:
    """Who says what, and how; a recogniser's times, scores and ids are nobody's settings."""
    named = {_OTHER_KEYS.get(key, key): value for key, value in item.items()}
    roles = _SAID if any(key.startswith("start") for key in item) else (*_SAID, *OWN)
    kept = {key: value for key, value in named.items() if role_of(key) in roles or key == "type"}
    return add_direction(kept, named)


def list_notes(item: dict[str, Any]) -> list[dict[str, object]]:
    """Items of the notes that an item has beside its words."""
    return [
        {"type": "note", "text": words}
        for key, words in item.items()
        if is_noted(key) and isinstance(words, str) and words.strip()
    ]


def add_direction(kept: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """An item whose text begins with the direction that the whole item has beside it."""
    how = next((item[key] for key in item if role_of(key) is Role.DIRECTION), None)
    text = next((key for key in kept if role_of(key) is Role.TEXT), "")
    if not isinstance(how, str) or not how.strip() or not isinstance(kept.get(text), str):
        return kept
    return {**kept, text: f"{write_direction(how, is_first=True)} {kept[text]}"}
