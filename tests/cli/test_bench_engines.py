"""`bench engines` on a tiny model: every engine makes the same seconds of audio."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch

from studio.app import main
from studio.backends.batched.roofline import copied_bytes_per_s
from studio.backends.batched.yardstick import SIZES
from studio.backends.batched.yardstick_runs import Figures
from studio.cli import bench_engines
from studio.cli.bench_engines import engine_rows, middle_of, timed_lines
from studio.errors import SettingError

pytestmark = pytest.mark.models


def test_lines_have_the_lengths_of_the_sample_dialogs():
    lines = timed_lines(60)
    assert [line.frames for line in lines[:3]] == [line.frames for line in timed_lines(3)]
    lengths = sorted(line.frames for line in lines)
    assert lengths[0] < 30 < lengths[-1]
    assert all(line.text for line in lines)


def test_the_table_on_a_tiny_model(monkeypatch, capsys):
    torch.set_num_threads(1)
    monkeypatch.setitem(bench_engines._SLOTS, "cpu", (1, 4))
    monkeypatch.setitem(bench_engines._TRIES, "cpu", 2)
    monkeypatch.setattr(bench_engines, "_RUNS", 2)
    assert main(["bench", "engines", "--size", "tiny", "--lines", "4"]) == 0
    rows = [
        line.split(" | ") for line in capsys.readouterr().out.splitlines() if "| tiny |" in line
    ]
    assert [row[0] for row in rows] == [
        "| qwen_tts, one by one",
        "| this engine, 1 slot",
        "| this engine, 4 slots",
    ]
    assert len({row[2] for row in rows}) == 1  # seconds of audio
    assert all(float(row[4]) > 0 for row in rows)
    assert {row[-1] for row in rows} == {"2 |"}


def test_a_row_is_the_median_of_the_runs_and_all_their_first_audio():
    runs = [
        Figures("ours", 10.0, wall_s, (0.1, first_s), 5, wall_s / 100)
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
        next(engine_rows(size="huge", device="cpu", lines=1, batch_python=None))


def test_a_python_without_the_batch_package_is_refused_with_its_reason(tmp_path: Path):
    with pytest.raises(SettingError, match="faster_qwen3_tts_batch"):
        bench_engines._batch_rival(sys.executable, tmp_path, timed_lines(1))
    with pytest.raises(SettingError, match="no such program"):
        bench_engines._batch_rival(str(tmp_path / "python"), tmp_path, timed_lines(1))


def test_copies_take_time():
    assert copied_bytes_per_s("cpu") > 1e8
