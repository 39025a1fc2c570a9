"""A scene through the command line, from a small checkpoint in a local folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import soundfile

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

from qwen3_checkpoint import FEW_GROUPS, small_checkpoint
from qwen3_speakers import recording, use_one_core

from studio.app import main
from studio.audio.clip import write_wav

pytestmark = pytest.mark.models

SCRIPT = "\n".join(
    f"{name}: Line {number}, {name}." for number in range(2) for name in ("Ida", "Bruno", "Tom")
)


@pytest.fixture
def render(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setenv("QWEN3_TTS_MODEL", str(small_checkpoint("base", groups=FEW_GROUPS)))
    monkeypatch.setenv(
        "TTS_BATCH_SIZE", "1"
    )  # line by line, whose sound is the same in any company
    (tmp_path / "scene.txt").write_text(SCRIPT)
    use_one_core()

    def run(*options: str) -> tuple[int, dict]:
        argv = ["render", str(tmp_path / "scene.txt"), "-o", str(tmp_path / "scene.wav"), "--json"]
        argv += ["--backend", "qwen3", "--workspace", str(tmp_path / "workspace"), "--seed", "3"]
        status = main([*argv, *options])
        return status, json.loads(capsys.readouterr().out.splitlines()[-1])

    return run


def test_6_lines_of_3_speakers_and_again_after_a_restart(render, tmp_path: Path):
    voices = []
    for name, pitch_hz in {"Ida": 200, "Bruno": 90, "Tom": 130}.items():
        write_wav(tmp_path / f"{name}.wav", recording(pitch_hz))
        voices += ["--voice", f"{name}={tmp_path / name}.wav"]
    status, report = render(*voices)
    assert (status, report["failed"], report["segments"]) == (0, [], 6)
    assert report["backend"] == "qwen3"
    assert report["max_in_flight"] == 3
    first = soundfile.read(tmp_path / "scene.wav")[0]
    assert len(first) == round(report["audio_s"] * 24_000)
    assert len(list((tmp_path / "workspace" / "conditioning" / "qwen3").iterdir())) == 3

    assert render(*voices)[0] == 0
    assert (soundfile.read(tmp_path / "scene.wav")[0] == first).all()


def test_a_speaker_without_a_sample_fails_with_the_remedy(render):
    status, report = render()
    assert status == 1
    assert len(report["failed"]) == 6
    assert "Add a sample" in report["failed"][0]["message"]
