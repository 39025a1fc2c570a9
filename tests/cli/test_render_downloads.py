"""`render` with a voice whose weights have to come from a hub first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tiny_hub import TinyHub, safetensors

from studio.app import main
from studio.backends import registry
from studio.backends.base import LoadProgress, WeightSource
from studio.backends.espeak.backend import DraftBackend
from studio.backends.hub.weights import fetch_weights

NEEDS = ("*.safetensors",)


class Fetching(DraftBackend):
    """The draft voice behind a download."""

    name = "fetching"

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        fetch_weights(WeightSource("ada/voice", NEEDS), progress)
        super().load(progress)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TinyHub]:
    hub = TinyHub({"model.safetensors": safetensors(2_000_000)})
    with hub.serving(monkeypatch, tmp_path / "cache"):
        monkeypatch.setattr(registry, "BACKENDS", {"fetching": lambda _: Fetching()})
        yield hub


def render(folder: Path) -> int:
    (folder / "scene.txt").write_text("Ida: Is it here?\nTom: It is.")
    options = ["--backend", "fetching", "--workspace", str(folder / "workspace")]
    return main(["render", str(folder / "scene.txt"), "-o", str(folder / "scene.wav"), *options])


def test_progress_comes_on_standard_error_and_the_scene_is_written(
    hub: TinyHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("studio.engine.model_manager.REPORT_INTERVAL_S", 0.0)
    assert render(tmp_path) == 0
    told = capsys.readouterr()
    assert "Downloading model.safetensors: 0 of 2 MB" in told.err
    assert "Downloading" not in told.out


def test_without_the_hub_every_line_has_the_remedy_and_the_next_try_works(
    hub: TinyHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.break_after["model.safetensors"] = [1_000_000, 0]
    assert render(tmp_path) == 1
    assert not (tmp_path / "scene.wav").exists()
    assert capsys.readouterr().err.count("check the network and try again") == 2
    assert render(tmp_path) == 0
    assert hub.served["model.safetensors"] == len(hub.files["model.safetensors"])
