"""One person or two, by voiceprints: here of a voice's colour, made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.hearing.listeners import pack_voiceprint
from studio.hearing.voice_turns import measure_voices
from studio.voices.samples import SampleProblemCode, check_clip


def phrase(seconds: float, *, dark: bool) -> np.ndarray:
    """A tone of 120 Hz with many harmonics, or with few."""
    t = np.arange(round(seconds * STUDIO_RATE_HZ)) / STUDIO_RATE_HZ
    harmonics = range(1, 4) if dark else range(6, 30)
    wave = sum(np.sin(2 * np.pi * 120 * k * t) / len(harmonics) for k in harmonics)
    swell = 0.6 + 0.4 * np.sin(2 * np.pi * 3 * t)
    return (0.3 * wave * swell).astype(np.float32)


def turns(*phrases: tuple[float, bool]) -> Clip:
    pause = np.zeros(STUDIO_RATE_HZ // 3, dtype=np.float32)
    parts = [part for seconds, dark in phrases for part in (phrase(seconds, dark=dark), pause)]
    return Clip(np.concatenate(parts))


def embed(clip: Clip) -> str | None:
    power = np.abs(np.fft.rfft(clip.samples)) ** 2
    split = round(500 * len(clip) / STUDIO_RATE_HZ)
    low, high = power[:split].sum(), power[split:].sum()
    return pack_voiceprint("colour", np.array([low - high, 0.1 * (low + high)]))


def test_two_voices_of_one_pitch_are_told_apart() -> None:
    found = measure_voices(turns((2.0, True), (1.5, False), (1.8, True), (1.4, False)), embed)
    assert found == pytest.approx((3.8, 2.9), abs=0.3)


def test_one_voice_is_one() -> None:
    found = measure_voices(turns((2.0, True), (1.5, True), (1.8, True)), embed)
    assert found == pytest.approx((5.3,), abs=0.4)
    assert len(measure_voices(turns((2.0, True)), embed) or ()) == 1


def test_a_moment_of_another_voice_is_none() -> None:
    assert len(measure_voices(turns((2.0, True), (0.6, False), (1.8, True)), embed) or ()) == 1


def test_nothing_can_be_told() -> None:
    assert measure_voices(Clip.silence(3.0), embed) is None
    assert measure_voices(turns((2.0, True), (2.0, False)), lambda _: None) is None


def test_the_check_of_a_sample_believes_voiceprints_rather_than_pitch() -> None:
    two = turns((2.0, True), (1.5, False), (1.8, True), (1.4, False))

    def codes(count_voices: object) -> dict[str, str]:
        problems = check_clip(two, count_voices=count_voices).problems
        return {one.code: one.message for one in problems}

    assert SampleProblemCode.SPEAKERS not in codes(None)
    said = codes(lambda clip: measure_voices(clip, embed))[SampleProblemCode.SPEAKERS]
    assert said.startswith("Two people are speaking in it, for 4 s and 3 s.")
    assert SampleProblemCode.SPEAKERS not in codes(lambda _: None)
