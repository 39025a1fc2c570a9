"""The trained speaker encoder of the package Resemblyzer: what tells voices apart, by NumPy alone.

Source: Wan et al., "Generalized end-to-end loss for speaker verification" (2018), as Resemblyzer
0.1.4 has it (`voice_encoder.py`, `audio.py`; Apache-2.0), but for its detection of speech.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from studio.audio.clip import Samples

RATE_HZ: Final = 16_000
_UNITS, _BANDS = 256, 40
_WINDOW, _HOP = 400, 160
_PART_FRAMES = 160  # 1.6 s, as it was trained with
_QUIET_RMS = 10 ** (-30 / 20)  # a quieter recording is raised to it
_PAUSE_BELOW_DB, _KEPT_FRAMES = 40.0, 13  # of a pause, around speech
# In the file, whose bytes the catalogue states: the optimiser's state is behind.
_BIAS_AT, _LINEAR_AT, _LSTM_AT = 6_699, 7_731, 269_883

# A gate's logistic function is a hyperbolic tangent of half its argument; the third is no gate.
_SLOPES = np.repeat(np.array([0.5, 0.5, 1.0, 0.5], dtype=np.float32), _UNITS)

_Weights = npt.NDArray[np.float32]


class VoiceEncoder:
    """Three LSTM layers over the mel spectrum of 1.6 s, of which a recording has the mean."""

    def __init__(self, path: str | Path) -> None:
        """Read the weights; a ValueError says that the file is too short for them."""
        data = Path(path).read_bytes()

        def read(at: int, *shape: int) -> _Weights:
            return np.frombuffer(data, "<f4", math.prod(shape), at).reshape(shape)

        wide, at, weights = 4 * _UNITS, _LSTM_AT, []
        for inputs in (_BANDS, _UNITS, _UNITS, _UNITS, _UNITS, _UNITS):
            weights.append(read(at, wide, inputs).T)
            at += 4 * wide * inputs
        biases = read(at, 3, 2, wide).sum(axis=1)
        self._layers = tuple(zip(weights[::2], weights[1::2], biases, strict=True))
        self._linear, self._bias = read(_LINEAR_AT, _UNITS, _UNITS).T, read(_BIAS_AT, _UNITS)

    def embed(self, samples: Samples) -> _Weights:
        """The direction of a voice at 16,000 Hz: [256], of length 1; zeros for silence."""
        if not samples.any():
            return np.zeros(_UNITS, dtype=np.float32)
        mel = _measure_mel(samples)
        mel = np.pad(mel, ((0, max(0, _PART_FRAMES - len(mel))), (0, 0)))
        last = len(mel) - _PART_FRAMES
        starts = sorted({*range(0, last + 1, _PART_FRAMES), last})
        hidden = np.stack([mel[at : at + _PART_FRAMES] for at in starts])  # [parts, frames, bands]
        for from_below, from_before, bias in self._layers:
            hidden = _run_layer(hidden @ from_below + bias, from_before)
        parts = np.maximum(0, hidden[:, -1] @ self._linear + self._bias)
        mean = (parts / np.maximum(1e-9, np.linalg.norm(parts, axis=1, keepdims=True))).mean(axis=0)
        direction: _Weights = mean / max(1e-9, float(np.linalg.norm(mean)))
        return direction


def _run_layer(given: _Weights, from_before: _Weights) -> _Weights:
    """The outputs of an LSTM layer, [parts, frames, units], of what each frame gives its gates."""
    state = output = np.zeros((len(given), _UNITS), dtype=np.float32)
    outputs = np.empty((*given.shape[:2], _UNITS), dtype=np.float32)
    for frame in range(given.shape[1]):
        gates = np.tanh((given[:, frame] + output @ from_before) * _SLOPES)
        enters, stays, new, leaves = np.split(gates, 4, axis=1)
        state = (0.5 + 0.5 * stays) * state + (0.5 + 0.5 * enters) * new
        output = outputs[:, frame] = (0.5 + 0.5 * leaves) * np.tanh(state)
    return outputs


def _measure_mel(samples: Samples) -> _Weights:
    """Power in mel bands, without long pauses: [frames, bands]."""
    rms = float(np.sqrt(np.mean(np.square(samples))))
    raised = np.pad(samples * max(1.0, _QUIET_RMS / rms), _WINDOW // 2)
    frames = np.lib.stride_tricks.sliding_window_view(raised, _WINDOW)[::_HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(_WINDOW + 1)[:-1], axis=1)) ** 2
    mel: _Weights = (power @ _build_filters()).astype(np.float32)
    loudness_db = 10 * np.log10(mel.sum(axis=1) + 1e-12)
    speech = loudness_db > loudness_db.max() - _PAUSE_BELOW_DB
    return mel[np.convolve(speech, np.ones(_KEPT_FRAMES), "same")[: len(mel)] > 0]


def _build_filters() -> npt.NDArray[np.float64]:
    """Slaney's mel triangles of equal area, [bins, bands]: straight to 1 kHz, then by its log."""
    step = np.log(6.4) / 27
    mels = np.linspace(0, 15 + np.log(RATE_HZ / 2 / 1_000) / step, _BANDS + 2)
    edges = np.where(mels < 15, mels * 200 / 3, 1_000 * np.exp((mels - 15) * step))
    bins = np.fft.rfftfreq(_WINDOW, 1 / RATE_HZ)[:, None]
    rising, falling = bins - edges[:-2], edges[2:] - bins
    triangles = np.minimum(rising / np.diff(edges)[:-1], falling / np.diff(edges)[1:])
    filters: npt.NDArray[np.float64] = np.maximum(0, triangles) * 2 / (edges[2:] - edges[:-2])
    return filters
