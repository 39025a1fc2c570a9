"""A cache of what is found out about texts that a request may have made as long as it likes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_MOST_CHARS = 2_000


def text_cache(function: Callable[P, R]) -> Callable[P, R]:
    """Keep a function's last 1,000 results, but none of long texts: those would fill the memory."""
    kept: Callable[P, R] = cast(Any, lru_cache(maxsize=1_000)(function))

    @wraps(function)
    def find(*args: P.args, **kwargs: P.kwargs) -> R:
        for one in args:
            if isinstance(one, str) and len(one) > _MOST_CHARS:
                return function(*args, **kwargs)
        return kept(*args, **kwargs)

    return find
