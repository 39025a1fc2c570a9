"""Changing the sample rate of a stream."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import soxr

from studio.audio.clip import Samples


def resampled(chunks: Iterator[Samples], from_hz: int, to_hz: int) -> Iterator[Samples]:
    """Bring chunks to another rate, chunk by chunk, as if they were one recording.

    Args:
        chunks: float32 [samples] each; closed when this iterator is closed.
        from_hz: Their rate.
        to_hz: The rate wanted.

    Yields:
        float32 [samples], never empty; joined, they are the whole resampled.
    """
    stream = soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32", quality="HQ")
    try:
        for chunk in chunks:
            fresh = stream.resample_chunk(chunk)
            if len(fresh):
                yield fresh
        rest = stream.resample_chunk(np.zeros(0, dtype=np.float32), last=True)
        if len(rest):
            yield rest
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
