"""Analysis of a clip: levels, speech, silences, pitch, music, outline, and frames of sound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import soxr

from studio.audio.clip import FLOOR_DB, Clip, Samples, power_to_db, split_blocks
from studio.audio.noise_floor import detect_speech_in_noise

MIN_FUNDAMENTAL_HZ = 60.0
MAX_FUNDAMENTAL_HZ = 400.0

_CLIPPED_LEVEL = 0.999
_SILENT_DB = -60.0
_SPEECH_BELOW_LOUDEST_DB = 35.0
FRAME_S = 0.02
"""Length of the frames that count as speech or as silence."""

_BLOCK_FRAMES = 256  # that are worked on at once, since all spectra of a minute take 30 MB

_PITCH_RATE_HZ = 8_000
_PITCH_FRAME_SAMPLES = 400  # 50 ms: three periods of the lowest voice
_PITCH_HOP_SAMPLES = 160
_PITCH_FFT_SAMPLES = 576  # holds a frame and its longest lag without wrapping round
_SHORTEST_LAG_SAMPLES = 8  # below the range, so that a whistle isn't mistaken for its own octave
_LONGEST_LAG_SAMPLES = 140
_VOICED_CLARITY = 0.6
_FIRST_PEAK_SHARE = 0.9  # of the highest peak; a lower share finds octaves above the voice
_MIN_VOICED_FRAMES = 5
_MAX_PITCH_S = 60.0

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Levels:
    """A clip's levels, its noise, and how much of it is speech.

    Attributes:
        peak_db: Highest sample, dB of full scale; `FLOOR_DB` for digital silence.
        rms_db: Mean power of the whole clip, dB of full scale.
        speech_db: Mean power of the frames that hold speech, dB of full scale.
        noise_db: Median level of the frames without speech in a noisy room, else the level of the
            quietest tenth of the frames, dB of full scale. Where a clip holds no gap between words
            this is speech, so read it beside `speech_share`.
        clipped_share: Share of samples at full scale, 0 to 1.
        speech_share: Share of 20 ms frames that hold speech, as `detect_speech_frames`, 0 to 1.
        leading_silence_s: Before the first speech frame; the whole clip when there is none.
        trailing_silence_s: After the last speech frame; the whole clip when there is none.
    """

    peak_db: float
    rms_db: float
    speech_db: float
    noise_db: float
    clipped_share: float
    speech_share: float
    leading_silence_s: float
    trailing_silence_s: float


def measure_levels(clip: Clip, *, may_be_noisy: bool = True) -> Levels:
    """Measure a clip; an empty one counts as silence.

    Args:
        clip: What is measured.
        may_be_noisy: False for synthetic speech, whose pauses are silent.
    """
    samples = clip.samples
    frame_power = _compute_frame_power(samples, max(1, round(FRAME_S * clip.rate_hz)))
    frame_db = _compute_frame_db(frame_power)
    noisy = detect_above_noise(clip) if may_be_noisy else None
    speech = is_speech(frame_db) if noisy is None else noisy
    leading_s, trailing_s = _measure_edge_silence(speech, clip)
    return Levels(
        peak_db=power_to_db(measure_peak(samples) ** 2),
        rms_db=power_to_db(_mean_power(samples)),
        speech_db=power_to_db(_mean_or_zero(frame_power[speech])),
        noise_db=_measure_noise_db(frame_db, noisy),
        clipped_share=measure_clipped_share(samples),
        speech_share=_mean_or_zero(speech),
        leading_silence_s=leading_s,
        trailing_silence_s=trailing_s,
    )


def _measure_noise_db(frame_db: _Array, noisy: npt.NDArray[np.bool_] | None) -> float:
    if noisy is not None and not noisy.all():
        return float(np.median(frame_db[~noisy]))
    return float(np.percentile(frame_db, 10)) if len(frame_db) else FLOOR_DB


def measure_clipped_share(samples: Samples) -> float:
    """Share of samples at full scale, 0 to 1."""
    clipped = sum(
        int(np.count_nonzero(np.abs(block) >= _CLIPPED_LEVEL)) for block in split_blocks(samples)
    )
    return clipped / max(1, len(samples))


def detect_speech_frames(clip: Clip) -> npt.NDArray[np.bool_]:
    """Whether each whole 20 ms frame is loud enough to hold speech: [frames].

    Loud enough is within 35 dB of the loudest frame, above -60 dB of full scale, and above the
    noise of the room.
    """
    return _detect_speech(clip, measure_frame_levels(clip))


def _detect_speech(clip: Clip, frame_db: _Array) -> npt.NDArray[np.bool_]:
    noisy = detect_above_noise(clip, frame_db)
    return is_speech(frame_db) if noisy is None else noisy


def detect_above_noise(clip: Clip, level_db: _Array | None = None) -> npt.NDArray[np.bool_] | None:
    """Whether each whole 20 ms frame is above the noise of the room: [frames]; None without any.

    Args:
        clip: The recording.
        level_db: As `measure_frame_levels` has them, if they are known.
    """
    level_db = measure_frame_levels(clip) if level_db is None else level_db
    size = max(1, round(FRAME_S * clip.rate_hz))
    whole = len(clip) // size * size
    # Without its offset, as rumble below hearing would outshout quiet speech.
    blocks = split_blocks(clip.samples[:whole], _BLOCK_FRAMES * size)
    frames = [block.reshape(-1, size).var(axis=1, dtype=np.float64) for block in blocks]
    frame_db = _compute_frame_db(np.concatenate([np.zeros(0), *frames]))
    return detect_speech_in_noise(frame_db, _find_threshold_db(level_db))


def measure_frame_levels(clip: Clip) -> _Array:
    """Level of each whole 20 ms frame, dB of full scale: [frames]."""
    return _compute_frame_db(
        _compute_frame_power(clip.samples, max(1, round(FRAME_S * clip.rate_hz)))
    )


def is_speech(frame_db: _Array) -> npt.NDArray[np.bool_]:
    """Whether each frame is within 35 dB of the loudest and above -60 dB of full scale."""
    speech: npt.NDArray[np.bool_] = frame_db > _find_threshold_db(frame_db)
    return speech


def _find_threshold_db(frame_db: _Array) -> float:
    loudest_db = float(frame_db.max(initial=FLOOR_DB))
    return max(loudest_db - _SPEECH_BELOW_LOUDEST_DB, _SILENT_DB)


_PITCH_BLOCK = 128


def estimate_fundamental_hz(clip: Clip) -> float | None:
    """Median fundamental frequency of a voice, over the first minute of a clip.

    Returns:
        Hertz within 60 to 400, None when less than about 0.1 s of the clip is voiced.
    """
    pitches = track_pitch_hz(clip)
    return float(np.median(pitches)) if len(pitches) >= _MIN_VOICED_FRAMES else None


def track_pitch_hz(clip: Clip) -> _Array:
    """Fundamental frequency of each voiced frame, over the first minute of a clip.

    Returns:
        Hertz within 60 to 400, one for every voiced 20 ms, in order; empty without a voice.

    Source: McLeod and Wyvill, "A smarter way to find pitch" (2005): the first peak of the
    normalised square difference function that comes near its highest one.
    """
    head = clip.samples[: round(_MAX_PITCH_S * clip.rate_hz)]
    if not np.any(head):
        return np.zeros(0)
    samples = soxr.resample(head, clip.rate_hz, _PITCH_RATE_HZ)
    if len(samples) < _PITCH_FRAME_SAMPLES:
        return np.zeros(0)
    windows = np.lib.stride_tricks.sliding_window_view(samples, _PITCH_FRAME_SAMPLES)
    frames = windows[::_PITCH_HOP_SAMPLES]
    # Block by block, since the similarity of a minute's frames takes 70 MB.
    blocks = [frames[at : at + _PITCH_BLOCK] for at in range(0, len(frames), _PITCH_BLOCK)]
    powers = [np.square(_centre(block)).mean(axis=1) for block in blocks]
    loudest = max(float(power.max()) for power in powers)
    quietest = max(loudest * 10 ** (-_SPEECH_BELOW_LOUDEST_DB / 10), 10 ** (_SILENT_DB / 10))
    return np.concatenate(
        [
            _find_pitches_hz(_compute_similarity(_centre(block[power >= quietest])))
            for block, power in zip(blocks, powers, strict=True)
        ]
    )


def _centre(frames: Samples) -> _Array:
    centred = frames.astype(np.float64)
    centred -= centred.mean(axis=1, keepdims=True)
    return centred


def _compute_similarity(frames: _Array) -> _Array:
    """Normalised autocorrelation of each frame: [frames, lags], 1 for a perfect repetition."""
    spectrum = np.fft.rfft(frames, _PITCH_FFT_SAMPLES, axis=1)
    product = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, _PITCH_FFT_SAMPLES, axis=1)
    energy = np.cumsum(np.square(frames), axis=1)  # [frames, samples]
    n_lags = _LONGEST_LAG_SAMPLES + 2
    head = energy[:, : -n_lags - 1 : -1]
    tail = energy[:, -1:] - np.pad(energy[:, : n_lags - 1], ((0, 0), (1, 0)))
    result: _Array = 2 * product[:, :n_lags] / np.maximum(head + tail, 1e-12)
    return result


def _find_pitches_hz(similarity: _Array) -> _Array:
    """Pitch of the voiced frames among [frames, lags], in order."""
    before, here, after = (
        similarity[:, _SHORTEST_LAG_SAMPLES + step : _LONGEST_LAG_SAMPLES + 1 + step]
        for step in (-1, 0, 1)
    )
    peaks = np.where((here > before) & (here >= after), here, 0.0)
    highest = peaks.max(axis=1, initial=0.0)
    first = np.argmax(peaks >= np.maximum(highest, 1e-12)[:, None] * _FIRST_PEAK_SHARE, axis=1)
    rows = np.arange(len(peaks))
    left, top, right = (part[rows, first] for part in (before, here, after))
    # A parabola through the peak and its neighbours gives the lag between samples.
    bend = np.minimum(left - 2 * top + right, -1e-12)
    pitches = _PITCH_RATE_HZ / (_SHORTEST_LAG_SAMPLES + first + 0.5 * (left - right) / bend)
    in_range = (pitches >= MIN_FUNDAMENTAL_HZ) & (pitches <= MAX_FUNDAMENTAL_HZ)
    voiced: _Array = pitches[(highest >= _VOICED_CLARITY) & in_range]
    return voiced


def _compute_frame_power(samples: Samples, frame_samples: int) -> _Array:
    """Mean square of consecutive frames; a last piece shorter than a frame is left out."""
    whole = len(samples) // frame_samples * frame_samples
    power = np.empty(whole // frame_samples)
    done = 0
    for block in split_blocks(samples[:whole], _BLOCK_FRAMES * frame_samples):
        frames = block.reshape(-1, frame_samples).astype(np.float64)
        power[done : done + len(frames)] = np.square(frames, out=frames).mean(axis=1)
        done += len(frames)
    return power


def measure_peak(samples: Samples) -> float:
    """The highest level of a sample; without a copy, as a segment of a minute takes 6 MB."""
    return max(float(samples.max(initial=0.0)), -float(samples.min(initial=0.0)))


def _mean_power(samples: Samples) -> float:
    power = sum(float(np.square(block, dtype=np.float64).sum()) for block in split_blocks(samples))
    return power / max(1, len(samples))


def _compute_frame_db(frame_power: _Array) -> _Array:
    levels: _Array = 10 * np.log10(np.maximum(frame_power, 10 ** (FLOOR_DB / 10)))
    return levels


def _measure_edge_silence(speech: npt.NDArray[np.bool_], clip: Clip) -> tuple[float, float]:
    if not speech.any():
        return clip.duration_s, clip.duration_s
    first = int(np.argmax(speech))
    last = len(speech) - int(np.argmax(speech[::-1]))
    return first * FRAME_S, max(0.0, clip.duration_s - last * FRAME_S)


def _mean_or_zero(values: npt.NDArray[np.float64] | npt.NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else 0.0


SampleSpan = tuple[int, int]


def find_silences(clip: Clip, *, min_s: float) -> tuple[SampleSpan, ...]:
    """Find the silences of a clip, those at its ends included.

    Args:
        clip: An empty one has none; one without any speech is a single stretch.
        min_s: Shorter ones are left out.

    Returns:
        First sample and the one after the last, in order.
    """
    speech = detect_speech_frames(clip)
    size = max(1, round(FRAME_S * clip.rate_hz))
    # A last piece shorter than a frame belongs to the silence before it.
    spans = ((a * size, b * size if b < len(speech) else len(clip)) for a, b in find_runs(~speech))
    return tuple((a, b) for a, b in spans if b - a >= min_s * clip.rate_hz)


def find_runs(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First index of each run of true values, and the one after its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def shorten_silences(clip: Clip, *, min_s: float, keep_s: float, edge_s: float) -> Clip:
    """Shorten long silences.

    Args:
        clip: What is cut; one without any speech is given back as it is.
        min_s: Silences inside the clip shorter than this stay as they are.
        keep_s: What remains of a longer one, half at each side.
        edge_s: What remains before the first speech and behind the last.
    """
    if not detect_speech_frames(clip).any():
        return clip
    parts = list(_iter_kept_parts(clip, min_s=min_s, keep_s=keep_s, edge_s=edge_s))
    return Clip(_join_with_fades(parts, round(0.005 * clip.rate_hz)), clip.rate_hz)


def _iter_kept_parts(
    clip: Clip, *, min_s: float, keep_s: float, edge_s: float
) -> Iterator[Samples]:
    edge, half = round(edge_s * clip.rate_hz), round(keep_s * clip.rate_hz / 2)
    begin = 0
    for first, after in find_silences(clip, min_s=0):
        if first == 0:
            begin = max(0, after - edge)
        elif after == len(clip):
            yield clip.samples[begin : min(len(clip), first + edge)]
            return
        elif after - first >= min_s * clip.rate_hz:
            yield clip.samples[begin : first + half]
            begin = after - half
    yield clip.samples[begin:]


def _join_with_fades(parts: list[Samples], fade: int) -> Samples:
    """Join parts end to end; both sides of a join fade over `fade` samples, so that none clicks."""
    ramp = np.linspace(0.0, 1.0, fade, dtype=np.float32)
    parts = [part.copy() for part in parts]
    for before, after in pairwise(parts):
        before[-fade:] *= ramp[::-1][-len(before) :]
        after[:fade] *= ramp[: len(after)]
    return np.concatenate(parts)


OUTLINE_FULL_SCALE = 100


def compute_outline(clip: Clip, columns: int) -> list[int]:
    """Highest level in each of `columns` equal parts, 0 to `OUTLINE_FULL_SCALE`.

    A clip shorter than `columns` samples gives one value for each sample.
    """
    loudness = np.abs(clip.samples)
    columns = min(columns, len(loudness))
    if not columns:
        return []
    starts = np.arange(columns) * len(loudness) // columns
    levels: list[int] = (
        np.ceil(np.maximum.reduceat(loudness, starts) * OUTLINE_FULL_SCALE).astype(int).tolist()
    )
    return levels


_MUSIC_RATE_HZ = 11_025
_MUSIC_WINDOW_SAMPLES = 1_024
_MUSIC_HOP_SAMPLES = 256
_MUSIC_LOW_HZ, _MUSIC_HIGH_HZ = 300.0, 4_000.0  # mains hum lies below, hiss above
_SMOOTHED_BINS = 31  # 330 Hz: wider than a note, narrower than a formant's slope
_QUIETEST_SHARE = 0.15
_MIN_WINDOWS = 3
_POWER_EPSILON = 1e-12  # power of -120 dB, which keeps ratios of empty bins finite
_MUSIC_FLOOR_DB = -60.0
_MAX_MUSIC_S = 60.0


def measure_background_tones(clip: Clip) -> float:
    """How tonal a recording is in its quietest moments, where only the background is heard.

    Noise is flat there, whatever its colour, and digital silence is nothing; notes that sound on
    between the words are narrow peaks. Drums aren't seen, nor music below -60 dB, and a voice that
    holds its pitch as in singing counts as music itself.

    Returns:
        One less the spectral flatness between 300 and 4,000 Hz over its own smooth course, over
        the first minute: 0 for silence, about 0.4 for noise, up to 1 for tones. Shorter than 0.5 s
        gives 0.
    """
    head = clip.samples[: round(_MAX_MUSIC_S * clip.rate_hz)]
    samples = soxr.resample(head, clip.rate_hz, _MUSIC_RATE_HZ)
    if len(samples) < _MUSIC_RATE_HZ // 2:
        return 0.0
    spectra = _compute_power_spectra(samples)  # [windows, bins]
    power = spectra.sum(axis=1)
    audible = power > 10 ** (_MUSIC_FLOOR_DB / 10)
    background = spectra[audible & (power <= np.quantile(power, _QUIETEST_SHARE))]
    if len(background) < _MIN_WINDOWS:
        return 0.0
    flat = (background + _POWER_EPSILON) / (_smooth_spectra(background) + _POWER_EPSILON)
    flatness = np.exp(np.log(flat).mean(axis=1)) / flat.mean(axis=1)
    return float(1 - flatness.mean())


def _smooth_spectra(spectra: _Array) -> _Array:
    """Running mean over bins; the edges repeat their last bin."""
    edge = _SMOOTHED_BINS // 2
    padded = np.pad(spectra, ((0, 0), (edge + 1, edge)), mode="edge")
    sums = np.cumsum(padded, axis=1)
    means = (sums[:, _SMOOTHED_BINS:] - sums[:, :-_SMOOTHED_BINS]) / _SMOOTHED_BINS
    # The difference of two large sums may come out below nothing.
    smooth: _Array = np.maximum(means, 0)
    return smooth


def _compute_power_spectra(samples: npt.NDArray[np.float32]) -> _Array:
    """Power of each window's bins between the limits; a full-scale sine sums to about 0 dB."""
    windows = np.lib.stride_tricks.sliding_window_view(samples, _MUSIC_WINDOW_SAMPLES)[
        ::_MUSIC_HOP_SAMPLES
    ]
    shape = np.hanning(_MUSIC_WINDOW_SAMPLES)
    power = np.abs(np.fft.rfft(windows * shape, axis=1)) ** 2 * (2 / shape.sum() ** 2)
    hz = np.fft.rfftfreq(_MUSIC_WINDOW_SAMPLES, 1 / _MUSIC_RATE_HZ)
    band: _Array = power[:, (hz >= _MUSIC_LOW_HZ) & (hz <= _MUSIC_HIGH_HZ)]
    return band


