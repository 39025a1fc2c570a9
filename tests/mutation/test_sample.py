"""The sample of mutants stays as it is when something else changes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="pip install -r tests/mutation/requirements.txt")
sys.path.append(str(Path(__file__).parent))

from mutants import sample

ONE = """
MOST: int = 5


def is_few(count: int | None) -> bool:
    return count is not None and count < MOST
"""
OTHER = """
def total(*counts: int) -> int:
    found = 0
    for count in counts:
        found = found + count
    return found
"""


def names(root: Path, text: str) -> list[str]:
    (root / "studio").mkdir(exist_ok=True)
    (root / "studio" / "counts.py").write_text(text, "utf-8")
    return [mutant.name for mutant in sample(root, "studio", 99)]


def test_a_function_above_leaves_the_mutants_of_another_as_they_are(tmp_path: Path) -> None:
    alone = names(tmp_path, ONE)
    assert len(alone) == 4  # the number, two comparisons, `and`
    together = names(tmp_path, OTHER + ONE)
    assert [name for name in together if "::total::" not in name] == alone
    assert len(together) > len(alone)


def test_types_and_what_does_not_compile_are_left_out(tmp_path: Path) -> None:
    found = names(tmp_path, "def joined(*parts: int | str) -> int | str:\n    return [*parts]\n")
    assert found == []


def test_a_mutant_changes_one_line(tmp_path: Path) -> None:
    names(tmp_path, ONE)
    for mutant in sample(tmp_path, "studio", 99):
        change = mutant.change(ONE).splitlines()
        assert [line[0] for line in change if line[0] in "+-"] == ["-", "+"]
        assert mutant.line in (2, 6)
