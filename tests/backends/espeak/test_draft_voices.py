"""Which settings a speaker gets, and that they stay."""

import itertools
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.audio.clip import Clip
from studio.backends.espeak.espeak_voices import VARIANTS, draft_voice, find_package, presets
from studio.voices.speaker import Sample, Voice

CASTS = (
    "Anna Bruno Carla Dmitri Emma Farid Grace Hugo Ines Jonas Kira Liam",
    "Narrator Captain Sailor Innkeeper Stranger Boy Queen Messenger Guard Doctor Judge Nurse",
    "Host Guest Alice Bob Carol Dave Erin Frank Heidi Ivan Judy Mallory",
    "Mia Noah Élise Jürgen Zoë Łukasz 小明 Наташа Omar Priya Sofía Yuki",
)


def difference(one, other):
    """Just noticeable steps between two voices; another timbre counts as many."""
    semitones = 12 * abs(math.log2(one.fundamental_hz / other.fundamental_hz))
    steps = semitones + 40 * abs(one.tract - other.tract) + 10 * abs(one.tempo - other.tempo)
    return steps + (5 if one.variant != other.variant else 0)


@pytest.mark.parametrize("cast", CASTS)
def test_twelve_names_sound_clearly_different(cast):
    voices = [draft_voice(Voice(name)) for name in cast.split()]
    assert min(difference(a, b) for a, b in itertools.combinations(voices, 2)) >= 1


def test_a_name_keeps_its_voice_from_run_to_run():
    code = (
        "from studio.backends.espeak.espeak_voices import *; v = draft_voice(Voice('Anna'))\n"
        "print(v.variant.name, v.fundamental_hz, v.tract, v.tempo)"
    )
    root = Path(__file__).parents[3]
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, check=True, capture_output=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(runs) == 1


def test_case_and_composition_of_a_name_make_no_difference():
    assert draft_voice(Voice("ZOË")) == draft_voice(Voice("Zoe\u0308"))


@given(name=st.text(min_size=1, max_size=60))
def test_any_name_has_a_voice_that_espeak_can_make(name):
    voice = draft_voice(Voice(name))
    assert voice.variant in VARIANTS
    assert 60 < voice.fundamental_hz < 330


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_variant_is_in_the_package_and_has_its_own_pitch(variant):
    file = find_package().folder / "espeak-ng-data" / "voices" / "!v" / variant.name
    words = {line.split()[0] for line in file.read_text().splitlines() if line.strip()}
    assert "pitch" in words  # else the language's would take its place
    assert not words & {"breath", "klatt"}


@given(variant=st.sampled_from(VARIANTS), octaves=st.floats(-0.25, 0.25))
def test_a_pitch_near_the_middle_is_reached(variant, octaves):
    wanted_hz = variant.middle_hz * 2**octaves
    reached_hz = variant.fundamental_hz(variant.pitch(wanted_hz))
    assert reached_hz == pytest.approx(wanted_hz, rel=0.15)


def test_presets_are_the_variants_and_foreign_ones_count_as_none():
    assert len({preset.preset_id for preset in presets()}) == len(VARIANTS)
    assert draft_voice(Voice("Anna", preset="linda")).variant.name == "linda"
    assert draft_voice(Voice("Anna", preset="of another")) == draft_voice(Voice("Anna"))


def test_a_sample_without_pitch_leaves_it_to_the_name():
    hiss = np.random.default_rng(1).normal(0, 0.1, 48_000).astype(np.float32)
    voice = draft_voice(Voice("Anna", sample=Sample(Clip(hiss), sha256="hiss")))
    assert voice == draft_voice(Voice("Anna"))