FEATURE_STEP_S = 2 * FRAME_S
"""Time step of the features that are compared."""

_RATE_HZ = 8_000
_WINDOW_SAMPLES = 512  # 64 ms: three periods of the lowest voice, about 50 Hz
_SHORTEST_PERIOD_SAMPLES, _LONGEST_PERIOD_SAMPLES = 20, 134
_MIN_VOICED_RISE = 0.5  # noise of any colour stays below
_MIN_VOICED_SHARE = 0.2  # less is a whisper, whose last voiced frame says nothing
_BANDS = 16
_SPECTRUM_FLOOR = 1e-5  # of the loudest band; anything lower is inaudible

_SHORT_GAP_S = 0.3
_STEADY_DB = 4.0

_Array32 = npt.NDArray[np.float32]
_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class SoundFrames:
    """The features of a clip.

    Attributes:
        level_db: Level of each frame, dB of full scale: [frames].
        speech: Whether a frame is loud enough to be speech, as `detect_speech_frames`: [frames].
        power: Power spectra at 8,000 Hz, centred on the frames: [frames, bins].
        speech_db: Mean power of the frames with speech, dB of full scale; -120 if there are none.
    """

    level_db: npt.NDArray[np.float64]
    speech: _Flags
    power: _Array32
    speech_db: float

    @classmethod
    def from_clip(cls, clip: Clip) -> SoundFrames:
        """Measure a clip; a rest shorter than a frame is ignored."""
        level_db = measure_frame_levels(clip)
        speech = _detect_speech(clip, level_db)
        return cls(
            level_db, speech, _compute_spectra(clip, len(level_db)), _average_db(level_db[speech])
        )

    @property
    def speech_s(self) -> float:
        """Duration from the first to the last speech, without silences longer than 0.3 s."""
        first, last = _find_ends(self.speech)
        lengths = (after - begin for begin, after in _find_gaps(self.speech))
        return (last - first - sum(n for n in lengths if n > _SHORT_GAP_S / FRAME_S)) * FRAME_S

    def longest_gap_s(self) -> float:
        """Duration of the longest silence between speech."""
        return max((after - begin for begin, after in _find_gaps(self.speech)), default=0) * FRAME_S

    def silent_end_s(self) -> float:
        """Duration after the last speech."""
        return (len(self.speech) - _find_ends(self.speech)[1]) * FRAME_S

    def tail_s(self) -> float:
        """Duration after the last voiced frame, or after the last speech if little is voiced."""
        silent = len(self.speech) - _find_ends(self.speech)[1]
        voiced = self.detect_voiced()
        if 2 * voiced.sum() < _MIN_VOICED_SHARE * max(1, self.speech.sum()):
            return silent * FRAME_S
        return max(silent, 2 * int(np.argmax(voiced[::-1]))) * FRAME_S

    def steady_s(self, least_s: float) -> tuple[float, bool]:
        """Duration of the longest stretch of constant level (within 4 dB); whether it is the end.

        Args:
            least_s: Shorter stretches count as 0.
        """
        width = round(least_s / FRAME_S)
        if len(self.level_db) < width:
            return 0.0, False
        windows = np.lib.stride_tricks.sliding_window_view(self.level_db, width)
        lowest, highest = windows.min(axis=1), windows.max(axis=1)
        quietest_db = self.level_db[self.speech].min(initial=np.inf)
        steady = (highest - lowest < _STEADY_DB) & (lowest >= quietest_db)
        runs = find_runs(steady)
        if not runs:
            return 0.0, False
        begin, after = max(runs, key=lambda run: run[1] - run[0])
        is_last = after + width >= len(self.level_db) - 5
        return (after - begin + width - 1) * FRAME_S, is_last

    def detect_voiced(self) -> _Flags:
        """Whether every second frame is periodic at the pitch of a voice: [steps]."""
        power = self.power[::2]
        rise = np.empty(len(power), dtype=np.float32)
        for start in range(0, len(power), _BLOCK_FRAMES):
            rise[start : start + _BLOCK_FRAMES] = _measure_rise(
                power[start : start + _BLOCK_FRAMES]
            )
        voiced: _Flags = (rise > _MIN_VOICED_RISE) & self.speech[::2]
        return voiced

    def compute_bands(self) -> tuple[_Array32, _Array32]:
        """Log spectrum of every second frame and its neighbours, relative to the clip's mean.

        Returns:
            Vectors of length 1, or 0 without speech: [steps, bands]; and 1.0 where there is
            speech: [steps]. A step is `FEATURE_STEP_S` long.
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


def _find_ends(speech: _Flags) -> tuple[int, int]:
    """Index of the first frame with speech, and of the one after the last."""
    where = np.flatnonzero(speech)
    return (int(where[0]), int(where[-1]) + 1) if len(where) else (0, 0)


def _find_gaps(speech: _Flags) -> list[tuple[int, int]]:
    """The silences between speech: first frame of each, and the one after its last."""
    first, last = _find_ends(speech)
    return [(first + a, first + b) for a, b in find_runs(~speech[first:last])]


def _measure_rise(power: _Array32) -> _Array32:
    """How far the similarity of each frame to itself rises again after its lowest: [frames]."""
    likeness = np.fft.irfft(power, axis=1)[:, : _LONGEST_PERIOD_SAMPLES + 1]
    likeness = likeness / np.maximum(likeness[:, :1], 1e-12) / _WINDOW_AUTOCORRELATION
    lowest = np.minimum.accumulate(likeness, axis=1)
    rise: _Array32 = (likeness - lowest)[:, _SHORTEST_PERIOD_SAMPLES:].max(axis=1, initial=0.0)
    return rise


def _average_db(levels_db: npt.NDArray[np.float64]) -> float:
    return 10 * float(np.log10(np.mean(10 ** (levels_db / 10)))) if len(levels_db) else FLOOR_DB


def _compute_spectra(clip: Clip, n_frames: int) -> _Array32:
    step = max(1, clip.rate_hz // _RATE_HZ)
    whole = len(clip) // step * step
    # Means instead of a proper filter: aliasing is the same each time, and only similarity counts.
    # Summed column by column: a mean over rows of three takes four times as long.
    hop = round(FRAME_S * clip.rate_hz / step)
    edge = (_WINDOW_SAMPLES - hop) // 2
    padded = np.zeros(edge + whole // step + _WINDOW_SAMPLES, dtype=np.float32)
    low = padded[edge : edge + whole // step]
    for at in range(step):
        low += clip.samples[at:whole:step]
    low /= step
    windows = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW_SAMPLES)[::hop][:n_frames]
    power = np.empty((len(windows), _WINDOW_SAMPLES // 2 + 1), dtype=np.float32)
    for start in range(0, len(windows), _BLOCK_FRAMES):
        spectra = np.fft.rfft(windows[start : start + _BLOCK_FRAMES] * _WINDOW, axis=1)
        power[start : start + len(spectra)] = spectra.real**2 + spectra.imag**2
    return power


_WINDOW = np.hanning(_WINDOW_SAMPLES).astype(np.float32)
_WINDOW_AUTOCORRELATION = np.correlate(_WINDOW, _WINDOW, "full")[_WINDOW_SAMPLES - 1 :][
    : _LONGEST_PERIOD_SAMPLES + 1
] / float(np.square(_WINDOW).sum())
_BAND_EDGES = np.unique(np.geomspace(8, _WINDOW_SAMPLES // 2, _BANDS + 1).round().astype(np.intp))
