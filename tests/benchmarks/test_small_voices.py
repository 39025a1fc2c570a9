"""The table of the small voices, on a tiny model."""

import sys
from pathlib import Path

import pytest
import sherpa_models
from tiny_hub import TinyHub

from benchmarks import small_voices
from benchmarks.peer_voices import peer_loop
from benchmarks.small_voices import small_voice_rows
from studio.backends.sherpa.catalogue import CATALOGUE, DownloadableModel
from studio.errors import SettingError

pytest.importorskip("sherpa_onnx")


def test_the_table_on_a_tiny_model(monkeypatch, tmp_path):
    def stand_in(*_given):
        return lambda: (2.0, [], 0.5)

    monkeypatch.setattr(small_voices, "_serve", stand_in)  # another process has another hub
    monkeypatch.setattr(small_voices, "_start_peer", stand_in)
    with TinyHub(sherpa_models.piper()).serving(monkeypatch, tmp_path):
        DownloadableModel(CATALOGUE["piper"]).fetch(lambda _progress: None)
        rows = list(small_voice_rows("piper", lines=3, runs=1))
    engines = [row["engine"] for row in rows]
    assert engines == [
        "one line at a time", "3 lines at once", "through /v1/audio/speech", "piper-tts==1.8.0",
    ]  # fmt: skip
    assert {row["size"] for row in rows} == {"piper, installed"}
    assert rows[0]["audio s"] == rows[1]["audio s"]
    assert rows[0]["times the first row, processor time"] == "1.00"
    assert rows[2]["processor s"] == "0.50"


def test_a_peer_speaks_in_an_environment_of_its_own(monkeypatch, tmp_path):
    environment = tmp_path / "kokoro-onnx-0.6.1"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    (environment / "whole").touch()
    (tmp_path / "kokoro_onnx.py").write_text(
        "class Kokoro:\n"
        "    def __init__(self, *paths): assert paths == ('a.onnx', 'a.npz')\n"
        "    def create(self, text, **how): return text.split(), 2\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    files = {"voices": Path("a.npz"), "model": Path("a.onnx")}
    with peer_loop("kokoro", files, tmp_path) as speak:
        audio_s, busy_s = speak(["Come in.", "Is it late?"])
    assert audio_s == 2.5
    assert busy_s >= 0


def test_a_voice_that_isnt_here_is_refused(monkeypatch, tmp_path):
    with (
        TinyHub({}).serving(monkeypatch, tmp_path),
        pytest.raises(SettingError, match="Pocket isn't installed"),
    ):
        list(small_voice_rows("pocket"))
