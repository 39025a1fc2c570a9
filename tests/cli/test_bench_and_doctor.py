"""`bench concurrency` and `doctor`, on the voices that can run here."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from benchmarks.command import bench_dialog
from benchmarks.concurrency import BOUNDS, GpuUse, concurrency_rows
from studio.app import main
from studio.backends import registry
from studio.backends.base import Capabilities
from studio.backends.espeak.backend import DraftBackend
from studio.backends.options import BackendOptions

pytestmark = pytest.mark.slow


class Cloning(DraftBackend):
    """The draft voice, which here asks for samples like a neural one."""

    name = "cloning"
    title = "Cloning"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(24_000, 300, cloning=True, described_voices=True)

    def condition(self, voice):
        assert voice.sample is not None
        assert voice.description is not None
        return super().condition(voice)

    def to_fetch(self) -> str | None:
        return "Its weights are not on this machine yet; choose it by name to download them."


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"cloning": lambda _: Cloning(), "draft": lambda _: DraftBackend()}
    monkeypatch.setattr(registry, "BACKENDS", table)


def test_each_bound_is_a_row_and_the_first_is_the_measure(registered: None) -> None:
    rows = list(concurrency_rows(bench_dialog(8), BackendOptions(), None))
    assert [row["backend"] for row in rows] == ["draft"] * len(BOUNDS)
    assert [str(row["in flight"]).split()[0] for row in rows] == [str(bound) for bound in BOUNDS]
    assert rows[0]["times as fast"] == "1.00"
    assert len({row["audio s"] for row in rows}) == 1


@pytest.mark.parametrize(("lines", "bounds"), [(1, ["1"]), (2, ["1", "2"]), (5, ["1", "3", "5"])])
def test_a_short_dialog_has_short_lines_and_no_bound_beyond_them(
    registered: None, lines: int, bounds: list[str]
) -> None:
    rows = list(concurrency_rows(bench_dialog(lines), BackendOptions(), "draft"))
    assert [str(row["in flight"]).split()[0] for row in rows] == bounds
    assert all(0 < float(str(row["audio s"])) < 2 * lines for row in rows)


def test_a_backend_that_clones_gets_samples(registered: None) -> None:
    rows = list(concurrency_rows(bench_dialog(4), BackendOptions(), "cloning"))
    assert len(rows) == len(BOUNDS)


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "concurrency", "--backend", "draft", "--lines", "8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| backend | lines | cut | in flight |")
    assert len(lines) == 2 + len(BOUNDS)
    assert {line.count("|") for line in lines} == {10}


def test_doctor_tells_of_each_backend(
    registered: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "can run after a download: Its weights are not on this machine yet" in told
    assert re.search(r"draft +can run\n", told)
    monkeypatch.setattr(DraftBackend, "unavailable", lambda _: "Its package is missing.")
    assert main(["doctor"]) == 1
    assert "can't run: Its package is missing." in capsys.readouterr().out


def test_doctor_tells_of_a_driver_that_hangs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver = tmp_path / "nvidia-smi"
    driver.write_text("#!/bin/sh\nexec sleep 60\n")
    driver.chmod(0o755)
    find = shutil.which
    monkeypatch.setattr(
        "shutil.which", lambda name: str(driver) if name == "nvidia-smi" else find(name)
    )
    monkeypatch.setattr("studio.cli.doctor._NVIDIA_SMI_S", 0.1)
    assert main(["doctor"]) == 0
    assert re.search(r"graphics card +nvidia-smi didn't answer", capsys.readouterr().out)


def test_doctor_tells_of_a_card_that_gives_no_context(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> str:
        raise RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported")

    monkeypatch.setattr("studio.cli.doctor.choose_device", broken)
    monkeypatch.setattr("studio.backends.qwen3.backend.Qwen3Backend.describe_capacity", broken)
    monkeypatch.setenv("TTS_DEVICE", "cuda")
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"device +cuda \(TTS_DEVICE\): CUDA error", told)
    assert re.search(r"qwen3 +can't be told: RuntimeError: CUDA error", told)
    assert "kernel errors" not in told


class TestGpuUse:
    def test_without_a_card_there_is_no_figure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("shutil.which", lambda _: None)
        with GpuUse() as used:
            pass
        assert used.mean_percent is None

    def test_the_mean_of_what_the_driver_says(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        driver, said = tmp_path / "nvidia-smi", tmp_path / "said"
        os.mkfifo(said)
        driver.write_text(f"#!/bin/sh\nprintf '40\\n60\\n[N/A]\\n'; : > {said}; exec sleep 60\n")
        driver.chmod(0o755)
        monkeypatch.setattr("shutil.which", lambda _: str(driver))
        with GpuUse() as used:
            said.read_bytes()  # waits until the driver has spoken
        assert used.mean_percent == 50
