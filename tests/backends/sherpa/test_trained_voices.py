"""Trained Kokoro and Piper, where they are: pitch, level and pace are those of their people.

`TABLEREAD_TRAINED` names a folder with `kokoro` (`kokoro-v1.0.int8.onnx`, and its styles as .npz or
NAME.bin, there or in `styles`) and `piper` (an .onnx with its .onnx.json); without it Kokoro is
taken where the studio itself has it.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contract import whole

from studio.audio.analysis import estimate_fundamental_hz
from studio.audio.clip import Clip
from studio.backends.base import SpeechRequest, WeightSource
from studio.backends.sherpa.backend import SherpaBackend
from studio.backends.sherpa.catalogue import CATALOGUE, find_folders
from studio.voices.speaker import Voice

pytest.importorskip("onnxruntime")
pytest.importorskip("espeakng_loader")

TRAINED = Path(os.environ.get("TABLEREAD_TRAINED", "nowhere"))
LINE = "The harbour was quiet when the last boat came in."


@pytest.fixture(scope="module")
def kokoro():
    model = CATALOGUE["kokoro"]
    folder = TRAINED / "kokoro"
    if (folder / "kokoro-v1.0.int8.onnx").is_file():
        files = {"model": model.sources[0].files["model"]}
        source = WeightSource(str(folder), (files["model"].path,), files)
        model = replace(model, sources=(source,), older=())
    elif not find_folders(model.at_hand()):
        pytest.skip("trained Kokoro isn't here: TABLEREAD_TRAINED names no folder with it")
    own = folder / "styles"
    backend = SherpaBackend(model, cores=2, own=own if own.is_dir() else None)
    backend.load(lambda _progress: None)
    yield backend
    backend.unload()


def speak(backend, preset, text=LINE, **fields):
    voice = backend.condition(Voice("Ada", preset=preset))
    sound = whole(backend.speak(SpeechRequest(text, voice, **fields)))
    return Clip(sound, backend.capabilities.sample_rate_hz)


@pytest.mark.parametrize(("preset", "pitch_hz"), [("af_heart", 184), ("am_onyx", 83)])
def test_each_voice_of_kokoro_has_its_own_pitch(preset, pitch_hz, kokoro):
    if preset not in {one.preset_id for one in kokoro.capabilities.presets}:
        pytest.skip(f"the style {preset} isn't here")
    spoken = speak(kokoro, preset)
    assert 2.4 < spoken.duration_s < 4.5
    assert 0.02 < np.sqrt(np.mean(spoken.samples**2)) < 0.2
    found_hz = estimate_fundamental_hz(spoken)
    assert abs(12 * np.log2(found_hz / pitch_hz)) < 2


def test_kokoro_says_a_line_twice_the_same(kokoro):
    [first, *_] = kokoro.capabilities.presets
    one, other = (speak(kokoro, first.preset_id, "Come in.").samples for _ in range(2))
    assert np.array_equal(one, other)


def test_piper_speaks_as_its_publisher_has_it():
    if not list((TRAINED / "piper").glob("*.onnx")):
        pytest.skip(
            "no trained voice of Piper's is here: TABLEREAD_TRAINED names no folder with one"
        )
    backend = SherpaBackend(CATALOGUE["piper"], cores=2, own=TRAINED / "piper")
    backend.load(lambda _progress: None)
    spoken = speak(backend, backend.capabilities.presets[-1].preset_id)
    backend.unload()
    assert 2.0 < spoken.duration_s < 4.5
    assert 70 < estimate_fundamental_hz(spoken) < 300
