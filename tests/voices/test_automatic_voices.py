"""Automatic voices of one cast are told apart, by pitch or by timbre, and keep to their names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from studio.audio.analysis import estimate_fundamental_hz
from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.backends.espeak.espeak_voices import describe_automatic
from studio.dialog.model import Dialog, Speech
from studio.hearing.cepstra import measure_mel_power
from studio.voices.automatic import VoiceTraits, choose_voice_names, name_voices
from studio.voices.library import SpeakerLibrary
from studio.voices.speaker import Voice

CASTS = (
    ("Ida", "Tom"),
    ("Host", "Guest", "Narrator"),
    ("Mara", "Finch", "Heron", "Stork", "Wren"),
    ("Alice", "Bob", "Carol", "Dave", "Erin", "Frank", "Grace", "Heidi"),
)
TEXTS = {
    "en": "We should have left an hour ago, before the tide turned in the harbour.",
    "de": "Wir hätten vor einer Stunde gehen sollen, bevor das Wasser gestiegen ist.",
    "es": "Deberíamos habernos marchado hace una hora, antes de que subiera la marea.",
}
APART_SEMITONES = 3.0
APART_DB = 3.5
"""Between the mean spectra of two timbres; two texts by one voice differ by 1.1 to 1.7."""


@pytest.fixture(scope="module")
def backend() -> Iterator[DraftBackend]:
    draft = DraftBackend(workers=1)
    draft.load(lambda _: None)
    yield draft
    draft.unload()


def names_of(cast: tuple[str, ...]) -> dict[str, str]:
    chosen = choose_voice_names(cast, {}, [lambda name: describe_automatic(name)])
    return {name: chosen.get(name, name) for name in cast}


def speak(backend: DraftBackend, chosen: str, language: str) -> Clip:
    voice = backend.condition(Voice("Somebody", first_name=chosen))
    request = SpeechRequest(TEXTS[language], voice, language=language)
    return Clip(np.concatenate(list(backend.speak(request))))


def mean_spectrum(clip: Clip) -> npt.NDArray[np.float64]:
    power = measure_mel_power(clip.samples, STUDIO_RATE_HZ)
    loud = power[power.mean(axis=1) > 1e-3 * power.mean(axis=1).max()]
    level = 10 * np.log10(loud + 1e-9).mean(axis=0).astype(np.float64)
    return level - level.mean()


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("cast", CASTS, ids=lambda cast: str(len(cast)))
def test_no_two_of_a_cast_sound_alike(backend, cast: tuple[str, ...], language: str) -> None:
    clips = {name: speak(backend, chosen, language) for name, chosen in names_of(cast).items()}
    pitches = {name: estimate_fundamental_hz(clip) for name, clip in clips.items()}
    spectra = {name: mean_spectrum(clip) for name, clip in clips.items()}
    by_pitch = 0
    for one, other in itertools.combinations(cast, 2):
        semitones = abs(12 * math.log2((pitches[one] or 1) / (pitches[other] or 1)))
        apart_db = math.sqrt(float(np.mean((spectra[one] - spectra[other]) ** 2)))
        by_pitch += semitones >= APART_SEMITONES
        print(language, one, other, f"{semitones:.1f} semitones, {apart_db:.1f} dB")
        assert semitones >= APART_SEMITONES or apart_db >= APART_DB, (one, other)
    if len(cast) < 8:
        assert by_pitch >= 0.7 * math.comb(len(cast), 2)


def test_a_name_has_its_own_voice_unless_somebody_before_it_sounds_so() -> None:
    same = {"Ida": 100.0, "Tom": 100.0, "Tom 2": 110.0, "Tom 3": 200.0, "Eva": 150.0}

    def describe(name: str) -> VoiceTraits:
        return VoiceTraits(name, same[name], (0.0,))

    assert choose_voice_names(["Ida", "Eva"], {}, [describe]) == {}
    assert choose_voice_names(["Ida", "Tom", "ida"], {}, [describe]) == {"Tom": "Tom 3"}
    assert choose_voice_names(["Tom"], {"Ida": "Ida"}, [describe]) == {"Tom": "Tom 3"}
    assert choose_voice_names(["Tom"], {"Tom": "Tom", "Ida": "Ida"}, [describe]) == {}


def test_another_timbre_is_taken_where_no_pitch_is_free() -> None:
    def describe(name: str) -> VoiceTraits:
        number = int(name.rpartition(" ")[2]) if " " in name else 1
        return VoiceTraits(name, 100.0, (float(number == 5),))

    assert choose_voice_names(["A", "B"], {}, [describe]) == {"B": "B 5"}


def test_the_engine_of_the_scene_counts_more_than_others() -> None:
    def scene(name: str) -> VoiceTraits:
        return VoiceTraits("one" if name in ("A", "B", "B 2") else name)

    def other(name: str) -> VoiceTraits:
        return VoiceTraits("one" if name != "B 2" else "two")

    assert choose_voice_names(["A", "B"], {}, [scene, other]) == {"B": "B 3"}


def test_who_has_a_voice_of_the_library_needs_no_other(tmp_path) -> None:
    library = SpeakerLibrary(tmp_path)
    dialog = Dialog((Speech("Ida", "One."), Speech("Tom", "Two."), Speech("Eva", "Three.")))

    def describe(name: str) -> VoiceTraits:
        return VoiceTraits(name if name.startswith(("Tom ", "Eva ")) else "same")

    assert name_voices(dialog, [describe], library) == {"Tom": "Tom 2", "Eva": "Eva 2"}
    assert name_voices(dialog, [describe], library, ["ida", "TOM"]) == {}
    library.add("Tom", preset="x")
    assert name_voices(dialog, [describe], library) == {"Eva": "Eva 2"}


def test_thousands_of_names_take_no_time() -> None:
    names = [f"Speaker {n}" for n in range(5_000)]
    asked = []

    def describe(name: str) -> VoiceTraits:
        asked.append(name)
        return VoiceTraits("same")

    choose_voice_names(names, {}, [describe])
    assert len(asked) < 24 * 24 * 200
