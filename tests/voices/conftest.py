from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from voice_like import voice_like

from studio.audio.clip import Clip, write_wav

MakeRecording = Callable[..., Path]


@pytest.fixture
def make_clip() -> Callable[..., Clip]:
    return voice_like


@pytest.fixture
def recording(tmp_path: Path) -> MakeRecording:
    """Write a recording that can serve as a sample and give its path."""

    def make(name: str = "voice.wav", *, duration_s: float = 4.0, pitch_hz: float = 140.0) -> Path:
        path = tmp_path / "recordings" / name
        path.parent.mkdir(exist_ok=True)
        write_wav(path, voice_like(duration_s, pitch_hz=pitch_hz))
        return path

    return make
