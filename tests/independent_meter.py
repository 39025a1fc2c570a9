"""Loudness by another implementation than the studio's; it comes with the model packages."""

from __future__ import annotations

import numpy as np
import pytest

from studio.audio.clip import STUDIO_RATE_HZ


def lufs(samples: np.ndarray, rate_hz: int = STUDIO_RATE_HZ) -> float:
    """Integrated loudness; a test that asks for it is skipped where nobody can judge."""
    judge = pytest.importorskip("pyloudnorm", reason="it comes with the model packages")
    return judge.Meter(rate_hz).integrated_loudness(np.asarray(samples, dtype=np.float64))
