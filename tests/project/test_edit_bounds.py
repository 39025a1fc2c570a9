"""What an edit or an import may bring in: bounded before it is built, and in linear time."""

from __future__ import annotations

import tracemalloc
from time import process_time

import pytest

from studio.errors import BadInput, ScriptError
from studio.project.document import Document, ProjectLine, parse_fields
from studio.project.edits import EditLookups, apply_edits
from studio.project.ops import OPS_ADAPTER

NOBODY = EditLookups(lambda _: pytest.fail("no take is looked for"), lambda _: None)


def dialog_of(*texts: str) -> Document:
    lines = {
        f"{number:012x}": ProjectLine(f"{number:012x}", speaker="Ida", text=text)
        for number, text in enumerate(texts)
    }
    return Document("Scene", lines, tuple(lines))


def edited(document: Document, *edits: dict) -> Document:
    return apply_edits(document, OPS_ADAPTER.validate_python(list(edits)), NOBODY)


def test_a_replacement_that_would_be_too_long_is_never_built() -> None:
    document = dialog_of("a" * 100_000)
    tracemalloc.start()
    with pytest.raises(ScriptError, match="characters"):
        edited(document, {"op": "replace", "find": "a", "with": "😀" * 10_000})
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 10_000_000


def test_replacements_in_many_lines_are_bounded_together() -> None:
    document = dialog_of(*["a" * 10] * 2_000)
    with pytest.raises(BadInput, match="too long"):
        edited(document, {"op": "replace", "find": "a", "with": "b" * 1_000})


def test_a_long_line_may_become_shorter() -> None:
    document = edited(dialog_of("ab" * 50_000), {"op": "replace", "find": "ab", "with": "c"})
    assert next(iter(document)).text == "c" * 50_000


def cast_seconds(count: int) -> float:
    edits = [{"op": "cast", "speaker": f"Name {n}", "voice": "0" * 12} for n in range(count)]
    checked = OPS_ADAPTER.validate_python(edits)
    begun_s = process_time()
    document = apply_edits(dialog_of("Hello."), checked, NOBODY)
    assert len(document.cast) == count
    return process_time() - begun_s


def test_casting_takes_linear_time() -> None:
    short, long = (min(cast_seconds(count) for _ in range(3)) for count in (1_000, 8_000))
    assert long < 24 * short


def test_the_last_cast_of_a_name_counts() -> None:
    document = edited(
        dialog_of("Hello."),
        {"op": "cast", "speaker": "Ida", "voice": "a"},
        {"op": "cast", "speaker": "Ben", "voice": "b"},
        {"op": "cast", "speaker": "IDA", "voice": "c"},
        {"op": "cast", "speaker": "ben", "voice": None},
    )
    assert document.cast == {"IDA": "c"}


@pytest.mark.parametrize(
    "fields",
    [
        {"params": {f"p{n}": 1 for n in range(100_000)}},
        {"params": {"speed": "x" * 5_000_000}},
        {"speaker": "I" * 5_000_000},
        {"speaker": "\u200b" * 5_000_000},
        {"text": "x" * 5_000_000},
    ],
    ids=["many params", "long param", "long name", "invisible name", "long text"],
)
def test_a_line_takes_nothing_huge(fields) -> None:
    begun_s = process_time()
    with pytest.raises((BadInput, ScriptError)) as refused:
        parse_fields(fields)
    assert process_time() - begun_s < 0.5
    assert len(str(refused.value)) < 300
