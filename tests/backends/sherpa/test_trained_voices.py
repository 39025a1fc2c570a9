"""Trained Kokoro and Piper, where they are: pitch, level and pace are those of their people.

`TABLEREAD_TRAINED` names a folder with `kokoro` (`kokoro-v1.0.int8.onnx`, and its styles as .npz or
NAME.bin, there or in `styles`) and `piper` (an .onnx with its .onnx.json); without it Kokoro is
taken where the studio itself has it.
"""

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contract import whole

from studio.audio.analysis import estimate_fundamental_hz
from studio.audio.clip import Clip
from studio.backends.base import Priority, SpeechRequest, WeightSource
from studio.backends.sherpa.backend import SherpaBackend
from studio.backends.sherpa.catalogue import CATALOGUE, find_folders
from studio.voices.speaker import Voice

pytest.importorskip("onnxruntime")
pytest.importorskip("espeakng_loader")

TRAINED = Path(os.environ.get("TABLEREAD_TRAINED", "nowhere"))
LINE = "The harbour was quiet when the last boat came in."
LONG_SENTENCE = (
    "Long before the tide had turned that evening, and well before anybody on the quay thought of "
    "lighting the lamps, the oldest of the three brothers carried his father's tools down to the "
    "boat, laid them one by one under the stern bench, covered them with the sail that nobody had "
    "mended since the spring, and rowed, without once looking back at the house, towards the open "
    "water."
)


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


@pytest.fixture
def spoken_pieces(kokoro, monkeypatch):
    """The phonemes of each piece that the graph was given, as they come."""
    given, speak_piece = [], kokoro._model.speak

    def note(piece, line, *, number):
        given.append(piece.phonemes)
        return speak_piece(piece, line, number=number)

    monkeypatch.setattr(kokoro._model, "speak", note)
    return given


def request_of(kokoro, *, waits):
    [first, *_] = kokoro.capabilities.presets
    voice = kokoro.condition(Voice("Ada", preset=first.preset_id))
    priority = Priority(0) if waits else Priority()
    return SpeechRequest(LONG_SENTENCE, voice, "en-US", priority=lambda: priority)


def test_a_long_sentence_sounds_after_its_first_clause(kokoro, spoken_pieces):
    """The figures that it prints with -s are seconds, of this machine as busy as it is now."""
    first_s = {}
    for waits in (False, True):
        spoken_pieces.clear()
        began_s = time.perf_counter()
        chunks = kokoro.speak(request_of(kokoro, waits=waits))
        next(chunks)
        first_s[waits] = time.perf_counter() - began_s
        until_sound = len("".join(spoken_pieces))
        for _ in chunks:
            pass
        share = until_sound / len("".join(spoken_pieces))
        assert share < 1 / 6 if waits else share == 1
    whole_s, clause_s = first_s[False], first_s[True]
    print(
        f"first sound of {len(LONG_SENTENCE)} characters: whole {whole_s:.1f} s, first clause "
        f"{clause_s:.1f} s, {whole_s / clause_s:.1f} times sooner"
    )


def find_pauses(samples):
    """First frame of 10 ms and number of them, of each silence inside of a line."""
    frames = samples[: len(samples) // 240 * 240].reshape(-1, 240).astype(np.float64)
    levels_db = 10 * np.log10(np.square(frames).mean(axis=1) + 1e-12)
    sounds = np.flatnonzero(levels_db > levels_db.max() - 42)
    return [
        (at + 1, more - 1) for at, more in zip(sounds, np.diff(sounds), strict=False) if more > 1
    ]


def test_a_join_is_heard_as_a_mark_inside_of_the_sentence(kokoro):
    line = whole(kokoro.speak(request_of(kokoro, waits=False)))
    chunks = [*kokoro.speak(request_of(kokoro, waits=True))]
    at_marks = [frames for _, frames in find_pauses(line) if frames >= 12]
    joined = np.concatenate(chunks)
    for end in np.cumsum([len(one) for one in chunks])[:-1]:
        [pause] = [
            (at, frames)
            for at, frames in find_pauses(joined)
            if at - 2 <= end // 240 <= at + frames + 2
        ]
        assert min(at_marks) <= pause[1] <= max(at_marks)
        at_join = joined[pause[0] * 240 : (pause[0] + pause[1]) * 240]
        assert np.abs(np.diff(at_join)).max() < 0.01  # no step
    loudness = [np.sqrt(np.mean(one[np.abs(one) > 1e-3] ** 2)) for one in chunks]
    assert 20 * np.log10(max(loudness) / min(loudness)) < 4


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
