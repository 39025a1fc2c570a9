from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.audio.encode import write_wav

MakeRecording = Callable[..., Path]


def spoken(duration_s: float, *, pitch_hz: float = 140.0, rate_hz: int = STUDIO_RATE_HZ) -> Clip:
    """Words of a voice-like sound, 0.3 s each, with 0.1 s of silence between them."""
    t = np.arange(round(duration_s * rate_hz)) / rate_hz
    wave = sum(np.sin(2 * np.pi * pitch_hz * k * t) / k for k in range(1, 9))
    return Clip((0.3 * wave * (t % 0.4 < 0.3)).astype(np.float32), rate_hz)


@pytest.fixture
def make_clip() -> Callable[..., Clip]:
    return spoken


@pytest.fixture
def recording(tmp_path: Path) -> MakeRecording:
    """Write a recording that can serve as a sample and give its path."""

    def make(name: str = "voice.wav", *, duration_s: float = 4.0, pitch_hz: float = 140.0) -> Path:
        path = tmp_path / "recordings" / name
        path.parent.mkdir(exist_ok=True)
        write_wav(path, spoken(duration_s, pitch_hz=pitch_hz))
        return path

    return make
