"""Bounds of JSON from outside: how many values it may hold, and how many names an object has.

A body of 12 MB may hold four million lists, at 70 bytes each, and pydantic makes a kilobyte of each
value that doesn't fit its model.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any

from pydantic import BaseModel, BeforeValidator, model_validator

MAX_VALUES = 500_000
"""Of one JSON text, twice as many as the largest edit of 20,000 lines has."""

_MAX_OPEN_NAMES = 100
"""Of a model that takes other names than its fields; more than any of them knows."""

_BLOCK_BYTES = 1 << 16
_ESCAPE = re.compile(rb"\\.", re.DOTALL)


def has_too_many_values(data: bytes) -> bool:
    """Whether JSON holds more than `MAX_VALUES` values, names included; parses nothing."""
    if count_values(data) <= MAX_VALUES:  # what stands in texts included
        return False
    # A quotation mark is half of a character in other encodings.
    is_utf8 = json.detect_encoding(data).startswith("utf-8")
    return not is_utf8 or _has_too_many_outside_of_texts(data)


def _has_too_many_outside_of_texts(data: bytes) -> bool:
    values, at, in_text = 0, 0, False
    while at < len(data) and values <= MAX_VALUES:
        block = data[at : at + _BLOCK_BYTES]
        if (len(block) - len(block.rstrip(b"\\"))) % 2:  # half an escape
            block = data[at : at + _BLOCK_BYTES + 1]
        at += len(block)
        parts = _ESCAPE.sub(b"", block).split(b'"')
        values += count_values(b"".join(parts[in_text::2]))
        in_text ^= len(parts) % 2 == 0
    return values > MAX_VALUES


def count_values(data: bytes) -> int:
    """How many values JSON holds, at most: commas in texts count, too."""
    return sum(map(data.count, (b",", b"[", b"{")))


def cut_names(most: int) -> BeforeValidator:
    """A validator of a table that leaves one name too many, which is refused by its length."""

    def cut(given: Any) -> Any:
        is_long = isinstance(given, dict) and len(given) > most
        return dict(islice(given.items(), most + 1)) if is_long else given

    return BeforeValidator(cut)


class BoundedModel(BaseModel):
    """A model that reports one of the names it doesn't know, however many there are."""

    @model_validator(mode="before")
    @classmethod
    def _cut_names(cls, given: Any) -> Any:
        is_open = cls.model_config.get("extra") == "allow"
        most = _MAX_OPEN_NAMES if is_open else len(cls.model_fields) + 1
        if isinstance(given, dict) and len(given) > most:
            return dict(islice(given.items(), most))
        return given
