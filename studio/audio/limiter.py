"""A true-peak limiter that leaves everything below its ceiling unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import soxr

from studio.audio.clip import Samples

_REACH_SAMPLES = 480
"""How far around a peak the gain is lower: 20 ms on each side at the studio's rate."""

_OVERSAMPLING = 8
_RINGING_SAMPLES = 256  # of the resampler, at the ends of what it is given
_CONTEXT_SAMPLES = _REACH_SAMPLES + _RINGING_SAMPLES
_STEP_SAMPLES = 32_768
_MARGIN_DB = 0.1  # for what lies between the oversampled values, and for rounding to 16 bits
_SAFE_SHARE = (
    0.5  # of the ceiling; between samples a peak is at most 6 dB higher, save in test tones
)

_Array = npt.NDArray[np.float64]


def limit_peaks(blocks: Iterable[Samples], ceiling_db: float) -> Iterator[Samples]:
    """Lower the gain around true peaks above a ceiling.

    Far from them every sample comes out as it went in. FFmpeg's `alimiter` looks at samples only,
    and between two resamplers it would change all of them; here the resampler only looks.

    Args:
        blocks: float32 [samples] at any level, each of any length.
        ceiling_db: The highest true peak, dBTP.

    Yields:
        As many samples as came, each in its place; blocks of other lengths. Memory holds some.
    """
    ceiling = 10 ** ((ceiling_db - _MARGIN_DB) / 20)
    for window in _iter_windows(blocks):
        yield _limit_window(window, ceiling)


def _iter_windows(blocks: Iterable[Samples]) -> Iterator[Samples]:
    """Steps of the sound, each with what stands around it; beyond the ends is silence."""
    edge = np.zeros(_CONTEXT_SAMPLES, dtype=np.float32)
    whole = _STEP_SAMPLES + 2 * _CONTEXT_SAMPLES
    held = edge
    for block in blocks:
        held = np.concatenate((held, block))
        while len(held) >= whole:
            yield held[:whole]
            held = held[_STEP_SAMPLES:]
    held = np.concatenate((held, edge))
    while len(held) > 2 * _CONTEXT_SAMPLES:
        yield held[:whole]
        held = held[_STEP_SAMPLES:]


def _limit_window(window: Samples, ceiling: float) -> Samples:
    middle = slice(_CONTEXT_SAMPLES, len(window) - _CONTEXT_SAMPLES)
    if np.abs(window).max() < ceiling * _SAFE_SHARE:
        return window[middle]
    allowed = np.minimum(1.0, ceiling / np.maximum(_measure_true_peaks(window), 1e-9))
    if allowed.min() >= 1:
        return window[middle]
    # Means of minima that reach as far are nowhere above what is allowed.
    near = _REACH_SAMPLES // 4
    gain = _running_mean(_running_mean(_running_minimum(allowed, 2 * near), near), near)
    held: Samples = (window * gain).astype(np.float32)
    return held[middle]


def _measure_true_peaks(samples: Samples) -> _Array:
    """The highest level around each sample, between them too."""
    dense = np.abs(soxr.resample(samples, 1, _OVERSAMPLING, "VHQ").astype(np.float64))
    dense.resize(len(samples) * _OVERSAMPLING, refcheck=False)
    after = dense.reshape(-1, _OVERSAMPLING).max(axis=1)  # from each sample to the next
    before = np.concatenate((after[:1], after[:-1]))
    peaks: _Array = np.maximum(np.abs(samples), np.maximum(before, after))
    return peaks


def _running_minimum(values: _Array, reach: int) -> _Array:
    """Least of each value and those up to `reach` places before and after it."""
    lowest = np.pad(values, reach, constant_values=1.0)
    width, wanted = 1, 2 * reach + 1
    while width < wanted:
        step = min(width, wanted - width)
        lowest = np.minimum(lowest[:-step], lowest[step:])
        width += step
    return lowest


def _running_mean(values: _Array, reach: int) -> _Array:
    """Mean of each value and those up to `reach` places before and after it."""
    padded = np.pad(values, (reach + 1, reach), constant_values=1.0)
    sums = np.cumsum(padded)
    width = 2 * reach + 1
    mean: _Array = (sums[width:] - sums[:-width]) / width
    return mean
