"""Whether a recording holds music, also behind speech."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import soxr

from studio.audio.clip import Clip

_RATE_HZ = 11_025
_WINDOW_SAMPLES = 1_024
_HOP_SAMPLES = 256
_LOW_HZ, _HIGH_HZ = 300.0, 4_000.0  # mains hum lies below, hiss above
_SMOOTHED_BINS = 31  # 330 Hz: wider than a note, narrower than a formant's slope
_QUIETEST_SHARE = 0.15
_LEAST_WINDOWS = 3
_NOTHING = 1e-12  # power of -120 dB, which keeps ratios of empty bins finite
_INAUDIBLE_DB = -60.0
_MEASURED_S = 60.0

_Array = npt.NDArray[np.float64]


def background_tones(clip: Clip) -> float:
    """How tonal a recording is in its quietest moments, where speech leaves the background alone.

    Noise is flat there, whatever its colour, and digital silence is nothing; notes that sound on
    between the words are narrow peaks. Drums aren't seen, nor music below -60 dB, and a voice that
    holds its pitch as in singing counts as music itself.

    Returns:
        One less the spectral flatness between 300 and 4,000 Hz over its own smooth course, over
        the first minute: 0 for silence, about 0.4 for noise, up to 1 for tones. Shorter than 0.5 s
        gives 0.
    """
    head = clip.samples[: round(_MEASURED_S * clip.rate_hz)]
    samples = soxr.resample(head, clip.rate_hz, _RATE_HZ)
    if len(samples) < _RATE_HZ // 2:
        return 0.0
    spectra = _power_spectra(samples)  # [windows, bins]
    power = spectra.sum(axis=1)
    audible = power > 10 ** (_INAUDIBLE_DB / 10)
    background = spectra[audible & (power <= np.quantile(power, _QUIETEST_SHARE))]
    if len(background) < _LEAST_WINDOWS:
        return 0.0
    flat = (background + _NOTHING) / (_smoothed(background) + _NOTHING)
    flatness = np.exp(np.log(flat).mean(axis=1)) / flat.mean(axis=1)
    return float(1 - flatness.mean())


def _smoothed(spectra: _Array) -> _Array:
    """Running mean over bins; the edges repeat their last bin."""
    edge = _SMOOTHED_BINS // 2
    padded = np.pad(spectra, ((0, 0), (edge + 1, edge)), mode="edge")
    sums = np.cumsum(padded, axis=1)
    means = (sums[:, _SMOOTHED_BINS:] - sums[:, :-_SMOOTHED_BINS]) / _SMOOTHED_BINS
    # The difference of two large sums may come out below nothing.
    smooth: _Array = np.maximum(means, 0)
    return smooth


def _power_spectra(samples: npt.NDArray[np.float32]) -> _Array:
    """Power of each window's bins between the limits; a full-scale sine sums to about 0 dB."""
    windows = np.lib.stride_tricks.sliding_window_view(samples, _WINDOW_SAMPLES)[::_HOP_SAMPLES]
    shape = np.hanning(_WINDOW_SAMPLES)
    power = np.abs(np.fft.rfft(windows * shape, axis=1)) ** 2 * (2 / shape.sum() ** 2)
    hz = np.fft.rfftfreq(_WINDOW_SAMPLES, 1 / _RATE_HZ)
    band: _Array = power[:, (hz >= _LOW_HZ) & (hz <= _HIGH_HZ)]
    return band
