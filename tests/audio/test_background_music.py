"""What the detector of background music finds and what it takes for music by mistake.

Speech is spoken by the draft voice in ten voices and seven languages; music is made of notes that
fade, as melodies and as chords. No real music was at hand.
"""

import numpy as np
import pytest

from studio.audio.analysis import measure_background_tones
from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.voices.samples import MAX_BACKGROUND_TONES
from studio.voices.speaker import Voice

pytestmark = pytest.mark.slow

TEXTS = (
    "The lamp is still burning, and nobody has climbed the stairs since Tuesday. I heard the door.",
    "Did you really think that I would not notice? You left the letters on the table, all of them!",
)
LANGUAGES = ("en", "en-US", "de", "fr", "es", "it", "sv", "pl", "en", "nl")


@pytest.fixture(scope="module")
def speech():
    backend = DraftBackend(workers=1)
    backend.load(lambda _: None)
    try:
        return [
            np.concatenate(
                list(
                    backend.speak(
                        SpeechRequest(
                            text=TEXTS[idx % 2],
                            conditioning=backend.condition(Voice(f"Voice {idx}")),
                            language=language,
                        )
                    )
                )
            )
            for idx, language in enumerate(LANGUAGES)
        ]
    finally:
        backend.unload()


def note(hz, duration_s, rng):
    t = np.arange(round(duration_s * STUDIO_RATE_HZ)) / STUDIO_RATE_HZ
    fading = np.minimum(1, t / 0.01) * np.exp(-t * rng.uniform(0.5, 3))
    return fading * sum(
        np.sin(2 * np.pi * k * hz * t) / k ** rng.uniform(1, 2) for k in range(1, 6)
    )


def music(seed, samples, *, chords):
    rng = np.random.default_rng(seed)
    out, place = np.zeros(samples), 0
    steps, intervals = ((0.5, 1.0, 2.0), (0, 4, 7)) if chords else ((0.15, 0.25, 0.5), (0,))
    while place < samples:
        duration_s = rng.choice(steps)
        root = 220 * 2 ** (rng.choice([0, 2, 4, 5, 7, 9, 11, 12]) / 12)
        for interval in intervals:
            played = note(root * 2 ** (interval / 12), duration_s, rng)[: samples - place]
            out[place : place + len(played)] += played
        place += round(duration_s * STUDIO_RATE_HZ)
    return out / np.abs(out).max()


def tones(samples):
    return measure_background_tones(Clip(samples.astype(np.float32)))


def mixed(voice, behind, below_db):
    level = np.sqrt(np.mean(voice**2) / np.mean(behind**2)) * 10 ** (-below_db / 20)
    hiss = np.random.default_rng(1).normal(size=len(voice)) * 0.0005
    return voice + level * behind + hiss


def test_speech_alone_is_no_music(speech):
    assert max(tones(voice) for voice in speech) < MAX_BACKGROUND_TONES


def test_speech_in_noise_or_hum_is_no_music(speech):
    rng = np.random.default_rng(4)
    for voice in speech:
        hiss = rng.normal(size=len(voice)) * 0.01
        t = np.arange(len(voice)) / STUDIO_RATE_HZ
        hum = 0.01 * sum(np.sin(2 * np.pi * 50 * k * t) / k for k in range(1, 6))
        assert tones(voice + hiss) < MAX_BACKGROUND_TONES
        assert tones(voice + np.cumsum(hiss) * 0.02) < MAX_BACKGROUND_TONES
        assert tones(voice + hum) < MAX_BACKGROUND_TONES


@pytest.mark.parametrize("chords", [False, True])
def test_music_alone_is_found(chords):
    found = [tones(0.3 * music(seed, 200_000, chords=chords)) for seed in range(4)]
    assert min(found) > MAX_BACKGROUND_TONES


@pytest.mark.parametrize("below_db", [6, 12, 18])
def test_melodies_behind_speech_are_found(speech, below_db):
    found = [
        tones(mixed(voice, music(seed, len(voice), chords=False), below_db)) > MAX_BACKGROUND_TONES
        for voice in speech
        for seed in range(2)
    ]
    assert np.mean(found) >= 0.95


def test_most_chords_behind_speech_are_found(speech):
    found = [
        tones(mixed(voice, music(seed, len(voice), chords=True), 12)) > MAX_BACKGROUND_TONES
        for voice in speech
        for seed in range(2)
    ]
    assert np.mean(found) >= 0.6


def test_short_and_silent_clips_have_none():
    assert measure_background_tones(Clip(np.zeros(0, np.float32))) == 0
    assert measure_background_tones(Clip.silence(5.0)) == 0
    assert tones(music(1, 8_000, chords=False)) == 0


@pytest.mark.parametrize(("level_db", "is_music"), [(-50, True), (-63, False), (-90, False)])
def test_what_is_softer_than_60_db_below_is_no_music(level_db, is_music):
    t = np.arange(2 * STUDIO_RATE_HZ) / STUDIO_RATE_HZ
    tone = 10 ** (level_db / 20) * np.sqrt(2) * np.sin(2 * np.pi * 440 * t)
    assert (tones(tone) > 0.5) is is_music
