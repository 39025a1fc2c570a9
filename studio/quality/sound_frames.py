"""A clip in frames of 20 ms: level, voicing and spectrum, as the quality checks read them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from studio.audio.analysis import FLOOR_DB, FRAME_S, is_speech, measure_frame_levels
from studio.audio.clip import Clip, Samples

FEATURE_STEP_S = 2 * FRAME_S
"""How far apart the moments are whose sounds are compared."""

_RATE_HZ = 8_000
_WINDOW_SAMPLES = 512  # 64 ms: three periods of the lowest voice
_SHORTEST_LAG_SAMPLES, _LONGEST_LAG_SAMPLES = 20, 134
_MIN_VOICED_RISE = 0.5  # noise, whatever its colour, stays below
_MIN_VOICED_SHARE = 0.2  # below it is a whisper, and its last voiced frame says nothing
_BANDS = 16
_SPECTRUM_FLOOR = 1e-5  # of the loudest band: what lies lower isn't heard

_SHORT_GAP_S = 0.3
_STEADY_DB = 4.0

_Array = npt.NDArray[np.float32]
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SoundFrames:
    """What can be told of a clip at a glance.

    Attributes:
        level_db: Of each frame, dB of full scale: [frames].
        speech: Whether a frame is loud enough to hold speech: [frames].
        power: Spectra at 8,000 Hz of frames around the same moments: [frames, bins].
        speech_db: Mean power of the frames that hold speech, dB of full scale; -120 where none
            does.
    """

    level_db: npt.NDArray[np.float64]
    speech: _Flags
    power: _Array
    speech_db: float

    @classmethod
    def from_clip(cls, clip: Clip) -> SoundFrames:
        """Measure a clip; a last piece shorter than a frame is left out."""
        level_db = measure_frame_levels(clip)
        speech = is_speech(level_db)
        return cls(
            level_db, speech, _compute_spectra(clip, len(level_db)), _average_db(level_db[speech])
        )

    @property
    def speech_s(self) -> float:
        """Length from the first to the last speech without silences longer than 0.3 s."""
        gaps = [gap for gap in self._gaps() if gap[1] - gap[0] > _SHORT_GAP_S / FRAME_S]
        first, last = self._ends()
        return (last - first - sum(after - begin for begin, after in gaps)) * FRAME_S

    def longest_gap_s(self) -> float:
        """Length of the longest silence between speech."""
        return max((after - begin for begin, after in self._gaps()), default=0) * FRAME_S

    def tail_s(self) -> float:
        """How long it goes on after the last voiced moment, or the last loud one."""
        silent = len(self.speech) - self._ends()[1]
        voiced = self.detect_voiced()
        if 2 * voiced.sum() < _MIN_VOICED_SHARE * max(1, self.speech.sum()):
            return silent * FRAME_S
        return max(silent, 2 * int(np.argmax(voiced[::-1]))) * FRAME_S

    def steady_s(self, least_s: float) -> tuple[float, bool]:
        """The longest stretch that changes its level by less than 4 dB, and whether it is the end.

        Args:
            least_s: Shorter ones give 0.
        """
        width = round(least_s / FRAME_S)
        if len(self.level_db) < width:
            return 0.0, False
        windows = np.lib.stride_tricks.sliding_window_view(self.level_db, width)
        lowest, highest = windows.min(axis=1), windows.max(axis=1)
        quietest_db = self.level_db[self.speech].min(initial=np.inf)
        steady = (highest - lowest < _STEADY_DB) & (lowest >= quietest_db)
        runs = _find_runs(steady)
        if not runs:
            return 0.0, False
        begin, after = max(runs, key=lambda run: run[1] - run[0])
        is_last = after + width >= len(self.level_db) - 5
        return (after - begin + width - 1) * FRAME_S, is_last

    def detect_voiced(self) -> _Flags:
        """Whether every second frame repeats itself at the pitch of a voice: [moments]."""
        likeness = np.fft.irfft(self.power[::2], axis=1)[:, : _LONGEST_LAG_SAMPLES + 1]
        likeness = likeness / np.maximum(likeness[:, :1], 1e-12) / _WINDOW_AUTOCORRELATION
        lowest = np.minimum.accumulate(likeness, axis=1)
        rise = (likeness - lowest)[:, _SHORTEST_LAG_SAMPLES:].max(axis=1, initial=0.0)
        voiced: _Flags = (rise > _MIN_VOICED_RISE) & self.speech[::2]
        return voiced

    def compute_bands(self) -> tuple[_Array, _Array]:
        """What every second frame sounds like beside the whole, with the frames around it.

        Returns:
            Bands of length 1, or 0 without speech: [moments, bands]; and 1.0 where there is
            speech: [moments]. A moment is `FEATURE_STEP_S` long.
        """
        bands = np.add.reduceat(self.power, _BAND_EDGES, axis=1)[:, :_BANDS]
        padded = np.pad(bands, ((1, 2), (0, 0)), mode="edge")
        n = (len(bands) + 1) // 2
        bands = padded[: 2 * n : 2] + padded[1 : 1 + 2 * n : 2] + padded[2 : 2 + 2 * n : 2]
        speech = self.speech[::2]
        logs = np.log10(bands + max(_SPECTRUM_FLOOR * float(bands.max(initial=0.0)), 1e-20))
        logs -= logs[speech].mean(axis=0) if speech.any() else 0.0
        logs *= speech[:, None]
        lengths = np.linalg.norm(logs, axis=1, keepdims=True)
        return (logs / np.maximum(lengths, 1e-6)).astype(np.float32), speech.astype(np.float32)

    def _ends(self) -> tuple[int, int]:
        """First frame with speech, and the one after the last."""
        where = np.flatnonzero(self.speech)
        return (int(where[0]), int(where[-1]) + 1) if len(where) else (0, 0)

    def _gaps(self) -> list[tuple[int, int]]:
        first, last = self._ends()
        return [(first + a, first + b) for a, b in _find_runs(~self.speech[first:last])]


def _find_runs(flags: _Flags) -> list[tuple[int, int]]:
    """First index of each stretch that is true, and the one after its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _average_db(levels_db: npt.NDArray[np.float64]) -> float:
    return 10 * float(np.log10(np.mean(10 ** (levels_db / 10)))) if len(levels_db) else FLOOR_DB


def _compute_spectra(clip: Clip, n_frames: int) -> _Array:
    step = max(1, clip.rate_hz // _RATE_HZ)
    whole = len(clip) // step * step
    # Means instead of a filter: what folds back is the same each time, and only likeness counts.
    low: Samples = clip.samples[:whole].reshape(-1, step).mean(axis=1)
    hop = round(FRAME_S * clip.rate_hz / step)
    edge = (_WINDOW_SAMPLES - hop) // 2
    padded = np.pad(low, (edge, _WINDOW_SAMPLES))
    windows = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW_SAMPLES)[::hop][:n_frames]
    spectra = np.fft.rfft(windows * _WINDOW, axis=1)
    power: _Array = (spectra.real**2 + spectra.imag**2).astype(np.float32)
    return power


_WINDOW = np.hanning(_WINDOW_SAMPLES).astype(np.float32)
_WINDOW_AUTOCORRELATION = np.correlate(_WINDOW, _WINDOW, "full")[_WINDOW_SAMPLES - 1 :][
    : _LONGEST_LAG_SAMPLES + 1
] / float(np.square(_WINDOW).sum())
_BAND_EDGES = np.unique(np.geomspace(8, _WINDOW_SAMPLES // 2, _BANDS + 1).round().astype(np.intp))
