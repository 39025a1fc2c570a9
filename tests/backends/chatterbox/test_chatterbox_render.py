"""A dialog through the command line, on each Chatterbox variant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import soundfile
from chatterbox_checkpoint import (
    VARIANTS,
    checkpoint,
    one_thread,
    small_architecture,
    voice_of,
)

from studio.app import main

pytestmark = pytest.mark.models
pytest.importorskip("torch", reason="the model packages are not installed")
pytest.importorskip("chatterbox", reason="the model packages are not installed")


@pytest.mark.parametrize("lines", [4, pytest.param(12, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_dialog_of_3_speakers(
    variant: str,
    lines: int,
    tmp_path_factory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CHATTERBOX_MODEL", str(checkpoint(variant, tmp_path_factory)))
    script = "\n".join(f"{('Ida', 'Tom', 'Ann')[idx % 3]}: Line {idx}." for idx in range(lines))
    (tmp_path / "scene.txt").write_text(script)
    tom = voice_of("Tom", 110, variant).sample.clip
    soundfile.write(tmp_path / "tom.wav", tom.samples, tom.rate_hz)
    argv = ["render", str(tmp_path / "scene.txt"), "-o", str(tmp_path / "scene.wav"), "--json"]
    argv += ["--backend", variant, "--seed", "1", "--voice", f"Tom={tmp_path / 'tom.wav'}"]
    argv += ["--workspace", str(tmp_path / "workspace")]
    with small_architecture(variant), one_thread():
        status = main(argv)
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (status, report["failed"], report["segments"]) == (0, [], lines)
    assert report["backend"] == variant
    assert report["max_in_flight"] == 3
    assert soundfile.info(tmp_path / "scene.wav").duration == pytest.approx(report["audio_s"])
