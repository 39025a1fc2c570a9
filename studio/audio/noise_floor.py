"""The background of a recording: its level, and what is loud enough above it to be speech."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_WINDOW_FRAMES = 14
"""0.28 s: hardly a sound of a voice stays as even as noise for so long, but every pause does."""

_SMOOTHED_FRAMES = 5
"""One loud frame of noise is no speech, and one quiet frame of speech no pause."""

_MAX_UNEVENNESS_DB = 6.0
_QUIETEST_PERCENT = 5
_ABOVE_QUIETEST_DB = 4.0
_SPEECH_ABOVE_NOISE_DB = 5.0
_MIN_DISTANCE_DB = 8.0
_NEAR_DB = 6.0

_Array = npt.NDArray[np.float64]


def detect_speech_in_noise(
    frame_db: _Array, clean_threshold_db: float
) -> npt.NDArray[np.bool_] | None:
    """Whether each frame of a noisy recording holds speech: [frames].

    Args:
        frame_db: Levels of 20 ms frames without their offset, dB of full scale.
        clean_threshold_db: What is louder is speech where there is no noise.

    Returns:
        None for a recording whose background is too quiet to matter, or that has no pause from
        which its level could be known.
    """
    if len(frame_db) < _WINDOW_FRAMES:
        return None
    smooth_db = _smooth(frame_db)
    noise_db = _find_noise_db(smooth_db)
    if noise_db is None or noise_db + _SPEECH_ABOVE_NOISE_DB < clean_threshold_db - _NEAR_DB:
        return None
    speech: npt.NDArray[np.bool_] = smooth_db > max(
        noise_db + _SPEECH_ABOVE_NOISE_DB, clean_threshold_db
    )
    return speech


def _find_noise_db(smooth_db: _Array) -> float | None:
    """The level of the quietest stretch of 0.28 s that is as even as only a background is.

    It is none if the quietest tenth of the recording is far below it, or nothing well above it.
    """
    windows = np.lib.stride_tricks.sliding_window_view(smooth_db, _WINDOW_FRAMES)
    even = np.ptp(windows, axis=1) <= _MAX_UNEVENNESS_DB
    if not even.any():
        return None
    noise_db = float(windows[even].mean(axis=1).min())
    quietest_db = float(np.percentile(smooth_db, _QUIETEST_PERCENT))
    is_quietest = noise_db <= quietest_db + _ABOVE_QUIETEST_DB
    is_below_speech = float(smooth_db.max()) >= noise_db + _MIN_DISTANCE_DB
    return noise_db if is_quietest and is_below_speech else None


def _smooth(frame_db: _Array) -> _Array:
    """Running median over 0.1 s."""
    windows = np.pad(frame_db, _SMOOTHED_FRAMES // 2, mode="edge")
    smooth: _Array = np.median(
        np.lib.stride_tricks.sliding_window_view(windows, _SMOOTHED_FRAMES), axis=1
    )
    return smooth
