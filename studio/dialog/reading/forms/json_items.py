"""JSON: the studio's own items, and what other programs and language models write."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import regex

from studio.dialog.items import JSON_BEGINS, parse_items
from studio.dialog.model import MAX_LINES
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.form import Explanation, Form, Read, read_source
from studio.dialog.reading.json_turns import (
    Item,
    find_listed_turns,
    find_turns,
    is_flat,
    list_other_notes,
    name_all,
)
from studio.dialog.reading.lexer import Source
from studio.dialog.reading.tables import leave_counts
from studio.dialog.reading_limits import Cost
from studio.storage.json_bounds import MAX_VALUES, has_too_many_values

_TURN_ITEM = regex.compile(r"\s*\[S\d{1,2}\]")


def _explain(source: Source) -> Explanation | None:
    if source.suffix not in ("json", "jsonl") and not JSON_BEGINS.match(source.text):
        return None
    text = source.text.lstrip("\ufeff \t\r\n")
    if text.startswith(("[", "{")) and has_too_many_values(text.encode(errors="replace")):
        source.budget.spend(Cost.VALUES, MAX_VALUES + 1)
    return Explanation(lambda remarks: _read(source, remarks))


def _read(source: Source, remarks: ImportNotices) -> Read:
    text = source.text.removeprefix("\ufeff")
    is_begun = JSON_BEGINS.match(text) is not None
    format_ = "json" if text.lstrip().startswith("[") else "jsonl"
    format_ = format_ if is_begun else source.suffix or ""
    found = _parse(text)
    if isinstance(found, dict) and is_flat(found):
        found = [found]
    if isinstance(found, list):
        listed = find_listed_turns(found)
        is_ours = all(len(one) == 1 and one[0] is found[n] for n, one in enumerate(listed))
        items = [(n, item) for n, one in enumerate(listed, start=1) for item in one]
    else:
        turns = find_turns(found)
        is_ours = not turns or turns[0] is found
        notes = list_other_notes(found) if isinstance(found, dict) else []
        items = list(enumerate([*notes, *turns], start=1))
    if held := _held_text(found, items):
        held_source = source.of(held)
        held_source.narrator = None
        return replace(read_source(held_source, remarks), format=format_, title=None, unspoken=0)
    if is_ours:
        return Read(parse_items(text), format=format_)  # which says what is wrong
    title = None
    if isinstance(found, dict):
        title = next((found[key] for key in found if key.casefold().endswith("title")), None)
    named = list(islice(name_all(items, remarks), MAX_LINES + 1))
    if isinstance(found, list) and text.lstrip().startswith("{"):
        numbered = dict(zip((number for number, _ in items), named, strict=False))
        rows = (numbered.get(number) for number in range(1, len(found) + 1))
        typed = "\n".join(map(_write, rows if len(numbered) == len(named) else named))
    else:
        typed = _write(named)
    title = title if isinstance(title, str) else None
    return Read(leave_counts(parse_items(typed)), title, format=format_)


def _parse(text: str) -> Any:
    """What JSON holds, or a list of what its rows hold; None for anything else."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    with suppress(ValueError, RecursionError):
        return [json.loads(row) if row.strip() else None for row in text.split("\n")]
    return None


def _write(item: object) -> str:
    return json.dumps(item, ensure_ascii=False) if item is not None else ""


def _held_text(found: object, items: list[tuple[int, Item]]) -> str:
    """A text in the form of turns or of a script, which JSON only holds; "" for anything else."""
    said = [
        one.get("text") for _, one in items if isinstance(one, dict) and not one.get("speaker_id")
    ]
    if len(items) == 1 and len(said) == 1 and "\n" in str(said[0]):
        return str(said[0])
    texts = [one for one in said if isinstance(one, str) and _TURN_ITEM.match(one)]
    if len(texts) == len(items) > 0:
        return "\n".join(texts)
    held: Any = found if isinstance(found, list) else []
    if isinstance(found, dict) and not items:
        shown = (one for one in found.values() if isinstance(one, list) or "\n" in str(one))
        held = next(shown, [])
    rows = [held] if isinstance(held, str) else held
    return "\n\n".join(rows) if rows and all(isinstance(one, str) for one in rows) else ""


FORMS = (Form("JSON", 3.3, _explain, format="json"),)
