import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.audio.silences import silences, without_silences

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
    assert in_seconds(silences(clip, min_s=0)) == [(0, 1), (3, 3.5), (4.5, 6.51)]
    assert in_seconds(silences(clip, min_s=0.6)) == [(0, 1), (4.5, 6.51)]


def test_nothing_and_all_of_a_clip_can_be_silent():
    assert silences(Clip(np.zeros(0, np.float32)), min_s=0) == ()
    assert silences(Clip.silence(2.0), min_s=0) == ((0, 2 * STUDIO_RATE_HZ),)
    assert silences(laid((True, 1.0)), min_s=0) == ()


def test_long_silences_are_cut_short_and_the_rest_stays():
    clip = laid((False, 2.0), (True, 1.0), (False, 0.5), (True, 1.0), (False, 3.0), (True, 1.0))
    cut = without_silences(clip, min_s=0.8, keep_s=0.4, edge_s=0.1)
    assert cut.duration_s == pytest.approx(0.1 + 1.0 + 0.5 + 1.0 + 0.4 + 1.0, abs=0.001)
    assert in_seconds(silences(cut, min_s=0.3)) == [(1.1, 1.6), (2.6, 3.0)]


def test_a_clip_without_speech_is_left_alone():
    clip = Clip.silence(3.0)
    assert without_silences(clip, min_s=0.8, keep_s=0.4, edge_s=0.1) is clip


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(st.tuples(st.booleans(), st.floats(0.02, 1.5)), min_size=1, max_size=8),
    edge_s=st.sampled_from([0.0, 0.1]),
)
def test_all_sound_survives_a_cut_but_for_the_fades_at_joins(parts, edge_s):
    clip = laid(*parts)
    cut = without_silences(clip, min_s=0.8, keep_s=0.4, edge_s=edge_s)
    assert len(cut) <= len(clip)
    lost = np.count_nonzero(clip.samples) - np.count_nonzero(cut.samples)
    assert 0 <= lost <= 2 * FADE_SAMPLES * len(parts)
