"""Piper voices and styles that somebody adds: they speak, and what is none says what it is."""

import errno
import json
import shutil

import numpy as np
import pytest
import sherpa_models
from contract import whole
from tiny_hub import TinyHub

from studio.backends.base import SpeechRequest
from studio.backends.options import BackendOptions
from studio.backends.registry import create
from studio.backends.sherpa.own_voices import add_voices, remove_voice
from studio.errors import BadInput, DiskFull, SpeechFailed
from studio.storage.disk import Disk
from studio.voices.speaker import Voice

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("espeakng_loader")


def write(folder, name, speakers=1, **said):
    """A voice as its publisher has it."""
    folder.mkdir(exist_ok=True)
    graph = folder / f"{name}.onnx"
    graph.write_bytes(sherpa_models.piper_graph(speakers))
    symbols = dict.fromkeys(sherpa_models.IPA)
    known = {
        "audio": {"sample_rate": 22_050},
        "espeak": {"voice": "de"},
        "inference": {"noise_scale": 0.667, "length_scale": 1, "noise_w": 0.8},
        "num_speakers": speakers,
        "speaker_id_map": {},
        "phoneme_id_map": {char: [number] for number, char in enumerate(symbols)},
    }
    graph.with_name(f"{name}.onnx.json").write_text(json.dumps(known | said), "utf-8")
    return graph


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where added voices lie; nothing else is here, and no hub."""
    with TinyHub({}).serving(monkeypatch, tmp_path / "cache"):
        yield tmp_path / "voices"


def load(folder, name="piper"):
    backend = create(name, BackendOptions(own_voices=folder))
    backend.load(lambda _progress: None)
    return backend


def speak(backend, preset, text="Guten Abend.", **fields):
    voice = backend.condition(Voice("Ada", preset=preset))
    return whole(backend.speak(SpeechRequest(text, voice, **fields)))


@pytest.mark.parametrize("speakers", [1, 2, 904])
def test_an_added_voice_speaks_in_its_language_with_all_its_speakers(speakers, folder, tmp_path):
    add_voices([write(tmp_path / "from", "de_DE-thorsten-medium", speakers)], folder)
    backend = load(folder)
    can = backend.capabilities
    assert backend.to_fetch() is None
    assert len(can.presets) == speakers
    assert {one.languages for one in can.presets} == {("de",)}
    assert can.languages["de"] == "German"
    assert can.presets[0].label == ("Thorsten" if speakers == 1 else "Thorsten: 1")
    sounds = {speak(backend, one.preset_id).tobytes() for one in (can.presets[0], can.presets[-1])}
    assert len(sounds) == min(2, speakers)
    backend.unload()


def test_its_own_reading_pace_and_rate_count(folder, tmp_path):
    given = {"inference": {"length_scale": 2.0}, "audio": {"sample_rate": 16_000}}
    add_voices([write(tmp_path / "from", "de_DE-slow-low", **given)], folder)
    add_voices([write(tmp_path / "from", "de_DE-plain-medium")], folder)
    backend = load(folder)
    slow, plain = (len(speak(backend, one)) for one in ("de_DE-slow-low", "de_DE-plain-medium"))
    english = speak(backend, "de_DE-plain-medium", language="en-US")
    backend.unload()
    assert slow / plain == pytest.approx(2 * 22_050 / 16_000, rel=0.02)
    assert len(english) != plain  # another language is read by its own rules


def test_a_voice_that_takes_letters_gets_letters(folder, tmp_path):
    add_voices([write(tmp_path / "from", "uk_UA-lada-x_low", phoneme_type="text")], folder)
    backend = load(folder)
    assert np.array_equal(*(speak(backend, "uk_UA-lada-x_low", one) for one in ("abc", "ABC")))
    backend.unload()


def test_the_speakers_names_are_their_own(folder, tmp_path):
    names = {"Anna": 0, "Bert": 1}
    [first, second] = add_voices(
        [write(tmp_path / "from", "de_DE-two-low", 2, speaker_id_map=names)], folder
    )
    assert (first, second) == ("de_DE-two-low:Anna", "de_DE-two-low:Bert")


def test_names_go_on_choosing_what_they_chose(serve, folder, tmp_path):
    serve(sherpa_models.piper())
    voices = tmp_path / "voices"
    backend = create("piper", BackendOptions(own_voices=voices))
    backend.load(lambda _progress: None)
    before = speak(backend, None, "Come in.", language="en-US")
    add_voices([write(tmp_path / "from", "en_US-joe-medium", espeak={"voice": "en-us"})], voices)
    add_voices([write(tmp_path / "from", "de_DE-eva-medium")], voices)
    assert len(backend.capabilities.presets) == 906
    assert np.array_equal(speak(backend, None, "Come in.", language="en-US"), before)
    german = speak(backend, "de_DE-eva-medium", language="de")
    assert np.array_equal(speak(backend, None, language="de"), german)
    backend.unload()


def test_a_voice_that_is_removed_while_it_speaks_speaks_to_the_end(folder, tmp_path):
    add_voices([write(tmp_path / "from", "de_DE-eva-medium")], folder)
    backend = load(folder)
    voice = backend.condition(Voice("Ada", preset="de_DE-eva-medium"))
    chunks = backend.speak(SpeechRequest("Guten Abend. Gute Nacht.", voice))
    next(chunks)
    assert remove_voice("de_DE-eva-medium.onnx", folder) == "de_DE-eva-medium"
    assert len(next(chunks))
    assert not any(folder.iterdir())
    with pytest.raises(SpeechFailed, match="has no voice here any more"):
        speak(backend, "de_DE-eva-medium")
    backend.unload()
    with pytest.raises(BadInput, match=r"no voice de_DE-eva-medium\.onnx .* There are: none"):
        remove_voice("de_DE-eva-medium.onnx", folder)


def without_its_description(folder):
    graph = write(folder, "x")
    graph.with_name("x.onnx.json").unlink()
    return [graph]


def without_its_graph(folder):
    write(folder, "x").unlink()
    return [folder / "x.onnx.json"]


def of_another_model(folder):
    graph = write(folder, "x")
    graph.write_bytes(sherpa_models.kokoro_graph())
    return [graph]


def cut_short(folder):
    graph = write(folder, "x")
    graph.write_bytes(graph.read_bytes()[:100])
    return [graph]


def with_the_description_of_another(folder):
    return [write(folder, "x", phoneme_id_map={"_": [0], "^": [1], "$": [2], "a": [9_000]})]


def with_a_description_of_something_else(folder):
    graph = write(folder, "x")
    graph.with_name("x.onnx.json").write_text("[]")
    return [graph]


def of_an_unknown_language(folder):
    return [write(folder, "x", espeak={"voice": "tlh"})]


def of_pinyin(folder):
    return [write(folder, "x", phoneme_type="pinyin")]


def a_picture(folder):
    return [folder / "x.png"]


def another_bin(folder):
    folder.mkdir(exist_ok=True)
    (folder / "x.bin").write_bytes(bytes(1_000))
    return [folder / "x.bin"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (without_its_description, r"x\.onnx comes without x\.onnx\.json"),
        (without_its_graph, r"x\.onnx\.json comes without x\.onnx"),
        (of_another_model, r"^x\.onnx is no Piper voice, or broken\.$"),
        (cut_short, r"^x\.onnx is no Piper voice, or broken\.$"),
        (with_the_description_of_another, r"x\.onnx\.json is of another voice than x\.onnx"),
        (with_a_description_of_something_else, r"x\.onnx\.json isn't the description of a Piper"),
        (of_an_unknown_language, r"x\.onnx speaks “tlh”, which eSpeak NG doesn't read"),
        (of_pinyin, r"x\.onnx reads text by “pinyin”"),
        (a_picture, r"x\.png is no voice: add a Piper voice"),
        (another_bin, r"x\.bin holds no styles of Kokoro's"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_is_no_voice_says_what_it_is_and_is_left_where_it_was(make, said, folder, tmp_path):
    good = write(tmp_path / "good", "good")
    with pytest.raises(BadInput, match=said):
        add_voices([good, *make(tmp_path / "from")], folder)
    assert not folder.exists()


@pytest.mark.parametrize("written", [0, 1])
def test_a_disk_that_fills_up_keeps_nothing_of_a_voice(written, folder, tmp_path, monkeypatch):
    voice = write(tmp_path / "from", "de_DE-eva-medium")
    copies, copy = [], Disk._copy

    def fill_up(disk, source, target):
        copies.append(target)
        if len(copies) > written:
            target.write_bytes(b"begun")
            raise OSError(errno.ENOSPC, "No space left on device")
        copy(disk, source, target)

    monkeypatch.setattr(Disk, "_copy", fill_up)
    with pytest.raises(DiskFull, match="No space left"):
        add_voices([voice], folder)
    assert not any(folder.iterdir())


def test_a_broken_file_in_the_folder_hides_no_other(folder, tmp_path):
    add_voices([write(tmp_path / "from", "de_DE-eva-medium")], folder)
    (folder / "stray.onnx").write_bytes(b"x")
    shutil.copy(folder / "de_DE-eva-medium.onnx", folder / "broken.onnx")
    (folder / "broken.onnx.json").write_text("{}")
    backend = load(folder)
    assert [one.preset_id for one in backend.capabilities.presets] == ["de_DE-eva-medium"]
    backend.unload()


def test_styles_of_kokoro_are_voices_of_its_own(serve, folder, tmp_path):
    serve(sherpa_models.kokoro({"af_heart": np.ones((510, 1, 256), np.float32)}))
    mine = tmp_path / "mine.bin"
    np.full((510, 256), 0.3, np.float32).tofile(mine)
    voices = tmp_path / "voices"
    before = create("kokoro", BackendOptions(own_voices=voices))
    before.load(lambda _progress: None)
    assert [one.preset_id for one in before.capabilities.presets] == ["af_heart"]
    before.unload()
    assert add_voices([mine], voices) == ["mine"]
    backend = create("kokoro", BackendOptions(own_voices=voices))
    backend.load(lambda _progress: None)
    assert [one.preset_id for one in backend.capabilities.presets] == ["af_heart", "mine"]
    backend.unload()
