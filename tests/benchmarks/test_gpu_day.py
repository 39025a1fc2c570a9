"""`bench gpu-day`: rehearsed on the CPU, and the rules by which its figures change a default."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu_day import PARTS, Part, count_tests, read_tables, run_gpu_day
from benchmarks.gpu_rules import Figures, decide

ROOT = Path(__file__).parents[2]
COLUMNS = ("engine", "audio s a second", "p95", "notes")


def test_the_parts_fit_into_18_minutes():
    assert sum(part.budget_s for part in PARTS) <= 17 * 60
    assert PARTS[0].argv[:3] == ("test", "-m", "gpu")


@pytest.mark.models
@pytest.mark.slow
def test_a_rehearsal_goes_through_every_part_and_writes_the_report(tmp_path: Path):
    pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")
    command = [sys.executable, "-m", "studio", "bench", "gpu-day", "--rehearse"]
    done = subprocess.run(
        [*command, "--report", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert [part["name"] for part in report["parts"]] == [part.name for part in PARTS]
    statuses = {part["name"]: part["status"] for part in report["parts"]}
    assert statuses.pop("Chatterbox Turbo") == "left out"
    assert set(statuses.values()) == {"done"}
    parts = {part["name"]: part for part in report["parts"]}
    assert parts["GPU tests of the engine"]["tests"]["skipped"] > 0
    engines = [row["engine"] for row in parts["mixed sampling"]["rows"]]
    assert engines == ["this engine, 2 slots", "this engine, 2 slots, mixed sampling"]
    assert "SNR" in parts["codec"]["rows"][1]["notes"]
    verdicts = {one["what"]: one["answer"] for one in report["verdicts"]}
    assert verdicts["the batched engine on CUDA (on)"] == "undecided", "no test ran on a card"
    assert verdicts["a minute under lines of every kind"] == "no fault"
    text = (tmp_path / "report.md").read_text()
    assert "none of its figures is of any use" in text
    assert "| this engine, 2 slots, batch and wait |" in text


def test_a_part_that_fails_or_takes_too_long_is_ended_and_the_next_one_follows(
    tmp_path: Path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    slow = tmp_path / "test_slow.py"
    slow.write_text("import time\ndef test_it(): time.sleep(600)\n")
    quick = tmp_path / "test_quick.py"
    quick.write_text("def test_it(): pass\ndef test_not(): raise OSError('no card')\n")
    day = tmp_path / "day"
    day.mkdir()
    (day / "slow.log").write_text("| engine |\n|---|\n| of another day |\n")
    # No time at all: it is ended before it says anything. The second part has time of its own.
    parts = [Part("slow", 0, ("test", str(slow))), Part("quick", 600, ("test", str(quick)))]
    assert run_gpu_day(day, parts=parts) == 1
    late, failed = json.loads((day / "report.json").read_text())["parts"]
    assert (late["status"], failed["status"]) == ("out of time", "failed")
    assert (late["rows"], late["tests"], late["tail"]) == ([], {}, ["It said nothing."])
    assert failed["tests"] == {"passed": 1, "failed": 1}
    assert any("no card" in line for line in failed["tail"])
    text = (day / "report.md").read_text()
    assert "out of time, 0 of 0 s\n\n\n```\nIt said nothing.\n```" in text


def test_what_a_part_said_before_its_time_was_up_is_in_the_report(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    row = "\\n| engine | p95 |\\n|---|---|\\n| ours | 3 |"
    slow = tmp_path / "test_slow.py"
    slow.write_text(
        f"import time\ndef test_it():\n  print('{row}', flush=True)\n  time.sleep(600)\n"
    )
    for budget_s in (3, 20, 120):  # longer where it hasn't even begun
        run_gpu_day(
            tmp_path / f"{budget_s}", parts=[Part("slow", budget_s, ("test", "-s", str(slow)))]
        )
        [late] = json.loads((tmp_path / f"{budget_s}" / "report.json").read_text())["parts"]
        assert late["status"] == "out of time"
        if late["rows"]:
            break
    assert late["rows"] == [{"engine": "ours", "p95": "3"}]


def test_nothing_said_is_no_table():
    assert [*read_tables([])] == []
    assert count_tests([]) == {}


def test_a_row_that_was_cut_short_is_left_out():
    said = ["noise", "| engine | p95 |", "|---|---|", "| ours | 3 |", "| the", "| theirs | 4 |"]
    assert [*read_tables(said)] == [
        {"engine": "ours", "p95": "3"},
        {"engine": "theirs", "p95": "4"},
    ]
    assert count_tests(["== 3 failed, 12 passed, 1 warning in 4.20s =="])["failed"] == 3


def figures(*rows: tuple[str, ...], part: str, agree: bool | None = True) -> Figures:
    made = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    return Figures({part: made}, slots=64, tests_agree=agree)


def answer(what: str, given: Figures) -> str:
    return next(one.answer for one in decide(given) if one.what.startswith(what))


@pytest.mark.parametrize(
    ("speed", "ratio", "said"),
    [("130", "57.2", "keep it"), ("130", "49.0", "turn it off"), ("110", "80.0", "turn it off")],
)
def test_tf32_needs_speed_and_a_ratio_of_signal_to_noise(speed, ratio, said):
    plain = ("codec alone, 64 lines, float32", "100", "-", "-")
    tf32 = ("codec alone, 64 lines, TF32", speed, "-", f"SNR {ratio} dB")
    assert answer("TTS_TF32", figures(plain, tf32, part="codec")) == said


@pytest.mark.parametrize(("p95", "said"), [("54", "no fault"), ("56", "find what is captured")])
def test_a_sampling_of_another_kind_must_not_wait(p95, said):
    usual = ("this engine, 64 slots", "100", "40", "-")
    mixed = ("this engine, 64 slots, mixed sampling", "100", p95, "-")
    given = figures(usual, mixed, part="mixed sampling")
    assert answer("first audio of lines of mixed", given).startswith(said)


@pytest.mark.parametrize(
    ("agree", "said"), [(True, "keep it"), (False, "turn it off"), (None, "undecided")]
)
def test_a_card_whose_tests_fail_decodes_line_by_line(agree, said):
    given = figures(part="0.6B", agree=agree)
    assert answer("the batched engine on CUDA", given).startswith(said)
