"""From eSpeak NG's samples to a clip that can stand beside others: rate, level and edges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import soxr

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.audio.measure import measure_levels

SPEECH_DB = -22.0
"""Level of speech, RMS in dB of full scale; the same for every voice."""

PEAK_DB = -1.0

LEAD_S = 0.03
TAIL_S = 0.12
"""Silence before and after every segment, whatever eSpeak NG put there."""

_RATE_STEP_HZ = 50  # a simple ratio to the studio's rate halves the resampler's work
_FADE_S = 0.004
_AUDIBLE = 10 ** (-50 / 20)  # of the peak; fricatives at an edge lie 30 to 40 dB below it
_SILENT = 1e-3


def finished(pcm: npt.NDArray[np.int16], rate_hz: int, *, shift: float = 1.0) -> Samples:
    """Bring raw speech to the studio's rate, a common level and clean edges.

    Args:
        pcm: int16 [samples] at `rate_hz`.
        rate_hz: eSpeak NG's rate.
        shift: Plays it faster by this factor, which raises pitch and formants alike.

    Returns:
        float32 [samples] at `STUDIO_RATE_HZ`, peaks at most `PEAK_DB`, faded at both ends; empty
        when nothing can be heard.
    """
    if not len(pcm) or np.abs(pcm.astype(np.int32)).max() < _SILENT * 32_768:
        return np.zeros(0, dtype=np.float32)
    raw = pcm.astype(np.float32) / 32_768
    played_hz = round(rate_hz * shift / _RATE_STEP_HZ) * _RATE_STEP_HZ
    speech = soxr.resample(raw, played_hz, STUDIO_RATE_HZ, quality="HQ")
    first, end = _audible(speech)
    lead, tail = round(LEAD_S * STUDIO_RATE_HZ), round(TAIL_S * STUDIO_RATE_HZ)
    kept = _faded(_levelled(speech[max(0, first - lead) : end + tail]))
    before = max(0, lead - first)
    after = max(0, end + tail - len(speech))
    return np.pad(kept, (before, after))


def _audible(speech: Samples) -> tuple[int, int]:
    """Where it begins and ends to be heard, as a slice's bounds."""
    loudness = np.abs(speech)
    places = np.flatnonzero(loudness > loudness.max() * _AUDIBLE)
    return int(places[0]), int(places[-1]) + 1


def _levelled(speech: Samples) -> Samples:
    """Speech without its mean, at `SPEECH_DB` unless its peaks forbid it."""
    centred = speech - speech.mean()
    gain_db = SPEECH_DB - measure_levels(Clip(centred)).speech_db
    most = 10 ** (PEAK_DB / 20) / float(np.abs(centred).max())
    return centred * np.float32(min(10 ** (gain_db / 20), most))


def _faded(speech: Samples) -> Samples:
    n = min(round(_FADE_S * STUDIO_RATE_HZ), len(speech) // 2)
    rise = (0.5 - 0.5 * np.cos(np.pi * np.arange(n) / max(n, 1))).astype(np.float32)
    shape = np.ones(len(speech), dtype=np.float32)
    shape[:n], shape[len(speech) - n :] = rise, rise[::-1]
    return speech * shape
