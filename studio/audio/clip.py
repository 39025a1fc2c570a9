"""Audio in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]

STUDIO_RATE_HZ = 24_000
"""Every clip on a timeline has this rate; the neural voices make it natively."""


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """Mono audio: float32 [samples] within [-1, 1] at `rate_hz`."""

    samples: Samples
    rate_hz: int = STUDIO_RATE_HZ

    def __post_init__(self) -> None:
        """Hold every clip to its shape and type."""
        assert self.samples.ndim == 1, f"a clip is mono, not {self.samples.shape}"
        assert self.samples.dtype == np.float32, f"a clip is float32, not {self.samples.dtype}"
        assert self.rate_hz > 0

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.samples)

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.rate_hz

    @classmethod
    def silence(cls, duration_s: float, rate_hz: int = STUDIO_RATE_HZ) -> Clip:
        """Exact silence, rounded to the nearest sample."""
        return cls(np.zeros(round(duration_s * rate_hz), dtype=np.float32), rate_hz)
