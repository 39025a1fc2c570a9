"""How many values JSON holds is counted without parsing it, and what stands in texts isn't one."""

from __future__ import annotations

import json

import pytest

from studio.storage.json_bounds import has_too_many_values


@pytest.mark.parametrize(
    ("value", "is_too_many"),
    [
        ([1] * 499_999, False),
        ([1] * 500_001, True),
        ([[]] * 300_000, True),
        ({str(number): 1 for number in range(500_001)}, True),
        (["x,[{" * 400_000, '\\",[{' * 400_000, "\\" * 65_535, "," * 700_000], False),
        (["x,[{" * 400_000, *[1] * 500_001], True),
        (["é" * 65_535 + '"', "\\", *['\\\\","'] * 240_000], False),
    ],
    ids=["numbers", "more numbers", "lists", "names", "texts", "texts and numbers", "escapes"],
)
def test_values_are_counted_outside_of_texts(value: object, is_too_many: bool) -> None:
    assert has_too_many_values(json.dumps(value, separators=(",", ":")).encode()) is is_too_many


def test_nothing_is_hidden_by_another_encoding() -> None:
    hidden = json.dumps([1] * 600_000).replace("[1", '["∀", 1', 1)
    assert has_too_many_values(hidden.encode("utf-16-le"))
