import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.audio.analysis import (
    compute_outline,
    estimate_fundamental_hz,
    find_silences,
    measure_levels,
    shorten_silences,
)
from studio.audio.clip import FLOOR_DB, STUDIO_RATE_HZ, Clip, from_pcm16

NOISE = np.random.default_rng(3).normal(size=48_000).astype(np.float32)


@pytest.mark.parametrize("pitch_hz", [62, 85, 120, 175, 240, 330, 395])
@pytest.mark.parametrize("rate_hz", [16_000, 24_000, 44_100])
@pytest.mark.parametrize("harmonics", [1, 15])
def test_pitch_of_a_steady_voice_is_found(harmonic, pitch_hz, rate_hz, harmonics):
    clip = harmonic(pitch_hz, rate_hz=rate_hz, harmonics=harmonics)
    assert estimate_fundamental_hz(clip) == pytest.approx(pitch_hz, rel=0.01)


def test_pitch_survives_noise_and_gaps(harmonic):
    voice = harmonic(150).samples
    gap = np.zeros(24_000, dtype=np.float32)
    noisy = np.concatenate([gap, voice, gap, voice]) + 0.02 * np.resize(NOISE, 96_000)
    assert estimate_fundamental_hz(Clip(noisy.astype(np.float32))) == pytest.approx(150, rel=0.03)


def test_pitch_is_the_fundamental_also_where_it_is_missing():
    t = np.arange(24_000) / 24_000
    upper = sum(np.sin(2 * np.pi * 130 * k * t) for k in range(3, 9)) / 8
    assert estimate_fundamental_hz(Clip(upper.astype(np.float32))) == pytest.approx(130, rel=0.03)


@pytest.mark.parametrize(
    "clip",
    [
        Clip.silence(1.0),
        Clip.silence(0.0),
        Clip(np.full(10, 0.5, dtype=np.float32)),
        Clip(np.full(24_000, 0.5, dtype=np.float32)),
        Clip(0.1 * NOISE),
    ],
    ids=["silence", "empty", "short", "constant", "noise"],
)
def test_without_a_voice_there_is_no_pitch(clip):
    assert estimate_fundamental_hz(clip) is None


def test_a_whistle_above_the_range_has_no_pitch(harmonic):
    assert estimate_fundamental_hz(harmonic(700, harmonics=1)) is None


# In a process of its own, since the library has one state for the whole process.
SPEAK = """
import ctypes, sys
import espeakng_loader
library = ctypes.CDLL(espeakng_loader.get_library_path())
print(library.espeak_Initialize(1, 0, str(espeakng_loader.get_data_path()).encode(), 0))

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
def keep(samples, count, _events):
    if samples:
        print(ctypes.string_at(samples, 2 * count).hex())
    return 0

library.espeak_SetSynthCallback(keep)
library.espeak_SetVoiceByName(b"en")
library.espeak_SetParameter(3, int(sys.argv[1]), 0)
text = b"We were out on the boat all morning, and nobody saw the lighthouse."
library.espeak_Synth(text, len(text) + 1, 0, 1, 0, 1, None, None)
library.espeak_Synchronize()
"""


@pytest.mark.parametrize(
    ("pitch", "lowest_hz", "highest_hz"), [(10, 60, 90), (50, 90, 120), (90, 130, 190)]
)
def test_pitch_of_synthetic_speech_follows_its_setting(pitch, lowest_hz, highest_hz):
    pytest.importorskip("espeakng_loader")
    done = subprocess.run(
        [sys.executable, "-c", SPEAK, str(pitch)], capture_output=True, text=True, check=True
    )
    rate_hz, *pieces = done.stdout.split()
    pcm = np.frombuffer(bytes.fromhex("".join(pieces)), dtype="<i2")
    assert lowest_hz < estimate_fundamental_hz(Clip(from_pcm16(pcm), int(rate_hz))) < highest_hz


def test_levels_of_a_sine():
    t = np.arange(24_000) / 24_000
    levels = measure_levels(Clip((0.5 * np.sin(2 * np.pi * 100 * t)).astype(np.float32)))
    assert levels.peak_db == pytest.approx(-6.02, abs=0.01)
    assert levels.rms_db == pytest.approx(-9.03, abs=0.01)
    assert levels.clipped_share == 0
    assert levels.speech_share == 1
    assert levels.leading_silence_s == levels.trailing_silence_s == 0


