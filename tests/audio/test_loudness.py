"""The meter agrees with another implementation, whatever it is given and however it comes."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from independent_meter import lufs
from spoken_scenes import spoken, true_peak_db

from studio.audio.clip import FLOOR_DB, STUDIO_RATE_HZ
from studio.audio.loudness import LoudnessMeter, measure_loudness


def sine(hz, level_db, duration_s=6.0):
    t = np.arange(round(duration_s * STUDIO_RATE_HZ)) / STUDIO_RATE_HZ
    return (10 ** (level_db / 20) * np.sin(2 * np.pi * hz * t)).astype(np.float32)


@pytest.mark.parametrize("level_db", [-9.0, -23.0, -40.0])
@pytest.mark.parametrize("hz", [100, 997, 4_000])
def test_sines_are_as_loud_as_another_meter_says(hz, level_db):
    samples = sine(hz, level_db)
    assert measure_loudness([samples]).lufs == pytest.approx(lufs(samples), abs=0.2)


def test_a_full_scale_sine_of_1_khz_reads_3_lufs_below_zero():
    assert measure_loudness([sine(997, 0.0)]).lufs == pytest.approx(-3.01, abs=0.1)


@pytest.fixture(scope="module")
def speech():
    return np.concatenate([clip.samples for clip in spoken()])


def test_speech_with_pauses_is_as_loud_as_another_meter_says(speech):
    gap = np.zeros(3 * STUDIO_RATE_HZ, dtype=np.float32)
    for samples in (speech, np.concatenate([speech, gap, speech * np.float32(0.05), gap])):
        assert measure_loudness([samples]).lufs == pytest.approx(lufs(samples), abs=0.2)


def test_levels_are_those_of_the_samples(speech):
    found = measure_loudness([speech])
    assert found.peak_db == pytest.approx(20 * np.log10(np.abs(speech).max()), abs=1e-3)
    rms = np.sqrt(np.square(speech, dtype=np.float64).mean())
    assert found.rms_db == pytest.approx(20 * np.log10(rms), abs=1e-3)
    assert found.true_peak_db >= found.peak_db
    assert found.true_peak_db == pytest.approx(true_peak_db(speech), abs=0.2)


def test_a_peak_between_the_samples_is_seen():
    t = np.arange(2 * STUDIO_RATE_HZ)
    fading = np.hanning(len(t))
    samples = (0.5 * fading * np.sin(np.pi * t / 2 + np.pi / 4)).astype(np.float32)
    found = measure_loudness([samples])
    assert found.peak_db == pytest.approx(-9.03, abs=0.05)
    assert found.true_peak_db == pytest.approx(-6.02, abs=0.1)


def test_how_the_blocks_are_cut_changes_nothing(speech):
    whole = measure_loudness([speech])
    for size in (1_000, 2_400, 65_537):
        blocks = [speech[start : start + size] for start in range(0, len(speech), size)]
        assert asdict(measure_loudness(blocks)) == pytest.approx(asdict(whole), abs=1e-6)


def test_the_quietest_half_second_is_the_noise(speech):
    rng = np.random.default_rng(5)
    noise = (10 ** (-66 / 20) * rng.standard_normal(2 * STUDIO_RATE_HZ)).astype(np.float32)
    assert measure_loudness([speech, noise, speech]).noise_db == pytest.approx(-66, abs=0.5)


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(0, dtype=np.float32),
        np.zeros(2 * STUDIO_RATE_HZ, dtype=np.float32),
        sine(997, -20.0, duration_s=0.2),
        sine(997, -80.0),
    ],
    ids=["nothing", "silence", "short", "quiet"],
)
def test_what_is_silent_or_short_has_no_loudness(samples):
    found = measure_loudness([samples])
    assert found.lufs is None
    assert found.true_peak_db >= FLOOR_DB
    assert "too quiet" in str(found)


def test_without_true_peaks_the_loudness_is_the_same(speech):
    meter = LoudnessMeter(true_peak=False)
    meter.push(speech)
    assert meter.finish().lufs == measure_loudness([speech]).lufs
