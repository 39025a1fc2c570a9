"""`bench engines` on a tiny model: every engine makes the same seconds of audio."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch

from benchmarks import baselines, qwen3_engines, qwen3_trials
from benchmarks.bench_options import parse_counts
from benchmarks.engine_table import middle_of
from benchmarks.metrics import EngineMetrics, TimedLine, measure_copy_bytes_per_s
from benchmarks.qwen3_engines import EngineChoice, build_timed_lines, engine_rows
from benchmarks.synthetic_qwen3 import SIZES
from studio.app import main
from studio.backends.batching import memory_plan
from studio.backends.batching.int8_matrix import can_multiply_int8
from studio.errors import SettingError

pytestmark = pytest.mark.models


def test_lines_have_the_lengths_of_the_sample_dialogs():
    lines = build_timed_lines(60)
    assert [line.frames for line in lines[:3]] == [line.frames for line in build_timed_lines(3)]
    lengths = sorted(line.frames for line in lines)
    assert lengths[0] < 30 < lengths[-1]
    assert all(line.text for line in lines)


def rows_of(capsys) -> list[list[str]]:
    told = capsys.readouterr().out.splitlines()
    return [line.strip("| ").split(" | ") for line in told if "| tiny |" in line]


def short_lines(count: int) -> list[TimedLine]:
    """A tenth as long: the package's own loop takes seconds for a line."""
    return [replace(line, frames=3 + line.frames // 10) for line in build_timed_lines(count)]


def test_the_table_on_a_tiny_model(monkeypatch, capsys):
    torch.set_num_threads(1)
    monkeypatch.setitem(qwen3_engines._TRIES, "cpu", 2)
    monkeypatch.setattr(qwen3_engines, "build_timed_lines", short_lines)
    asked = ["--size", "tiny", "--lines", "2,1", "--slots", "2", "--runs", "2"]
    asked += ["--engines", "reference,ours"]
    assert main(["bench", "engines", *asked]) == 0
    rows = rows_of(capsys)
    engines = [
        ("qwen_tts, one by one", "2"),
        ("this engine, 2 slots", "2"),
        ("this engine, 2 slots", "1"),
    ]
    assert [(row[0], row[2]) for row in rows] == engines * 3
    assert [row[-1] for row in rows[::3]] == ["1 of 2", "2 of 2", "median of 2"]
    assert len({row[3] for row in rows if row[2] == "2"}) == 1  # seconds of audio
    assert all(float(row[5]) > 0 for row in rows), "processor seconds"
    assert all(float(row[6]) > 0 for row in rows)
    assert {row[7] for row in rows} == {"-"}, "no ratio of so small a model"


def shortest_lines(count: int) -> list[TimedLine]:
    """One line is three times as long as the others, so that slots become free one by one."""
    return [TimedLine(f"Line {n}.", 9 if n == 0 else 3) for n in range(count)]


def test_a_row_for_each_way_to_batch_and_for_voices_with_transcripts(monkeypatch, capsys):
    torch.set_num_threads(1)
    monkeypatch.setitem(qwen3_engines._TRIES, "cpu", 1)
    monkeypatch.setattr(qwen3_engines, "build_timed_lines", shortest_lines)
    asked = ["--size", "tiny", "--lines", "4", "--slots", "2", "--runs", "1"]
    assert main(["bench", "engines", *asked]) == 0
    table = capsys.readouterr().out.splitlines()
    [header] = [line.strip("| ").split(" | ") for line in table if line.startswith("| engine")]
    rows = [
        dict(zip(header, line.strip("| ").split(" | "), strict=True))
        for line in table
        if "| tiny |" in line
    ]
    assert [row["engine"] for row in rows] == [
        "qwen_tts, one by one",
        "qwen_tts, list of all texts",
        "this engine, 2 slots",
        "this engine, 2 slots, batch and wait",
        "qwen_tts, one by one, with transcripts",
        "this engine, 2 slots, with transcripts",
        "one step, 2 slots, eager",
        "one step, 2 slots, graph replay: needs CUDA",
    ]
    spoken, (eager, replay) = rows[:6], rows[6:]
    assert {row["audio s"] for row in spoken} == {"1.4"}, "18 frames, 12.5 a second"
    assert all(float(row["processor s"]) > 0 for row in rows[:7])
    assert [row["slots refilled"] for row in spoken] == ["-", "-", "2", "0", "-", "2"]
    assert float(eager["ms a frame"]) > 0
    assert (eager["audio s"], eager["audio s a second"]) == ("-", "-")
    assert (replay["ms a frame"], replay["processor s"]) == ("-", "-")


@pytest.mark.parametrize(("free_bytes", "size"), [(9_900_000_000, "mid"), (11_000_000_000, "0.6B")])
def test_the_size_that_people_use_is_measured_where_it_fits(
    free_bytes: int, size: str, monkeypatch, capsys
):
    monkeypatch.setattr(memory_plan, "measure_free_bytes", lambda _: free_bytes)
    assert qwen3_engines.choose_size("cpu") == size
    said = capsys.readouterr().err
    assert f"The {size} size is measured: 0.6B needs 10 GB, and" in said
    assert f"{free_bytes / 1e9:.1f} GB are free" in said


def test_an_engine_that_fails_is_a_row_and_the_others_follow(monkeypatch, caplog):
    def broken(*_given, **_named):
        raise RuntimeError("no\nsuch | thing")

    monkeypatch.setattr(baselines, "measure_reference", broken)
    monkeypatch.setitem(qwen3_engines._TRIES, "cpu", 1)
    monkeypatch.setattr(qwen3_engines, "build_timed_lines", short_lines)
    rows = engine_rows(
        size="tiny",
        device="cpu",
        lines=(1,),
        batch_python=None,
        wanted=EngineChoice(("reference", "ours"), (1,), runs=1),
    )
    failed, ours = rows
    assert failed["engine"] == "qwen_tts: failed: RuntimeError: no such / thing"
    assert [*failed] == [*ours]
    assert ours["engine"] == "this engine, 1 slot"
    assert "qwen_tts could not be measured" in caplog.text


def test_a_row_comes_before_the_next_engine_is_begun(monkeypatch):
    begun: list[str] = []

    def told(name: str):
        begun.append(name)
        return EngineMetrics(name, 1.0, 1.0, [], 0, lines=1)

    monkeypatch.setattr(baselines, "measure_reference", lambda *_: told("reference"))
    monkeypatch.setattr(qwen3_trials, "measure_qwen3", lambda *_, **__: [told("ours")])
    rows = engine_rows(size="tiny", device="cpu", lines=None, batch_python=None)
    assert next(rows)["first audio ms, p50"] == "-"
    assert begun == ["reference"]
    rows.close()


def test_each_try_listens_to_a_line_of_another_length(monkeypatch):
    heard: list[int] = []
    speaking = qwen3_trials._EngineClient(SimpleNamespace(), lambda *_, **__: None)
    monkeypatch.setattr(speaking, "_first", lambda line, _beside: heard.append(line.frames) or 0.1)
    speaking.first_audio(build_timed_lines(5), beside=0, tries=7)
    lengths = [line.frames for line in build_timed_lines(5)]
    assert heard == [*lengths, *lengths[:2]]


def test_an_unknown_engine_is_refused_with_those_there_are():
    with pytest.raises(
        SettingError, match="reference, list, faster, batch, ours, waiting, transcripts, steps"
    ):
        next(
            engine_rows(
                size="tiny",
                device="cpu",
                lines=None,
                batch_python=None,
                wanted=EngineChoice(("best",)),
            )
        )


@pytest.mark.parametrize("text", ["0", "a", "1,", "-1", ""])
def test_counts_that_are_none_are_refused(text: str):
    with pytest.raises(SettingError, match="whole numbers from 1 on"):
        parse_counts(text)
    assert parse_counts("200,20") == (200, 20)


def test_it_starts_as_a_module_where_everything_is_installed_already():
    asked = [sys.executable, "-m", "studio", "bench", "--help"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=True)
    assert "--engines" in done.stdout


def test_a_row_is_the_median_of_the_runs_and_all_their_first_audio():
    runs = [
        EngineMetrics("ours", 10.0, wall_s, (0.1, first_s), 5, wall_s / 100)
        for wall_s, first_s in ((4.0, 0.2), (9.0, 0.3), (5.0, 0.4))
    ]
    middle = middle_of(runs)
    assert (middle.wall_s, middle.frame_s, middle.speed) == (5.0, 0.05, 2.0)
    assert sorted(middle.first_s) == [0.1, 0.1, 0.1, 0.2, 0.3, 0.4]
    assert middle.ideal_s is None


def test_every_size_has_dimensions_that_fit_each_other():
    for size in SIZES.values():
        assert size.heads % 2 == 0
        assert size.head_dim % 16 == 0
    assert SIZES["0.6B"].hidden * 2 == SIZES["1.7B"].hidden


def test_an_unknown_size_is_refused_with_those_there_are():
    with pytest.raises(SettingError, match=r"tiny, mid, 0\.6B, 1\.7B"):
        next(engine_rows(size="huge", device="cpu", lines=(1,), batch_python=None))


def test_a_python_without_the_batch_package_is_refused_with_its_reason(tmp_path: Path):
    with pytest.raises(SettingError, match="faster_qwen3_tts_batch"):
        qwen3_engines._run_batch_baseline(sys.executable, tmp_path, build_timed_lines(1))
    with pytest.raises(SettingError, match="no such program"):
        qwen3_engines._run_batch_baseline(str(tmp_path / "python"), tmp_path, build_timed_lines(1))


def test_copies_take_time():
    assert 0 < measure_copy_bytes_per_s("cpu") < float("inf")


@pytest.mark.skipif(not can_multiply_int8("cpu"), reason="torch has no FBGEMM here")
def test_the_codes_of_whole_numbers_are_compared_in_three_draws(capsys):
    assert main(["bench", "engines", "--size", "tiny", "--engines", "codes", "--runs", "1"]) == 0
    rows = rows_of(capsys)
    assert [row[0].rpartition(", ")[2] for row in rows] == ["draw 1", "draw 2", "draw 3"]
    for row in rows:
        [shares] = [cell for cell in row if "of 250 frames the same" in cell]
        assert float(shares.split("%")[0]) >= 98
