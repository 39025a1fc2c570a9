"""JSON from files that anybody may have written: what it holds can be written again."""

from __future__ import annotations

import json
import math
from typing import Any

_SURROGATE = b"\\ud"
"""Begins every half of a character that JSON can hold and UTF-8 can't."""


def read_json(data: bytes) -> Any:
    """Read JSON that this studio could have written.

    Raises:
        ValueError: It isn't JSON, or holds what other JSON can't: NaN, endless numbers, halves of
            characters, endless nesting.
    """
    try:
        value = json.loads(data, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if _SURROGATE in data.lower():
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no number that can be kept")
