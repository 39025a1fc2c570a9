"""Recognisers: what they understand and when, how they come, go and fail."""

import inspect
import threading
import time
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from draft_ears import FOLDER, catalogue

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.base import SpeechRequest, WeightSource
from studio.backends.espeak.backend import DraftBackend
from studio.backends.sherpa.load_check import build_recogniser
from studio.engine.model_manager import EvictionPolicy, ModelState
from studio.errors import Cancelled, ModelInUse, ModelUnavailable, SettingError
from studio.hearing.hearing_models import HearingModels, create_listener
from studio.hearing.model_catalogue import HEARING_MODELS, describe_models, list_recognisers
from studio.hearing.recognition import SherpaRecogniser, cut_at_pauses, read_words, split_words
from studio.hearing.transcript_diff import compare_transcript
from studio.voices.speaker import Voice

pytest.importorskip("sherpa_onnx")

RECOGNISERS = list_recognisers(HEARING_MODELS)
TEXT = "the lamp is still burning and nobody has climbed the stairs"


@pytest.fixture(scope="module")
def recognisers():
    found = HearingModels(catalogue=catalogue())
    yield found
    found.close()


@pytest.fixture(scope="module")
def speak():
    backend = DraftBackend(workers=1)
    backend.load(lambda _progress: None)

    def speak(text: str, name: str = "Ida") -> Clip:
        request = SpeechRequest(text, backend.condition(Voice(name)), language="en")
        return Clip(np.concatenate(list(backend.speak(request))))

    yield speak
    backend.unload()


def test_it_understands_the_draft_voice_and_says_when(recognisers, speak):
    clip = speak(TEXT)
    found = recognisers.transcribe(clip, "en")
    said = found.text.split()
    assert [word.text for word in found.words] == said
    assert sum(one in said for one in TEXT.split()) >= 6
    assert not compare_transcript(TEXT, found, language="en")
    starts = [word.start_s for word in found.words]
    assert starts == sorted(starts)
    assert all(word.start_s <= word.end_s for word in found.words)
    assert found.words[0].start_s < 0.3
    assert clip.duration_s - 0.9 < found.words[-1].start_s < found.words[-1].end_s
    assert recognisers.transcribe(clip, "en") == found


