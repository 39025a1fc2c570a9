import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.audio.analysis import measure_levels, shorten_silences
from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.audio.repair import repair


def speech(duration_s=4.0, *, level=0.2):
    """Bursts of noise, as loud and as long as words."""
    t = np.arange(round(duration_s * STUDIO_RATE_HZ)) / STUDIO_RATE_HZ
    words = np.random.default_rng(2).normal(size=len(t)) * (t % 0.5 < 0.4)
    return (level * words / 4).astype(np.float32)


def padded(samples, seconds):
    silence = np.zeros(round(seconds * STUDIO_RATE_HZ), np.float32)
    return Clip(np.concatenate([silence, samples, silence]))


@pytest.mark.parametrize("level", [0.005, 0.05, 0.3, 1.0])
def test_speech_comes_to_the_target_and_nothing_is_louder_than_allowed(level):
    made = repair(padded(speech(level=level), 1.5))
    assert made.after.speech_db == pytest.approx(-20.0, abs=0.5)
    assert made.after.peak_db <= -1.0 + 0.01
    assert made.clip.duration_s == pytest.approx(4.1, abs=0.05)
    assert any("s of silence" in step for step in made.steps)


def test_silences_longer_than_800_ms_are_cut_to_400_and_those_at_the_ends_to_100():
    words = speech(1.4)  # ends with a word
    for between_s, left_s in ((0.7, 0.7), (0.9, 0.4), (3.0, 0.4)):
        gap = np.zeros(round(between_s * STUDIO_RATE_HZ), np.float32)
        made = repair(padded(np.concatenate([words, gap, words]), 2.0))
        assert made.clip.duration_s == pytest.approx(0.1 + 1.4 + left_s + 1.4 + 0.1, abs=0.03)


def test_a_repaired_recording_begins_and_ends_without_a_click():
    t = np.arange(STUDIO_RATE_HZ) / STUDIO_RATE_HZ
    made = repair(Clip((0.02 * np.cos(2 * np.pi * 200 * t)).astype(np.float32)))
    assert made.steps
    assert made.clip.samples[0] == made.clip.samples[-1] == 0
    assert np.abs(made.clip.samples[:24]).max() < np.abs(made.clip.samples[480:720]).max() / 4


def test_a_shortened_silence_is_joined_without_a_click():
    words = speech(1.4)
    silence = np.full(3 * STUDIO_RATE_HZ, 0.0005, np.float32)
    whole = np.concatenate([words, silence, words])
    made = shorten_silences(Clip(whole), min_s=0.8, keep_s=0.4, edge_s=0.1)
    joined = made.samples[round(1.5 * STUDIO_RATE_HZ) : round(1.7 * STUDIO_RATE_HZ)]
    assert joined.max() <= 0.0006
    assert 0 <= joined.min() < 0.00001, "both sides fade to nothing where they meet"


def test_an_offset_is_taken_out():
    made = repair(Clip(speech() + np.float32(0.1)))
    assert abs(made.clip.samples.mean()) < 0.005


def test_what_is_fine_already_has_no_steps():
    once = repair(padded(speech(), 1.0)).clip
    again = repair(once)
    assert again.steps == ()
    assert again.clip.duration_s == pytest.approx(once.duration_s, abs=0.05)


def test_before_and_after_are_those_of_the_clips():
    clip = padded(speech(level=0.02), 1.0)
    made = repair(clip)
    assert made.before == measure_levels(clip)
    assert made.after == measure_levels(made.clip)
    assert f"levelled from {made.before.speech_db:.0f} to -20 dB" in made.steps


@pytest.mark.parametrize("samples", [0, 10, 48_000])
def test_silence_is_given_back_as_it_is(samples):
    clip = Clip(np.zeros(samples, np.float32))
    made = repair(clip)
    assert made.clip is clip
    assert made.steps == ()


@settings(max_examples=40)
@given(seed=st.integers(0, 1_000), samples=st.integers(1, 40_000), level=st.floats(0, 1))
def test_any_clip_can_be_repaired(seed, samples, level):
    noise = np.random.default_rng(seed).uniform(-level, level, samples).astype(np.float32)
    made = repair(Clip(noise))
    assert np.isfinite(made.clip.samples).all()
    assert np.abs(made.clip.samples).max(initial=0) <= 1
