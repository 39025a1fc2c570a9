"""Whisper and the checks of words on trained voices; `-s` prints the figures.

The weights come by `trained_weights`. The short form takes Whisper tiny and Kokoro or Joe; the
campaign, `-m campaign`, Whisper base, and counts planted faults and word starts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from trained_weights import require

from studio.audio.clip import Clip
from studio.backends.base import SpeechRequest, WeightSource
from studio.backends.sherpa.backend import SherpaBackend
from studio.backends.sherpa.catalogue import CATALOGUE
from studio.dialog.spoken import say
from studio.hearing.hearing_models import HearingModels
from studio.hearing.model_catalogue import HEARING_MODELS
from studio.hearing.word_check import ExpectedText, WordChecker
from studio.voices.speaker import Voice

pytest.importorskip("faster_whisper", reason="faster-whisper isn't installed")
pytest.importorskip("espeakng_loader")

LINES = (
    "I could easily forgive his pride, if he had not mortified mine.",
    "Neither a borrower nor a lender be, for loan oft loses both itself and friend.",
    "Expect the first tomorrow, when the bell tolls one.",
    "When you have eliminated the impossible, whatever remains must be the truth.",
    "Would you tell me, please, which way I ought to go from here?",
    "The dog did nothing in the night. That was the curious incident.",
    "She paid $87 for the watch in the year 1878.",
    "If we walk far enough, we shall sometime come to someplace.",
    "Many years ago I ran away from home with two shirts and a broken watch.",
    "The time has come, the Walrus said, to talk of many things.",
)

Speak = Callable[[str], Clip]
Check = Callable[[Clip, str], list[str]]


@pytest.fixture(scope="module")
def speak() -> Iterator[Speak]:
    [folder] = require("piper")
    backend = SherpaBackend(CATALOGUE["piper"], cores=1, own=folder)
    backend.load(lambda _progress: None)
    voice = backend.condition(Voice("Joe", preset=backend.capabilities.presets[-1].preset_id))

    def speak(text: str) -> Clip:
        request = SpeechRequest(say(text, "en-US").text, voice, "en-US")
        samples = np.concatenate([*backend.speak(request)])
        return Clip(samples, backend.capabilities.sample_rate_hz)

    yield speak
    backend.unload()


def listen(name: str) -> HearingModels:
    [folder] = require(name)
    model = HEARING_MODELS["whisper-base"]
    [source] = model.sources
    here = replace(source, source=str(folder), files=dict(source.files))
    return HearingModels(catalogue={model.name: replace(model, sources=(here,))})


@pytest.fixture(scope="module")
def tiny() -> Iterator[HearingModels]:
    found = listen("whisper-tiny.en")
    yield found
    found.close()


def test_it_says_which_words_and_when(tiny: HearingModels, speak: Speak) -> None:
    clip = speak(LINES[3])
    found = tiny.transcribe(clip, "en")
    assert "eliminated the impossible" in found.text
    assert found.language == "en"
    starts = [word.start_s for word in found.words]
    assert starts == sorted(starts)
    assert all(0 < word.probability <= 1 for word in found.words)
    assert clip.duration_s - 1 < found.words[-1].start_s < found.words[-1].end_s


@pytest.mark.parametrize("sound", ["silence", "noise", "music", "hum"])
def test_nobody_is_heard_where_nobody_speaks(sound: str, tiny: HearingModels) -> None:
    at_s = np.arange(4 * 24_000) / 24_000
    chord = sum(np.sin(2 * np.pi * hz * at_s) for hz in (220, 277, 330)) * (at_s % 0.5 < 0.4)
    samples = {
        "silence": np.zeros_like(at_s),
        "noise": np.random.default_rng(1).normal(0, 0.1, len(at_s)),
        "music": 0.1 * chord,
        "hum": 0.2 * np.sin(2 * np.pi * 50 * at_s),
    }[sound].astype(np.float32)
    assert not tiny.transcribe(Clip(samples), "en").words
    checked = WordChecker(tiny).check(Clip(samples), ExpectedText(LINES[0], "en"))
    assert [issue.kind for issue in checked.issues] == ["unlike"]


def test_a_broken_file_is_one_sentence(tmp_path: Path) -> None:
    from studio.errors import ModelUnavailable

    model = HEARING_MODELS["whisper-base"]
    for file in model.sources[0].files.values():
        (tmp_path / file.path).write_bytes(b"not a model\n")
    source = WeightSource(str(tmp_path), model.sources[0].needs, model.sources[0].files)
    ears = HearingModels(catalogue={model.name: replace(model, sources=(source,))})
    with pytest.raises(ModelUnavailable, match=r"The model of Whisper base in .* can't be loaded"):
        ears.transcribe(Clip(np.ones(24_000, np.float32) / 2), "en")
    ears.close()


def plant(text: str, kind: str, chance: random.Random) -> str:
    """The words of a text with one of them left out, said twice or exchanged."""
    words = say(text, "en-US").text.split()
    at = chance.randrange(1, len(words) - 1)
    other = chance.choice([one for one in " ".join(LINES).split() if one.lower() != words[at]])
    instead = {"missing": [], "repeated": [words[at]] * 2, "replaced": [other]}[kind]
    return " ".join([*words[:at], *instead, *words[at + 1 :]])


@pytest.mark.campaign
def test_faults_that_a_trained_voice_says_are_found(speak: Speak) -> None:
    """The voice itself leaves words out, says them twice or says others: no seams are heard."""
    ears = listen("whisper-base")
    checker, chance = WordChecker(ears), random.Random(1)

    def count(text: str, said: str) -> int:
        return len(checker.check(speak(said), ExpectedText(text, "en-US")).issues)

    clean = [count(text, text) for text in LINES]
    found = {
        kind: sum(count(text, plant(text, kind, chance)) > 0 for text in LINES)
        for kind in ("missing", "repeated", "replaced")
    }
    checker.close()
    n_words = sum(len(text.split()) for text in LINES)
    print(f"\n{len(LINES)} lines: {sum(clean)} marks in {n_words} words of clean ones; {found}")
    assert sum(clean) <= 2
    assert min(found.values()) >= 6
