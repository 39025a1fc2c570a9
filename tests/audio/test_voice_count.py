"""Two voices in one recording, by their pitch: the draft voice's speakers take turns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from studio.audio.analysis import estimate_fundamental_hz
from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.audio.voice_count import find_two_voices
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.voices.samples import SampleProblemCode, check_clip
from studio.voices.speaker import Voice

SENTENCES = (
    "The lamp is still burning, and nobody has climbed the stairs since Tuesday.",
    "I never said that you could take the boat out on your own.",
    "When did the rain stop? We walked back along the river to the old mill.",
    "No! Bring me a cup of tea, and close the window behind you.",
)
SPEAKERS = ("Ida", "Tom", "Mara", "Bruno", "Ilse", "Maud", "Karl")


@pytest.fixture(scope="module")
def draft() -> Iterator[DraftBackend]:
    backend = DraftBackend(workers=1)
    backend.load(lambda _: None)
    yield backend
    backend.unload()


def say(draft: DraftBackend, number: int, speaker: str, **params: float) -> np.ndarray:
    voice = draft.condition(Voice(speaker))
    request = SpeechRequest(SENTENCES[number], voice, language="en", params=params)
    return np.concatenate(list(draft.speak(request)))


def turns(draft: DraftBackend, *speakers: str) -> Clip:
    return Clip(np.concatenate([say(draft, at, one) for at, one in enumerate(speakers)]))


def test_one_speaker_is_one_voice_however_lively(draft: DraftBackend) -> None:
    for speaker in SPEAKERS:
        for expressiveness in (0.0, 1.0, 2.0):
            parts = [say(draft, at, speaker, expressiveness=expressiveness) for at in range(4)]
            assert find_two_voices(Clip(np.concatenate(parts))) is None, speaker


def test_two_speakers_half_an_octave_apart_are_two(draft: DraftBackend) -> None:
    pitches = {one: estimate_fundamental_hz(Clip(say(draft, 0, one))) or 0.0 for one in SPEAKERS}
    far = 0
    for one, other in combinations(SPEAKERS, 2):
        found = find_two_voices(turns(draft, one, other, one, other))
        apart = abs(12 * np.log2(pitches[one] / pitches[other]))
        if apart > 6:
            far += 1
            assert found is not None, (one, other)
            assert found[0].pitch_hz == pytest.approx(min(pitches[one], pitches[other]), rel=0.12)
            assert found[1].pitch_hz == pytest.approx(max(pitches[one], pitches[other]), rel=0.12)
        elif apart < 4:
            assert found is None, (one, other)
    assert far >= 8


def test_a_word_of_somebody_else_is_too_little(draft: DraftBackend) -> None:
    short = say(draft, 3, "Bruno")[: round(0.6 * STUDIO_RATE_HZ)]
    clip = Clip(np.concatenate([turns(draft, "Ida", "Ida").samples, short]))
    assert find_two_voices(clip) is None


def test_what_has_no_voice_has_no_two() -> None:
    assert find_two_voices(Clip.silence(3.0)) is None
    assert find_two_voices(Clip(np.zeros(0, dtype=np.float32))) is None
    noise = np.random.default_rng(1).normal(size=3 * STUDIO_RATE_HZ).astype(np.float32)
    assert find_two_voices(Clip(0.1 * noise)) is None


def test_the_check_of_a_sample_says_so_with_its_doubt(draft: DraftBackend) -> None:
    problems = {one.code: one for one in check_clip(turns(draft, "Ida", "Bruno")).problems}
    found = problems[SampleProblemCode.SPEAKERS]
    assert not found.fatal
    assert "Two people may be speaking in it: 4 s near 111 Hz, 3 s near 19" in found.message
    assert "Only their pitch was compared" in found.message
    alone = check_clip(turns(draft, "Ida", "Ida")).problems
    assert SampleProblemCode.SPEAKERS not in {one.code for one in alone}
