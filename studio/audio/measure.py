"""What can be told from a clip's samples: levels, silence, noise and the voice's pitch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import soxr

from studio.audio.clip import Clip, Samples

FLOOR_DB = -120.0
"""Level of digital silence; no level is given below it."""

MIN_FUNDAMENTAL_HZ = 60.0
MAX_FUNDAMENTAL_HZ = 400.0

_CLIPPED = 0.999
_SILENT_DB = -60.0
_SPEECH_BELOW_LOUDEST_DB = 35.0
FRAME_S = 0.02
"""Length of the frames that count as speech or as silence."""

_PITCH_RATE_HZ = 8_000
_PITCHFRAME_SAMPLES = 400  # 50 ms: three periods of the lowest voice
_PITCH_HOP_SAMPLES = 160
_PITCH_FFT_SAMPLES = 1_024  # holds a frame and its longest lag without wrapping round
_SHORTEST_LAG_SAMPLES = 8  # below the range, so that a whistle isn't taken for its own octave
_LONGEST_LAG_SAMPLES = 140
_VOICED_CLARITY = 0.6
_FIRST_PEAK_SHARE = 0.9  # of the highest peak; a lower share finds octaves above the voice
_MIN_VOICED_FRAMES = 5
_MEASURED_S = 60.0

_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Levels:
    """How loud, how clean and how full of speech a clip is.

    Attributes:
        peak_db: Highest sample, dB of full scale; `FLOOR_DB` for digital silence.
        rms_db: Mean power of the whole clip, dB of full scale.
        speech_db: Mean power of the frames that hold speech, dB of full scale.
        noise_db: Level of the quietest tenth of the frames, dB of full scale. Where a clip holds
            no gap between words this is speech, so read it beside `speech_share`.
        clipped_share: Share of samples at full scale, 0 to 1.
        speech_share: Share of 20 ms frames within 35 dB of the loudest, 0 to 1.
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


def measure_levels(clip: Clip) -> Levels:
    """Measure a clip; an empty one counts as silence."""
    samples = clip.samples
    frame_power = _frame_power(samples, max(1, round(FRAME_S * clip.rate_hz)))
    frame_db = _frame_db(frame_power)
    speech = is_speech(frame_db)
    leading_s, trailing_s = _silence_around(speech, clip)
    return Levels(
        peak_db=_db(float(np.abs(samples).max(initial=0.0)) ** 2),
        rms_db=_db(_mean(np.square(samples, dtype=np.float64))),
        speech_db=_db(_mean(frame_power[speech])),
        noise_db=float(np.percentile(frame_db, 10)) if len(frame_db) else FLOOR_DB,
        clipped_share=_mean(np.abs(samples) >= _CLIPPED),
        speech_share=_mean(speech),
        leading_silence_s=leading_s,
        trailing_silence_s=trailing_s,
    )


def speech_frames(clip: Clip) -> npt.NDArray[np.bool_]:
    """Whether each whole 20 ms frame is loud enough to hold speech: [frames].

    Loud enough is within 35 dB of the loudest frame and above -60 dB of full scale.
    """
    return is_speech(frame_levels(clip))


def frame_levels(clip: Clip) -> _Array:
    """Level of each whole 20 ms frame, dB of full scale: [frames]."""
    return _frame_db(_frame_power(clip.samples, max(1, round(FRAME_S * clip.rate_hz))))


def is_speech(frame_db: _Array) -> npt.NDArray[np.bool_]:
    """Whether each frame is within 35 dB of the loudest and above -60 dB of full scale."""
    loudest_db = float(frame_db.max(initial=FLOOR_DB))
    speech: npt.NDArray[np.bool_] = frame_db > max(
        loudest_db - _SPEECH_BELOW_LOUDEST_DB, _SILENT_DB
    )
    return speech


