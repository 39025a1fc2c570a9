"""The limiter holds the ceiling, keeps every sample's place, and leaves the rest alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spoken_scenes import true_peak_db
from voice_like import voice_like

from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.mastering import limit_peaks


def cut(samples, size):
    return [samples[start : start + size] for start in range(0, len(samples), size)]


def through(samples, ceiling_db=-1.0, size=65_536):
    out = list(limit_peaks(cut(samples, size), ceiling_db))
    return np.concatenate(out) if out else np.zeros(0, dtype=np.float32)


@pytest.fixture(scope="module")
def voice():
    return voice_like(4.0).samples


def test_what_stays_below_the_ceiling_comes_out_bit_for_bit(voice):
    assert (through(voice * np.float32(0.5)) == voice * np.float32(0.5)).all()


@pytest.mark.parametrize("gain", [2.0, 8.0])
def test_true_peaks_stay_below_the_ceiling(voice, gain):
    held = through(voice * np.float32(gain))
    assert len(held) == len(voice)
    assert np.abs(held).max() <= 10 ** (-1 / 20)
    assert true_peak_db(held) <= -1.0 + 0.1


def test_one_peak_lowers_its_surroundings_only(voice):
    quiet = voice * np.float32(0.3)
    loud = quiet.copy()
    loud[40_000] = 1.5
    held = through(loud)
    reach = round(0.021 * STUDIO_RATE_HZ)
    near = slice(40_000 - reach, 40_000 + reach)
    changed = np.flatnonzero(held != quiet)
    assert near.start <= changed.min() < 40_000 < changed.max() <= near.stop
    assert abs(held[40_000]) <= 10 ** (-1 / 20)
    # A gain, and no delay: each sample near it is a smaller one of the same sign.
    assert (np.sign(held[near]) == np.sign(loud[near])).all()
    assert (np.abs(held[near]) <= np.abs(loud[near]) + 1e-7).all()


@settings(max_examples=15)
@given(
    n_samples=st.one_of(st.integers(0, 5), st.integers(30_000, 70_000)),
    size=st.sampled_from([977, 32_768, 100_000]),
    seed=st.integers(0, 2**32 - 1),
)
def test_as_many_samples_come_out_and_none_is_too_high(n_samples, size, seed):
    rng = np.random.default_rng(seed)
    samples = (rng.standard_normal(n_samples) * rng.uniform(0, 1)).astype(np.float32)
    held = through(samples, -3.0, size)
    assert len(held) == n_samples
    assert np.abs(held).max(initial=0) <= 10 ** (-3 / 20)
    assert np.abs(held - through(samples, -3.0)).max(initial=0) <= 1e-6
