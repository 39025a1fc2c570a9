"""Sounds that pass for a voice, made here: a gliding pitch with breath and pauses."""

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Clip


def voice_like(
    duration_s: float, *, pitch_hz: float = 140.0, rate_hz: int = STUDIO_RATE_HZ
) -> Clip:
    """Words of 0.3 s with 0.1 s of silence between them; the pitch glides as speech does."""
    t = np.arange(round(duration_s * rate_hz)) / rate_hz
    glide = pitch_hz * (1 + 0.12 * np.sin(2 * np.pi * 2.1 * t))
    phase = 2 * np.pi * np.cumsum(glide) / rate_hz
    wave = sum(np.sin(k * phase) / k for k in range(1, 9))
    breath = np.random.default_rng(3).normal(size=len(t)) * 0.02
    return Clip(((0.3 * wave + breath) * (t % 0.4 < 0.3)).astype(np.float32), rate_hz)
