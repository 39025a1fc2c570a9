"""Takes the lines out of JSON of another program, or of a language model.

ElevenLabs has them as `inputs`, WhisperX and `transcript.json` of podcasts as `segments`, chats
with a model as `messages` or `conversations`, `words.json` as `lines`; others by scenes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import regex

from studio.dialog.directions import write_direction
from studio.dialog.items import parse_items
from studio.dialog.model import MAX_LINES
from studio.dialog.reading.building import FIRST_SPEAKER, NO_NAME, ImportNotices
from studio.dialog.reading.form import Explanation, Form, Read, read_source
from studio.dialog.reading.lexer import Source
from studio.dialog.reading.tables import (
    OWN,
    Role,
    assign,
    is_noted,
    leave_counts,
    read_own,
    role_of,
)
from studio.errors import ScriptError
from studio.storage.json_bounds import MAX_VALUES, has_too_many_values

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
_KEYS = {
    Role.SPEAKER: "speaker_id",
    Role.TEXT: "text",
    Role.LANGUAGE: "language",
    Role.SEED: "seed",
}
# With the first key whole: a speaker may be called `{"`.
_FIRST_KEY = r"\{\s*\"(?:[^\"\\\n]|\\.){0,200}+\"\s*:"
JSON_BEGINS = regex.compile(rf"\s*(?:{_FIRST_KEY}|\[\s*(?:{_FIRST_KEY}|\]\s*$))")
_TURN_ITEM = regex.compile(r"\s*\[S\d{1,2}\]")


def _unwrap_items(text: str, remarks: ImportNotices) -> tuple[str, str | None]:
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
    items = [*_list_other_notes(found), *_name_all(items, remarks)]
    return json.dumps(items, ensure_ascii=False), title if isinstance(title, str) else None


def _name_all(items: list[object], remarks: ImportNotices) -> Iterator[object]:
    """Items with the last speaker where none is given: a recogniser leaves out whom it doubts."""
    last = FIRST_SPEAKER
    for number, item in enumerate(items, start=1):
        if isinstance(item, dict) and "type" not in item:
            for key in item:  # without a generator, as there may be 20,000 items
                if role_of(key) is Role.SPEAKER:
                    break
            else:
                key = "speaker"
            named = item.get(key)
            if named is None or named == "":
                remarks.add(NO_NAME.format(last), number)
                item = {**item, key: last}
            elif isinstance(named, str):
                last = named
            else:
                item = {**item, key: (last := f"Speaker {named}")}
        yield item


def _find_items(held: dict[str, Any], depth: int) -> Iterator[object]:
    lists = [value for value in held.values() if isinstance(value, list)]
    if depth and isinstance(inner := held.get("results"), dict):  # as of Deepgram and AWS
        yield from _find_items(inner, depth - 1)
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


def _add_item_types(text: str) -> str:
    """Add the type and keys of dialog items to similar items, such as ones with `name` and `line`.

    Returns:
        The text, with the same numbers of lines, and notes as items of their own; unchanged if it
        isn't JSON or needs no change, so that the next reader reports what is wrong.
    """
    if text.lstrip("\ufeff \t\r\n").startswith("["):
        return _add_types(text)
    return "\n".join(_add_types(line) if line.strip() else line for line in text.split("\n"))


def _add_types(text: str) -> str:
    try:
        found = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return text
    items = found[: MAX_LINES + 1] if isinstance(found, list) else [found]
    if not any(map(_is_untyped, items)):
        return text
    if not isinstance(found, list):
        return json.dumps(_add_type(found), ensure_ascii=False)
    typed = [one for item in items for one in (_split_notes(item) if _is_untyped(item) else [item])]
    return json.dumps(typed, ensure_ascii=False)


def _split_notes(item: dict[str, object]) -> list[dict[str, object]]:
    """An item of an array, and below it the notes that it has beside its words."""
    said = {key: value for key, value in item.items() if not is_noted(key)}
    return [_add_type(said), *list_notes(item)]


def _is_untyped(item: object) -> bool:
    return isinstance(item, dict) and "type" not in item and Role.TEXT in assign(list(item))


def _add_type(item: dict[str, Any]) -> dict[str, object]:
    keys = list(item)
    columns = {role: keys[column] for role, column in assign(keys).items()}
    named = {_KEYS[role]: item[columns[role]] for role in _KEYS if role in columns}
    others = {key: value for key, value in item.items() if role_of(key) is None}
    for role in filter(columns.__contains__, OWN):
        if isinstance(value := item[columns[role]], str | int | float):
            others[OWN[role]] = value  # as it is, if it can't be read
            with suppress(ScriptError):
                others = {**others, OWN[role]: None, **read_own(role, columns[role], str(value))}
    return {"type": "speech", **others, **add_direction(named, item)}


def _join_turn_items(text: str) -> str | None:
    """The text of items that only hold turns: `{"text": "[S1] Hi. [S2] Ho."}`; None for others."""
    if "[S" not in text:
        return None
    rows = text.lstrip("\ufeff \t\r\n")
    try:
        found = (
            json.loads(rows) if rows.startswith("[") else list(map(json.loads, rows.splitlines()))
        )
    except (ValueError, RecursionError):
        return None
    items = [one for one in found if isinstance(one, dict) and _KEYS[Role.SPEAKER] not in one]
    texts = [str(one.get("text")) for one in items]
    is_turns = len(texts) == len(found) > 0 and all(map(_TURN_ITEM.match, texts))
    return "\n".join(texts) if is_turns else None


def _check_size(text: str) -> None:
    """Refuse JSON that would take hundreds of megabytes once it is parsed.

    Raises:
        ScriptError: It holds too many values.
    """
    is_json = text.lstrip("\ufeff \t\r\n").startswith(("[", "{"))
    if is_json and has_too_many_values(text.encode(errors="replace")):
        raise ScriptError(f"This holds more than {MAX_VALUES:,} values. Divide it into parts.")


def _explain(source: Source) -> Explanation | None:
    if source.suffix not in ("json", "jsonl") and not JSON_BEGINS.match(source.text):
        return None
    _check_size(source.text)
    return Explanation(lambda remarks: _read(source, remarks))


def _read(source: Source, remarks: ImportNotices) -> Read:
    text = source.text
    is_begun = JSON_BEGINS.match(text) is not None
    format_ = "json" if text.lstrip().startswith("[") else "jsonl"
    format_ = format_ if is_begun else source.suffix or ""
    if (turns := _join_turn_items(text)) is not None:
        held = source.of(turns)
        held.narrator = None
        return replace(read_source(held, remarks), format=format_, title=None, unspoken=0)
    unwrapped, title = _unwrap_items(text, remarks)
    typed = _add_item_types(unwrapped)
    parsed = parse_items(typed)
    return Read(parsed if typed == unwrapped else leave_counts(parsed), title, format=format_)


FORMS = (Form("JSON", 3.3, _explain, format="json"),)
