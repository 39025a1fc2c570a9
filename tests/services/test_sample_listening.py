"""What is said in a recording that becomes a sample, by the tests' recogniser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from draft_ears import catalogue

from studio.audio.clip import Clip
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.errors import Cancelled
from studio.hearing.hearing_models import HearingModels
from studio.services.sample_listening import SampleListener
from studio.voices.speaker import Voice

pytest.importorskip("sherpa_onnx")

TEXT = "the lamp is still burning and nobody has climbed the stairs"


@pytest.fixture(scope="module")
def recognisers() -> Iterator[HearingModels]:
    found = HearingModels(catalogue=catalogue())
    yield found
    found.close()


@pytest.fixture(scope="module")
def spoken() -> Clip:
    backend = DraftBackend(workers=1)
    backend.load(lambda _: None)
    request = SpeechRequest(TEXT, backend.condition(Voice("Ida")), language="en")
    clip = Clip(np.concatenate(list(backend.speak(request))))
    backend.unload()
    return clip


def test_a_recording_is_transcribed(recognisers: HearingModels, spoken: Clip) -> None:
    found = SampleListener(recognisers).listen(spoken, "en-GB")
    assert found.transcript
    assert found.transcript == recognisers.transcribe(spoken, "en").text
    assert (found.language, found.note) == ("en-GB", None)


def test_a_language_that_nobody_names_is_left_open(
    recognisers: HearingModels, spoken: Clip
) -> None:
    found = SampleListener(recognisers).listen(spoken)
    assert found.transcript
    assert found.language is None
    assert found.note == "The recogniser doesn't say which language this is."


def test_what_cant_be_understood_says_why(recognisers: HearingModels, spoken: Clip) -> None:
    listener = SampleListener(recognisers)
    strange = listener.listen(spoken, "sw")
    assert (strange.transcript, strange.language) == (None, "sw")
    assert "No recogniser that is installed knows “sw”" in (strange.note or "")
    silent = listener.listen(Clip.silence(2.0), "en")
    assert silent.transcript is None
    assert silent.note == "No words were understood in it."


def test_without_a_recogniser_the_remedy_is_named(spoken: Clip) -> None:
    for none in (None, HearingModels(catalogue={})):
        found = SampleListener(none).listen(spoken, "en")
        assert found.transcript is None
        assert "voices install parakeet" in (found.note or "")


def test_it_can_be_stopped(recognisers: HearingModels, spoken: Clip) -> None:
    with pytest.raises(Cancelled):
        SampleListener(recognisers).listen(spoken, "en", cancelled=lambda: True)


def test_a_broken_recogniser_is_no_end(spoken: Clip, tmp_path) -> None:
    [model] = catalogue().values()
    [source] = model.sources
    for name in ("model.onnx", "tokens.txt"):
        (tmp_path / name).write_bytes(b"broken")
    broken = replace(model, sources=(replace(source, source=str(tmp_path)),))
    recognisers = HearingModels(catalogue={broken.name: broken})
    found = SampleListener(recognisers).listen(spoken, "en")
    recognisers.close()
    assert found.transcript is None
    assert "Draft ears" in (found.note or "")
