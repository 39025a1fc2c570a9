"""Whether a voice says the same stretch again and again."""

from __future__ import annotations

import numpy as np

from studio.audio.sound_frames import MOMENT_S, SoundFrames

_SHORTEST_S, _LONGEST_S = 0.3, 20.0
_REPEATED_S = 1.2
_LEAST_SPEECH = 0.5

# How alike a stretch and its repetition are. Different speech comes to 0.76 over 1.2 s, 0.56 over
# 1.5 s and 0.45 from 2 s on, the same speech half a frame apart to 0.7 and more.
_ALIKE_SHORT, _ALIKE_LONG, _LESS_A_SECOND = 0.85, 0.6, 0.3


def repetition(frames: SoundFrames) -> tuple[float, int] | None:
    """Find a stretch that is heard again right after itself.

    What is repeated, all repetitions together, lasts 1.2 s at least; a stretch is between 0.3 s
    and 20 s long.

    Returns:
        Its length in seconds and how many times it is heard, 2 at least; None where none is.
    """
    colours, speech = frames.colours()
    found: tuple[float, int] | None = None
    highest = 0.0  # above what is asked for
    for lag in range(round(_SHORTEST_S / MOMENT_S), round(_LONGEST_S / MOMENT_S) + 1):
        width = max(lag, round(_REPEATED_S / MOMENT_S))
        if len(speech) - lag < width:
            break
        alike = np.cumsum(np.einsum("mb,mb->m", colours[lag:], colours[:-lag]))
        spoken = np.cumsum((speech[lag:] + speech[:-lag]) / 2)
        above = _likeness(alike, spoken, width) - _wanted(width * MOMENT_S)
        if float(above.max(initial=0.0)) > highest:
            highest = float(above.max())
            times = 1 + round((int((above > 0).sum()) + width - 1) / lag)
            found = lag * MOMENT_S, max(2, times)
    return found


def _wanted(repeated_s: float) -> float:
    """How alike two stretches of a length must be."""
    return max(_ALIKE_LONG, _ALIKE_SHORT - _LESS_A_SECOND * (repeated_s - _REPEATED_S))


def _likeness(alike: np.ndarray, spoken: np.ndarray, width: int) -> np.ndarray:
    """Mean likeness over each window that is spoken for the most part; sums are running ones."""
    alike, spoken = (np.concatenate([[0.0], sums]) for sums in (alike, spoken))
    heard = spoken[width:] - spoken[:-width]
    mean = (alike[width:] - alike[:-width]) / np.maximum(heard, 1.0)
    return np.where(heard >= _LEAST_SPEECH * width, mean, 0.0)
