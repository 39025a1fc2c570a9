"""JSON of other programs: objects with a speaker and a text, but no type."""

from __future__ import annotations

import json

from studio.dialog.formats.columns import Role, assign, role_of

_KEYS = {
    Role.SPEAKER: "speaker_id",
    Role.TEXT: "text",
    Role.LANGUAGE: "language",
    Role.SEED: "seed",
}


def typed_items(text: str) -> str:
    """Give items the type and keys of dialog items, by the meaning of the keys they have.

    Returns:
        The text unchanged where it is no JSON or needs no change, so that whoever reads it next
        explains what is wrong; items and lines keep their numbers.
    """
    if text.lstrip("\ufeff \t\r\n").startswith("["):
        return _typed(text)
    return "\n".join(_typed(line) if line.strip() else line for line in text.split("\n"))


def _typed(text: str) -> str:
    try:
        found = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return text
    items = found if isinstance(found, list) else [found]
    if not any(map(_is_loose, items)):
        return text
    typed = [_with_type(item) if _is_loose(item) else item for item in items]
    return json.dumps(typed if isinstance(found, list) else typed[0], ensure_ascii=False)


def _is_loose(item: object) -> bool:
    return isinstance(item, dict) and "type" not in item and Role.TEXT in assign(list(item))


def _with_type(item: dict[str, object]) -> dict[str, object]:
    keys = list(item)
    columns = assign(keys)
    named = {_KEYS[role]: item[keys[columns[role]]] for role in _KEYS if role in columns}
    others = {key: value for key, value in item.items() if role_of(key) is None}
    return {"type": "speech", **others, **named}