def test_levels_tell_where_speech_begins_and_ends(harmonic):
    parts = [Clip.silence(0.5).samples, harmonic(120).samples, Clip.silence(0.25).samples]
    levels = measure_levels(Clip(np.concatenate(parts)))
    assert levels.leading_silence_s == pytest.approx(0.5, abs=0.02)
    assert levels.trailing_silence_s == pytest.approx(0.25, abs=0.02)
    assert levels.speech_share == pytest.approx(1 / 1.75, abs=0.03)


def test_noise_is_the_level_between_words(harmonic):
    voice, gap = harmonic(120).samples, Clip.silence(1.0).samples
    noisy = np.concatenate([voice, gap]) + 0.01 * NOISE
    assert measure_levels(Clip(noisy.astype(np.float32))).noise_db == pytest.approx(-40, abs=1.5)


@pytest.mark.parametrize("duration_s", [0.0, 0.001, 2.0])
def test_levels_of_silence_have_a_floor(duration_s):
    levels = measure_levels(Clip.silence(duration_s))
    assert levels.peak_db == levels.rms_db == levels.speech_db == FLOOR_DB
    assert levels.speech_share == 0
    assert levels.leading_silence_s == duration_s


def test_clipping_is_counted():
    samples = np.zeros(1_000, dtype=np.float32)
    samples[:20], samples[20:30] = 1.0, -1.0
    assert measure_levels(Clip(samples)).clipped_share == pytest.approx(0.03)


FADE_SAMPLES = 120


def laid(*parts):
    """A clip of tones (True) and silences (False), each with its seconds."""
    rng = np.random.default_rng(1)
    pieces = [
        rng.normal(size=round(seconds * STUDIO_RATE_HZ)) * (0.1 if sounds else 0.0)
        for sounds, seconds in parts
    ]
    return Clip(np.concatenate(pieces).astype(np.float32))


def in_seconds(spans):
    return [(round(a / STUDIO_RATE_HZ, 2), round(b / STUDIO_RATE_HZ, 2)) for a, b in spans]


def test_silences_are_found_with_their_ends():
    clip = laid((False, 1.0), (True, 2.0), (False, 0.5), (True, 1.0), (False, 2.01))
    assert in_seconds(find_silences(clip, min_s=0)) == [(0, 1), (3, 3.5), (4.5, 6.51)]
    assert in_seconds(find_silences(clip, min_s=0.6)) == [(0, 1), (4.5, 6.51)]


def test_nothing_and_all_of_a_clip_can_be_silent():
    assert find_silences(Clip(np.zeros(0, np.float32)), min_s=0) == ()
    assert find_silences(Clip.silence(2.0), min_s=0) == ((0, 2 * STUDIO_RATE_HZ),)
    assert find_silences(laid((True, 1.0)), min_s=0) == ()


def test_long_silences_are_cut_short_and_the_rest_stays():
    clip = laid((False, 2.0), (True, 1.0), (False, 0.5), (True, 1.0), (False, 3.0), (True, 1.0))
    cut = shorten_silences(clip, min_s=0.8, keep_s=0.4, edge_s=0.1)
    assert cut.duration_s == pytest.approx(0.1 + 1.0 + 0.5 + 1.0 + 0.4 + 1.0, abs=0.001)
    assert in_seconds(find_silences(cut, min_s=0.3)) == [(1.1, 1.6), (2.6, 3.0)]


def test_a_clip_without_speech_is_left_alone():
    clip = Clip.silence(3.0)
    assert shorten_silences(clip, min_s=0.8, keep_s=0.4, edge_s=0.1) is clip


@settings(max_examples=60)
@given(
    parts=st.lists(st.tuples(st.booleans(), st.floats(0.02, 1.5)), min_size=1, max_size=8),
    edge_s=st.sampled_from([0.0, 0.1]),
)
def test_all_sound_survives_a_cut_but_for_the_fades_at_joins(parts, edge_s):
    clip = laid(*parts)
    cut = shorten_silences(clip, min_s=0.8, keep_s=0.4, edge_s=edge_s)
    assert len(cut) <= len(clip)
    lost = np.count_nonzero(clip.samples) - np.count_nonzero(cut.samples)
    assert 0 <= lost <= 2 * FADE_SAMPLES * len(parts)


def test_each_column_has_its_highest_level():
    samples = np.zeros(1_000, np.float32)
    samples[[5, 250, 999]] = [0.5, -1.0, 0.001]
    assert compute_outline(Clip(samples), 4) == [50, 100, 0, 1]


@pytest.mark.parametrize("samples", [0, 1, 3, 599, 600, 601, 100_003])
def test_every_sample_belongs_to_a_column(samples):
    levels = compute_outline(Clip(np.ones(samples, np.float32)), 600)
    assert levels == [100] * min(600, samples)
