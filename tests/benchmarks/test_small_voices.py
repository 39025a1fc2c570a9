"""The table of the small voices, on a tiny model."""

import pytest
import sherpa_models
from tiny_hub import TinyHub

from benchmarks.small_voices import small_voice_rows
from studio.backends.sherpa.catalogue import CATALOGUE, DownloadableModel
from studio.errors import SettingError

pytest.importorskip("sherpa_onnx")


def test_the_table_on_a_tiny_model(monkeypatch, tmp_path):
    with TinyHub(sherpa_models.piper()).serving(monkeypatch, tmp_path):
        DownloadableModel(CATALOGUE["piper"]).fetch(lambda _progress: None)
        rows = list(small_voice_rows("piper", lines=3, runs=1))
    engines = [row["engine"] for row in rows]
    assert engines == [
        "one line at a time", "3 lines at once", "sherpa-onnx alone, an object a core",
    ]  # fmt: skip
    assert {row["size"] for row in rows} == {"piper, installed"}
    assert rows[0]["audio s"] == rows[1]["audio s"] == rows[2]["audio s"]
    assert rows[0]["times the first row, processor time"] == "1.00"


def test_a_voice_that_isnt_here_is_refused(monkeypatch, tmp_path):
    with (
        TinyHub({}).serving(monkeypatch, tmp_path),
        pytest.raises(SettingError, match="Pocket isn't installed"),
    ):
        list(small_voice_rows("pocket"))