def test_times_go_on_through_the_pieces_of_a_long_recording(recognisers, speak):
    once = speak(TEXT + ".")
    times = round(53 / once.duration_s)
    long = Clip(np.tile(np.pad(once.samples, (0, STUDIO_RATE_HZ // 4)), times))
    found = recognisers.transcribe(long, "en")
    starts = [word.start_s for word in found.words]
    assert starts == sorted(starts)
    assert long.duration_s - 3 < starts[-1] < long.duration_s
    lamps = [word.start_s for word in found.words if word.text == "lamp"]
    assert np.diff(lamps) == pytest.approx(once.duration_s + 0.25, abs=0.1)


@pytest.mark.parametrize("minutes", [2, pytest.param(120, marks=pytest.mark.campaign)])
def test_hours_take_the_memory_of_a_piece(recognisers, speak, minutes):
    once = speak(TEXT + ".").samples

    def listen(length_s: float) -> tuple[int, float]:
        """The peak in bytes, the recording apart, and seconds of the processor."""
        clip = Clip(np.tile(once, round(length_s * STUDIO_RATE_HZ / len(once))))
        tracemalloc.start()
        began_s = time.process_time()
        found = recognisers.transcribe(clip, "en")
        took_s, peak = time.process_time() - began_s, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.words[-1].start_s > length_s - 10
        return peak, took_s

    one_bytes, _ = listen(30.0)
    bytes_, took_s = listen(60.0 * minutes)
    print(f"\n{minutes} min: {bytes_ / 1e6:.0f} MB beside the recording, {took_s:.0f} s")
    assert bytes_ < one_bytes + 200_000 * minutes + 1_000_000


def test_nothing_is_understood_in_silence_and_little_in_less_than_a_word(recognisers):
    assert not recognisers.transcribe(Clip.silence(3.0), "en").words
    assert not recognisers.transcribe(Clip.silence(0.0), "en").words
    click = np.zeros(100, dtype=np.float32)
    click[50] = 0.5
    assert len(recognisers.transcribe(Clip(click), "en").text) <= 5


def test_a_cut_is_where_it_is_quietest():
    rate_hz = 1_000
    loud = np.ones(60 * rate_hz, dtype=np.float32)
    loud[20_100:20_200] = 0.1
    pieces = list(cut_at_pauses(Clip(loud, rate_hz)))
    assert sum(len(piece) for _, piece in pieces) == len(loud)
    assert 20.1 < pieces[1][0] < 20.2
    assert all(len(piece) <= 24 * rate_hz for _, piece in pieces)


def test_words_of_scripts_without_spaces_stand_alone():
    assert split_words("灯还 on 着") == ["灯", "还", "on", "着"]


def test_it_is_leased_while_it_works_and_unloaded_when_idle(speak):
    recognisers = HearingModels(
        EvictionPolicy(idle_timeout_s=0.2, check_interval_s=0.05), catalogue=catalogue()
    )
    manager = recognisers.models.get_manager("draft-ears")
    began, go_on = threading.Event(), threading.Event()

    def is_cancelled() -> bool:
        began.set()
        return not go_on.wait(60)

    found = []
    clip = speak(TEXT)
    thread = threading.Thread(
        target=lambda: found.append(recognisers.transcribe(clip, cancelled=is_cancelled))
    )
    thread.start()
    assert began.wait(60)
    with pytest.raises(ModelInUse):
        recognisers.unload("draft-ears")
    time.sleep(0.5)  # longer than it may be idle
    assert manager.state is ModelState.LOADED
    go_on.set()
    thread.join()
    assert found[0].words
    until = time.monotonic() + 60
    while manager.state is not ModelState.UNLOADED and time.monotonic() < until:
        time.sleep(0.02)
    assert manager.state is ModelState.UNLOADED
    assert recognisers.transcribe(clip).words  # and comes back
    recognisers.close()


def test_recognition_is_cancelled(recognisers, speak):
    with pytest.raises(Cancelled):
        recognisers.transcribe(speak(TEXT), cancelled=lambda: True)


def test_a_model_that_is_unloaded_in_mid_flight_ends_the_recording_as_one_clear_error():
    recogniser = SherpaRecogniser(catalogue()["draft-ears"])
    recogniser.load(lambda _progress: None)
    recogniser.unload()
    with pytest.raises(ModelUnavailable, match="Draft ears is not loaded"):
        recogniser.transcribe(Clip.silence(1.0))


def test_no_recogniser_for_the_language(recognisers):
    assert recognisers.find("cy") is None
    assert recognisers.find("en-GB") is not None
    with pytest.raises(ModelUnavailable, match="No recogniser for “cy” is installed"):
        recognisers.transcribe(Clip.silence(1.0), "cy")
    with pytest.raises(SettingError, match="There is no model “nobody” that listens"):
        recognisers.unload("nobody")


@pytest.mark.parametrize("file", ["model.onnx", "tokens.txt"])
def test_a_broken_model_is_refused_in_one_sentence(file, tmp_path):
    for path in FOLDER.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / file).write_bytes(b"not a model\n")
    recognisers = HearingModels(catalogue=catalogue(tmp_path))
    with pytest.raises(ModelUnavailable, match=r"The model of Draft ears in .* can't be loaded"):
        recognisers.transcribe(Clip.silence(1.0))
    recognisers.close()


@pytest.mark.parametrize(
    "name", [one.name for one in RECOGNISERS.values() if one.family != "faster_whisper"]
)
def test_each_familys_constructor_takes_the_catalogues_files(name, monkeypatch):
    import sherpa_onnx

    model, built = RECOGNISERS[name], []
    constructor = f"from_{model.family}"
    signature = inspect.signature(getattr(sherpa_onnx.OfflineRecognizer, constructor))
    monkeypatch.setattr(
        sherpa_onnx.OfflineRecognizer,
        constructor,
        lambda **given: built.append(signature.bind(**given)),
    )
    located = {
        role: f"/models/{file.path}" for one in model.sources for role, file in one.files.items()
    }
    build_recogniser(model.family, located, threads=1)
    assert len(built) == 1


@pytest.mark.parametrize(
    ("tokens", "times", "expected"),
    [
        # Parakeet's pieces, with marks; SenseVoice's characters; letters; and Whisper's, untimed.
        ([" The", " l", "amp", "."], [0.1, 0.4, 0.5, 0.7], [("The", 10.1), ("lamp.", 10.4)]),
        (["灯", "还", "▁on"], [0.0, 0.2, 0.5], [("灯", 10.0), ("还", 10.2), ("on", 10.5)]),
        (["a", "▁", "n", "o"], [0.0, 0.1, 0.3, 0.4], [("a", 10.0), ("no", 10.3)]),
        ([" The", " lamp"], [], [("The", None), ("lamp", None)]),
    ],
)
def test_words_are_read_from_the_tokens_of_each_family(tokens, times, expected):
    text = "".join(tokens).replace("▁", " ")
    result = SimpleNamespace(text=text, tokens=tokens, timestamps=times)
    found = read_words(result, 10.0, 11.0)
    assert [(word.text, word.start_s) for word in found] == expected
    assert found[-1].end_s in (11.0, None)


def test_each_catalogued_model_says_what_people_ask_first():
    for model in RECOGNISERS.values():
        assert model.languages == tuple(sorted(model.languages))
        assert model.weights_licence
        assert model.size_bytes > 10_000_000
        assert model.summary.endswith(".")
        found = create_listener(model).unavailable()
        is_optional = model.family == "faster_whisper"
        assert found is None or (is_optional and "pip install faster-whisper" in found)


def test_the_first_one_here_is_used_for_each_language_that_it_knows():
    ears = catalogue()["draft-ears"]
    known = {
        "absent": replace(ears, name="absent", sources=(WeightSource("ada/none", ("b",)),)),
        "first": replace(ears, name="first", languages=("de", "en")),
        "second": replace(ears, name="second", languages=("en", "fr")),
        "third": replace(ears, name="third"),
    }
    cards = describe_models(known)
    assert [card["used_for"] for card in cards] == [[], ["de", "en"], ["fr"], []]
    assert [card["to_fetch"] is None for card in cards] == [False, True, True, True]
