"""Cepstra of speech: how it is coloured, every 10 ms, whoever speaks, how loud, in which noise."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from studio.audio.clip import Pcm16, Samples

STEP_S = 0.01
"""From one frame to the next; a frame's middle lies this often after the first sample."""

_WINDOW_S = 0.025
N_BANDS = 26
_LOWEST_HZ, _HIGHEST_HZ = 120.0, 6_800.0
_CEPSTRA = 13
_BLOCK_FRAMES = 512  # whose spectra take 4 MB
_FLOOR_DB = -45.0  # below speech; digital silence is as quiet as a room
_SPEECH_PERCENTILE, _NOISE_PERCENTILE = 80, 5

Frames = npt.NDArray[np.float32]


def measure_mel_power(samples: Samples | Pcm16, rate_hz: int) -> Frames:
    """The power in mel bands, [frames, bands]; a long recording may be mapped from its file."""
    window = np.hanning(round(_WINDOW_S * rate_hz)).astype(np.float32)
    filters = _mel_filters(rate_hz)
    n_frames = int(len(samples) / (STEP_S * rate_hz)) + 1
    power = np.empty((n_frames, N_BANDS), dtype=np.float32)
    for first in range(0, n_frames, _BLOCK_FRAMES):
        numbers = np.arange(first, min(n_frames, first + _BLOCK_FRAMES))
        starts = np.rint(numbers * STEP_S * rate_hz).astype(np.int64) - len(window) // 2
        block = _cut(samples, int(starts[0]), int(starts[-1]) + len(window))
        pieces = block[(starts - starts[0])[:, None] + np.arange(len(window))] * window
        spectra = np.abs(np.fft.rfft(pieces, n=_fft_samples(rate_hz))) ** 2
        power[numbers] = spectra @ filters
    return power


def _cut(samples: Samples | Pcm16, start: int, end: int) -> Samples:
    """Samples as float32, with silence where there are none."""
    inside = samples[max(0, start) : end].astype(np.float32)
    return np.pad(inside, (max(0, -start), max(0, end - max(len(samples), start))))[: end - start]


def _fft_samples(rate_hz: int) -> int:
    return 1 << (round(_WINDOW_S * rate_hz) - 1).bit_length()


@lru_cache(maxsize=4)
def _mel_filters(rate_hz: int) -> Frames:
    """Triangles that are equally wide in mel: [bins, bands]."""
    lowest, highest = (1127 * math.log1p(hz / 700) for hz in (_LOWEST_HZ, _HIGHEST_HZ))
    mels = np.linspace(lowest, highest, N_BANDS + 2)
    edges = 700 * np.expm1(mels / 1127)
    bins = np.fft.rfftfreq(_fft_samples(rate_hz), 1 / rate_hz)[:, None]
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    triangles: Frames = np.maximum(0, np.minimum(rising, falling)).astype(np.float32)
    return triangles


def compute_cepstra(power: Frames, *, noise: Frames | None = None) -> Frames:
    """Normalized cepstra and their slopes, [frames, 2 * cepstra].

    Args:
        power: The power in mel bands.
        noise: The noise of another recording, by `measure_noise`, that is to lie under this one.
    """
    level = _speech_power(power)
    floor = level * 10 ** (_FLOOR_DB / 10)
    under = floor + (0 if noise is None else noise * level)
    loudness = power + under
    cepstra = np.log(loudness, out=loudness) @ _cosines()
    return _normalize(np.hstack([cepstra, _slopes(cepstra)]))


def measure_noise(power: Frames) -> Frames:
    """The power of a recording's quietest frames, by band, as a share of that of its speech."""
    quiet = np.percentile(power, _NOISE_PERCENTILE, axis=0)
    return (quiet / _speech_power(power)).astype(np.float32)


def _speech_power(power: Frames) -> float:
    """A band's mean power in loud frames; the least that isn't 0 for digital silence."""
    return max(1e-12, float(np.percentile(power.mean(axis=1), _SPEECH_PERCENTILE)))


@lru_cache(maxsize=1)
def _cosines() -> Frames:
    """The discrete cosine transform: [bands, cepstra]."""
    bands, orders = np.arange(N_BANDS) + 0.5, np.arange(_CEPSTRA)
    cosines: Frames = np.cos(np.pi / N_BANDS * bands[:, None] * orders).astype(np.float32)
    return cosines


def _slopes(cepstra: Frames) -> Frames:
    """How fast each cepstrum rises, over five frames."""
    padded = np.pad(cepstra, ((2, 2), (0, 0)), mode="edge")
    rises = 2 * (padded[4:] - padded[:-4]) + padded[3:-1] - padded[1:-3]
    return (rises / 10).astype(np.float32)


def _normalize(columns: Frames) -> Frames:
    """Bring each column to mean 0 and deviation 1; in place."""
    columns -= columns.mean(axis=0)
    columns /= np.maximum(columns.std(axis=0), 1e-6)
    return columns
