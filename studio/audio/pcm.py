"""Between float samples and the 16-bit samples that files and streams hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from studio.audio.clip import Samples

Pcm16 = npt.NDArray[np.int16]

_FULL_SCALE = 32_768


def to_pcm16(samples: Samples) -> Pcm16:
    """Round to the nearest 16-bit step; what lies outside [-1, 1) is held at the end of the scale.

    Samples that came from `from_pcm16` come back bit for bit.
    """
    scaled = np.rint(samples * np.float32(_FULL_SCALE))
    pcm: Pcm16 = np.clip(scaled, -_FULL_SCALE, _FULL_SCALE - 1).astype(np.int16)
    return pcm


def from_pcm16(pcm: Pcm16) -> Samples:
    """Scale 16-bit samples to float32 within [-1, 1)."""
    return pcm.astype(np.float32) / np.float32(_FULL_SCALE)
