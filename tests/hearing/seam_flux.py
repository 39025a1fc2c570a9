"""How abruptly the spectrum of a clip changes: at word boundaries, and at the seams of a patch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from studio.audio.clip import Clip

_HOP_S = 0.0025
_WINDOW_S = 0.020
_LAG_HOPS = 4
_NEAR_S = 0.012
_COMPRESSION = 1_000.0


def flux_at(clip: Clip, at_s: Iterable[float]) -> list[float]:
    """The largest rise of the spectrum near each time, the mean over its bins.

    Amplitudes are compressed by a logarithm, as detectors of onsets do (Boeck, Krebs and Schedl,
    2012), so that a click beside a vowel counts as much as the start of a loud one.
    """
    hop, size = round(_HOP_S * clip.rate_hz), round(_WINDOW_S * clip.rate_hz)
    padded = np.pad(clip.samples, size // 2).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(padded, size)[::hop]
    spectra = np.abs(np.fft.rfft(windows * np.hanning(size), axis=1))
    levels = np.log1p(_COMPRESSION * spectra / spectra.max())
    rises = np.maximum(levels[_LAG_HOPS:] - levels[:-_LAG_HOPS], 0.0).mean(axis=1)
    near = round(_NEAR_S / _HOP_S)
    middles = [round(one / _HOP_S) - _LAG_HOPS // 2 for one in at_s]
    return [
        float(rises[max(0, middle - near) : middle + near + 1].max(initial=0.0))
        for middle in middles
    ]
