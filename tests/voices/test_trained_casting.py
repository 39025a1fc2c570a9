"""Names and trained voices, by ear: the pitch that is measured in what Kokoro says."""

from __future__ import annotations

import numpy as np
import pytest

from studio.audio.analysis import estimate_fundamental_hz
from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.base import SpeechRequest
from studio.backends.registry import create, describe_engines
from studio.voices.automatic import choose_voice_names
from studio.voices.speaker import Voice

WOMEN = (
    "Abigail", "Beatrice", "Clara", "Daphne", "Eleanor", "Freya", "Gloria", "Harriet", "Imogen",
    "Joanna",
)  # fmt: skip
MEN = (
    "Albert", "Brian", "Colin", "Desmond", "Edgar", "Fergus", "Gareth", "Howard", "Ivan", "Julian",
)  # fmt: skip
BETWEEN_HZ = 150.0


@pytest.mark.slow
def test_names_are_spoken_by_a_voice_of_their_gender(installed_kokoro: None) -> None:
    kokoro = create("kokoro")
    if lacks := kokoro.unavailable():
        pytest.skip(lacks)
    engines = describe_engines(kokoro, "en-US")
    kokoro.load(lambda _: None)
    wrong = []
    for name in (*WOMEN, *MEN):
        chosen = choose_voice_names([name], {}, engines, "en-US").get(name, name)
        voice = kokoro.condition(Voice(name, first_name=chosen))
        request = SpeechRequest("Only me, I am afraid.", voice, language="en-US")
        sound = Clip(np.concatenate(list(kokoro.speak(request))), STUDIO_RATE_HZ)
        pitch_hz = estimate_fundamental_hz(sound) or 0.0
        if (pitch_hz > BETWEEN_HZ) != (name in WOMEN):
            wrong.append((name, pitch_hz))
    kokoro.unload()
    assert len(wrong) <= 2, wrong
