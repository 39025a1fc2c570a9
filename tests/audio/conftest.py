from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from studio.audio.clip import STUDIO_RATE_HZ, Clip

Harmonic = Callable[..., Clip]


@pytest.fixture
def harmonic() -> Harmonic:
    """A voice-like sound: harmonics of one pitch."""

    def make(
        pitch_hz: float,
        *,
        duration_s: float = 1.0,
        rate_hz: int = STUDIO_RATE_HZ,
        harmonics: int = 12,
    ) -> Clip:
        t = np.arange(round(duration_s * rate_hz)) / rate_hz
        orders = [k for k in range(1, harmonics + 1) if k * pitch_hz < rate_hz / 2]
        wave = sum(np.sin(2 * np.pi * pitch_hz * k * t) / k for k in orders)
        return Clip((0.5 * wave / np.abs(wave).max()).astype(np.float32), rate_hz)

    return make


@pytest.fixture
def encode_with_av() -> Callable[..., Path]:
    """Write a clip by FFmpeg's encoders, as other programs and browsers do."""

    def write(path: Path, clip: Clip, *, container: str, codec: str, channels: int = 1) -> Path:
        layout = "stereo" if channels == 2 else "mono"
        with av.open(str(path), "w", format=container) as output:
            stream = output.add_stream(codec, rate=clip.rate_hz)
            stream.layout = layout
            planes = np.repeat(clip.samples[None], channels, axis=0)
            frame = av.AudioFrame.from_ndarray(planes, format="fltp", layout=layout)
            frame.sample_rate, frame.pts = clip.rate_hz, 0
            frame.time_base = Fraction(1, clip.rate_hz)
            output.mux(stream.encode(frame))
            output.mux(stream.encode(None))
        return path

    return write