def fundamental_hz(clip: Clip) -> float | None:
    """Median fundamental frequency of a voice, over the first minute of a clip.

    Returns:
        Hertz within 60 to 400, None when less than about 0.1 s of the clip is voiced.

    Source: McLeod and Wyvill, "A smarter way to find pitch" (2005): the first peak of the
    normalised square difference function that comes near its highest one.
    """
    head = clip.samples[: round(_MEASURED_S * clip.rate_hz)]
    if not np.any(head):
        return None
    samples = soxr.resample(head, clip.rate_hz, _PITCH_RATE_HZ).astype(np.float64)
    if len(samples) < _PITCHFRAME_SAMPLES:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(samples, _PITCHFRAME_SAMPLES)
    frames = _loud_frames(windows[::_PITCH_HOP_SAMPLES])
    pitches = _frame_pitches_hz(_similarity(frames))
    return float(np.median(pitches)) if len(pitches) >= _MIN_VOICED_FRAMES else None


def _loud_frames(frames: _Array) -> _Array:
    centred: _Array = frames - frames.mean(axis=1, keepdims=True)
    power = np.square(centred).mean(axis=1)
    quietest = max(power.max() * 10 ** (-_SPEECH_BELOW_LOUDEST_DB / 10), 10 ** (_SILENT_DB / 10))
    loud: _Array = centred[power >= quietest]
    return loud


def _similarity(frames: _Array) -> _Array:
    """Likeness of each frame to itself shifted: [frames, lags], 1 for a perfect repetition."""
    spectrum = np.fft.rfft(frames, _PITCH_FFT_SAMPLES, axis=1)
    product = np.fft.irfft(np.abs(spectrum) ** 2, _PITCH_FFT_SAMPLES, axis=1)
    energy = np.cumsum(np.square(frames), axis=1)  # [frames, samples]
    lags = np.arange(_LONGEST_LAG_SAMPLES + 2)
    head = energy[:, _PITCHFRAME_SAMPLES - 1 - lags]
    tail = energy[:, -1:] - np.where(lags > 0, energy[:, lags - 1], 0.0)
    result: _Array = 2 * product[:, lags] / np.maximum(head + tail, 1e-12)
    return result


def _frame_pitches_hz(similarity: _Array) -> _Array:
    """Pitch of the voiced frames among [frames, lags], in order."""
    lags = np.arange(_SHORTEST_LAG_SAMPLES, _LONGEST_LAG_SAMPLES + 1)
    before, here, after = (similarity[:, lags + step] for step in (-1, 0, 1))
    peaks = np.where((here > before) & (here >= after), here, 0.0)
    highest = peaks.max(axis=1, initial=0.0)
    first = np.argmax(peaks >= np.maximum(highest, 1e-12)[:, None] * _FIRST_PEAK_SHARE, axis=1)
    rows = np.arange(len(peaks))
    left, top, right = (part[rows, first] for part in (before, here, after))
    # A parabola through the peak and its neighbours gives the lag between samples.
    bend = np.minimum(left - 2 * top + right, -1e-12)
    pitches = _PITCH_RATE_HZ / (lags[first] + 0.5 * (left - right) / bend)
    in_range = (pitches >= MIN_FUNDAMENTAL_HZ) & (pitches <= MAX_FUNDAMENTAL_HZ)
    voiced: _Array = pitches[(highest >= _VOICED_CLARITY) & in_range]
    return voiced


def _frame_power(samples: Samples, frame_samples: int) -> _Array:
    """Mean square of consecutive frames; a last piece shorter than a frame is left out."""
    whole = len(samples) // frame_samples * frame_samples
    frames = samples[:whole].reshape(-1, frame_samples).astype(np.float64)
    power: _Array = np.square(frames).mean(axis=1)
    return power


def _frame_db(frame_power: _Array) -> _Array:
    levels: _Array = 10 * np.log10(np.maximum(frame_power, 10 ** (FLOOR_DB / 10)))
    return levels


def _silence_around(speech: npt.NDArray[np.bool_], clip: Clip) -> tuple[float, float]:
    if not speech.any():
        return clip.duration_s, clip.duration_s
    first = int(np.argmax(speech))
    last = len(speech) - int(np.argmax(speech[::-1]))
    return first * FRAME_S, max(0.0, clip.duration_s - last * FRAME_S)


def _mean(values: npt.NDArray[np.float64] | npt.NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else 0.0


def _db(power: float) -> float:
    return max(FLOOR_DB, 10 * float(np.log10(max(power, 1e-30))))
