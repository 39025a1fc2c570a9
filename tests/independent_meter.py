"""Loudness by another implementation than the studio's."""

from __future__ import annotations

import numpy as np
import pyloudnorm

from studio.audio.clip import STUDIO_RATE_HZ


def lufs(samples: np.ndarray, rate_hz: int = STUDIO_RATE_HZ) -> float:
    """Integrated loudness."""
    return pyloudnorm.Meter(rate_hz).integrated_loudness(np.asarray(samples, dtype=np.float64))
