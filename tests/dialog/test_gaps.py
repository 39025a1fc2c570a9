"""The gap before each line: the line's, its speaker's, or the usual one with its spread."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from studio.dialog.formats.dialog_file import (
    Format,
    export_dialog,
    import_dialog,
    read_dialog_text,
)
from studio.dialog.gaps import GAP, Gaps, spread_gap
from studio.dialog.model import Dialog, Speech
from studio.errors import ScriptError

CASES = json.loads(Path(__file__).with_name("gap_cases.json").read_text("utf-8"))
"""Scripts and their gaps; the page's own test counts the same ones."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_gap_before_each_line(case: dict[str, object]) -> None:
    dialog = read_dialog_text(str(case["script"])).dialog
    assert list(Gaps(float(str(case["gap_s"]))).find(dialog)) == case["gaps_s"]


def test_a_speaker_has_a_gap_of_its_own() -> None:
    dialog = read_dialog_text("Ida: One.\nTom: Two.\nida: Three.\nTom: Four.").dialog
    gaps = list(Gaps(0.0, {"ida": 1.0}).find(dialog))
    assert gaps[:2] == [0.0, 0.0]
    assert gaps[3] == 0.0
    assert gaps[2] == spread_gap(1.0, "Three.")


def test_gaps_differ_naturally_and_are_the_same_each_time() -> None:
    lines = [f"This is what was said as number {number}." for number in range(2_000)]
    found = [spread_gap(0.4, line) for line in lines]
    assert found == [spread_gap(0.4, line) for line in lines]
    assert min(found) >= 0.28
    assert max(found) <= 0.52
    assert statistics.mean(found) == pytest.approx(0.4, abs=0.005)
    assert statistics.stdev(found) == pytest.approx(0.049, abs=0.004)
    middle = sum(0.34 <= gap <= 0.46 for gap in found) / len(found)
    assert middle == pytest.approx(0.75, abs=0.04)
    assert len(set(found)) > 150


@pytest.mark.parametrize("format_", [Format.SCRIPT, Format.FOUNTAIN, Format.CSV, Format.JSON])
def test_every_format_keeps_a_lines_gap(format_: Format) -> None:
    dialog = Dialog((Speech("Ida", "One."), Speech("Tom", "Two.", params={GAP: 0.8})))
    written = export_dialog(dialog, format_)
    assert import_dialog(written, f"scene.{format_.value}").dialog == dialog


@pytest.mark.parametrize("gap", ["-0.1", "31", "soon", "true"])
def test_a_gap_that_cannot_be_used_is_refused_with_its_line(gap: str) -> None:
    with pytest.raises(ScriptError, match=r"Line 2: The gap .* can't be used"):
        read_dialog_text(f"[Ida] One.\n[Tom | gap_s:{gap}] Two.")
