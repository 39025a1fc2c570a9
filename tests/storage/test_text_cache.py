"""What is kept about texts doesn't grow with their length."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from studio.dialog.directions import is_direction, tells_action
from studio.dialog.reading.headings import role_of
from studio.server.middleware.origin_guard import hostname_of
from studio.storage.text_cache import text_cache


def test_a_result_is_found_once() -> None:
    asked = []

    @text_cache
    def count(text: str, *, more: int = 0) -> int:
        asked.append(text)
        return len(text) + more

    assert [count("Ida"), count("Ida"), count("Ida", more=2), count("Ida", more=2)] == [3, 3, 5, 5]
    assert asked == ["Ida", "Ida"]
    long = "x" * 2_001
    assert [count(long), count(long)] == [2_001, 2_001]
    assert asked[2:] == [long, long]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (is_direction, "{number} softly, and so on{long}"),
        (tells_action, "He goes {number} times and{long}."),
        (role_of, "Column {number}{long}"),
        (hostname_of, "host{number}.{long}.example"),
    ],
    ids=["direction", "action", "heading", "host"],
)
def test_long_texts_are_not_kept(read: Callable[[str], object], text: str) -> None:
    """Thirty of 60,000 characters would be 1.8 MB."""
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(30):
            read(text.format(number=number, long=" on" * 20_000))
        gc.collect()
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 500_000
