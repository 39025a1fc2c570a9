"""The table in which engines stand side by side: what is compared, and the turns they take."""

from __future__ import annotations

import itertools

import pytest

from benchmarks.engine_table import Failed, rows_in_turns
from benchmarks.metrics import EngineMetrics

BY_PROCESSOR, BY_WALL = "times the first row, processor time", "times the first row, wall time"


def engine(name: str, wall_s: float, cpu_s: float | None) -> EngineMetrics:
    return EngineMetrics(name, 12.0, wall_s, (), 0, lines=2, cpu_s=cpu_s)


def test_a_busy_machine_changes_no_ratio_of_a_cpu() -> None:
    measured = [engine("package", 40.0, 6.0), engine("ours", 2.0, 3.0), engine("rival", 2.0, None)]
    assert [row[BY_PROCESSOR] for row in rows_in_turns("0.6B", "cpu", 1, lambda: measured)] == [
        "1.00",
        "2.00",
        "-",
    ]


def test_a_card_is_compared_by_the_time_that_passes() -> None:
    measured = [engine("package", 40.0, 6.0), engine("ours", 2.0, 3.0)]
    rows = rows_in_turns("0.6B", "cuda", 1, lambda: measured)
    assert [row[BY_WALL] for row in rows] == ["1.00", "20.00"]


@pytest.mark.parametrize("size", ["tiny", "turbo tiny"])
def test_a_toy_has_no_ratio(size: str) -> None:
    measured = [engine("package", 40.0, 61.1), engine("ours", 2.0, 0.79)]
    assert {row[BY_PROCESSOR] for row in rows_in_turns(size, "cpu", 1, lambda: measured)} == {"-"}


def test_engines_take_turns_and_one_that_failed_once_has_no_median() -> None:
    costs_s = itertools.count(1)

    def measure() -> list[EngineMetrics | Failed]:
        cost_s = float(next(costs_s))
        second = Failed("ours", "no room") if cost_s == 2 else engine("ours", 1.0, 1.0)
        return [engine("package", 1.0, cost_s), second, engine("list", 1.0, 1.0)]

    rows = list(rows_in_turns("mid", "cpu", 3, measure))
    assert [row["engine"] for row in rows] == [
        *("package", "ours", "list"),
        *("package", "ours: failed: no room", "list"),
        *("package", "ours", "list"),
        *("package", "list"),
    ]
    assert [row["runs"] for row in rows[2::3]] == ["1 of 3", "2 of 3", "3 of 3"]
    assert [(row["runs"], row[BY_PROCESSOR]) for row in rows[9:]] == [
        ("median of 3", "1.00"),
        ("median of 3", "2.00"),
    ]
