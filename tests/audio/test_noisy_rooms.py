"""A recording in a noisy room: its silences are found and cut, and its noise isn't made louder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from spoken_scenes import spoken
from voice_like import voice_like

from studio.audio.analysis import find_silences, measure_levels
from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.audio.repair import repair
from studio.voices.samples import SampleProblemCode, check_clip

Noise = Callable[[int], np.ndarray]


def white(samples: int) -> np.ndarray:
    return np.random.default_rng(4).normal(size=samples)


def pink(samples: int) -> np.ndarray:
    hz = np.fft.rfftfreq(samples)
    hz[0] = hz[1]
    return np.fft.irfft(np.fft.rfft(white(samples)) / np.sqrt(hz), samples)


def hum(samples: int, mains_hz: int = 50) -> np.ndarray:
    t = np.arange(samples) / STUDIO_RATE_HZ
    return sum(np.sin(2 * np.pi * mains_hz * k * t + k) / k for k in (1, 2, 3, 5))


def hum_60(samples: int) -> np.ndarray:
    return hum(samples, 60)


def hum_and_hiss(samples: int) -> np.ndarray:
    return hum(samples) / hum(samples).std() + pink(samples) / pink(samples).std()


NOISES = (white, pink, hum, hum_60, hum_and_hiss)


@cache
def recording(voice: str) -> tuple[Samples, float]:
    """1.5 s of silence, speech, 1 s, speech, 2 s, speech, 0.5 s; and the speech's power."""
    clips = spoken()[:3] if voice == "draft" else [voice_like(2.0)] * 3
    words = [clip.samples / np.abs(clip.samples).max() * np.float32(0.5) for clip in clips]
    pauses = [Clip.silence(seconds).samples for seconds in (1.5, 1.0, 2.0, 0.5)]
    parts = [pauses[0], words[0], pauses[1], words[1], pauses[2], words[2], pauses[3]]
    return np.concatenate(parts), float(np.mean(np.square(np.concatenate(words))))


def in_noise(voice: str, noise: Noise, signal_to_noise_db: float, gain_db: float = 0.0) -> Clip:
    samples, power = recording(voice)
    added = noise(len(samples))
    added *= np.sqrt(power / np.mean(np.square(added))) * 10 ** (-signal_to_noise_db / 20)
    return Clip(((samples + added) * 10 ** (gain_db / 20)).astype(np.float32))


def spans_s(clip: Clip, min_s: float) -> list[tuple[float, float]]:
    found = find_silences(clip, min_s=min_s)
    return [(a / clip.rate_hz, b / clip.rate_hz) for a, b in found]


@pytest.mark.parametrize("voice", ["draft", "like"])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("signal_to_noise_db", [10, 14, 20, 30, 40])
def test_silences_are_found_where_they_are_without_noise(
    voice: str, noise: Noise, signal_to_noise_db: float
) -> None:
    clean = spans_s(Clip(recording(voice)[0]), 0.8)
    found = spans_s(in_noise(voice, noise, signal_to_noise_db), 0.8)
    assert len(clean) == 3
    # Soft last syllables go under in the noise; the end may have become a silence of 0.8 s.
    for (begin_s, end_s), (begins_s, ends_s) in zip(clean, found, strict=False):
        assert begins_s == pytest.approx(begin_s, abs=0.25)
        assert ends_s == pytest.approx(end_s, abs=0.15)


@pytest.mark.parametrize("voice", ["draft", "like"])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("gain_db", [0.0, -14.0])
def test_repair_cuts_them_and_leaves_the_noise_as_loud_as_it_is(
    voice: str, noise: Noise, gain_db: float
) -> None:
    clip = in_noise(voice, noise, 14, gain_db)
    made = repair(clip)
    # 1.5 s become 0.1 s, 1 s and 2 s become 0.4 s each, 0.5 s becomes 0.1 s.
    assert clip.duration_s - made.clip.duration_s == pytest.approx(4.0, abs=0.6)
    assert max(b - a for a, b in spans_s(made.clip, 0.2)) < 0.5
    assert made.after.speech_db == pytest.approx(-20, abs=0.7)
    (begin, end), *_ = [
        span for span in find_silences(made.clip, min_s=0.2) if span[0] and span[1] < len(made.clip)
    ]
    pause = made.clip.samples[begin + 1_800 : end - 1_800]
    (first, last) = find_silences(clip, min_s=0.9)[0]
    noise_rms = clip.samples[first + 3_600 : last - 3_600].std()
    assert pause.std() < 1.25 * noise_rms, "2 dB"
    again = repair(made.clip)
    assert again.clip.duration_s == pytest.approx(made.clip.duration_s, abs=0.05)
    assert again.steps == ()


def test_the_checks_count_silences_in_noise_and_say_that_it_is_noisy() -> None:
    codes = [one.code for one in check_clip(in_noise("draft", pink, 14), None).problems]
    # Ida and Tom speak in it.
    two = SampleProblemCode.SPEAKERS
    assert codes == [SampleProblemCode.NOISY, SampleProblemCode.SILENCES, two]


@pytest.mark.parametrize("level", [1.0, 0.01])
def test_speech_without_a_pause_is_no_noise(level: float) -> None:
    even = np.concatenate([clip.samples for clip in spoken()]) * np.float32(level)
    soft_and_loud = np.concatenate([voice_like(2.0).samples * 0.1, voice_like(2.0).samples])
    for samples in (even, soft_and_loud * np.float32(level), (white(48_000) * 0.1).astype("f4")):
        levels = measure_levels(Clip(samples))
        assert levels == measure_levels(Clip(samples), may_be_noisy=False)
