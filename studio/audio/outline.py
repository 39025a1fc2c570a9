"""A clip's shape, for drawing it."""

from __future__ import annotations

import numpy as np

from studio.audio.clip import Clip

FULL_SCALE = 100


def outline(clip: Clip, columns: int) -> list[int]:
    """Highest level in each of `columns` equal parts, 0 to `FULL_SCALE`.

    A clip shorter than `columns` samples gives one value for each sample.
    """
    loudness = np.abs(clip.samples)
    columns = min(columns, len(loudness))
    if not columns:
        return []
    starts = np.arange(columns) * len(loudness) // columns
    levels: list[int] = (
        np.ceil(np.maximum.reduceat(loudness, starts) * FULL_SCALE).astype(int).tolist()
    )
    return levels
