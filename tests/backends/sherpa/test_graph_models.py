"""Kokoro, Kitten and Piper get from their graphs what their publishers' programs get."""

import io
from pathlib import Path

import numpy as np
import pytest
import sherpa_models
from contract import request_for, whole
from sherpa_backends import make
from tiny_hub import TinyHub

from studio.backends.base import SpeechRequest
from studio.backends.espeak.phonemizer import Phonemizer
from studio.backends.registry import create
from studio.backends.sherpa import mandarin
from studio.backends.sherpa.catalogue import CATALOGUE
from studio.errors import SpeechFailed
from studio.voices.speaker import Voice

ort = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")


def speak(backend, text, **fields):
    voice = backend.condition(Voice("Ada", **fields))
    # Its own loudness, which a scene evens.
    request = SpeechRequest(text, voice, language="en-US", is_evened=False)
    return whole(backend.speak(request))


def quiet(_progress):
    """Nobody looks."""


def test_kokoro_gets_its_phonemes_between_noughts_and_the_row_of_their_number(serve):
    names = CATALOGUE["kokoro"].places
    rows = np.linspace(0.2, 2.0, 510, dtype=np.float32)[:, None, None]
    served = sherpa_models.kokoro({name: np.repeat(rows, 4, axis=2) for name in names})
    serve(served)
    backend = make("kokoro")
    backend.load(quiet)
    heard = speak(backend, "Come in.", preset="af_heart")
    backend.unload()
    ids = [53, 156, 138, 55, 16, 156, 102, 56, 4]  # of kˈʌm ˈɪn. in Kokoro-82M's config.json
    session = ort.InferenceSession(served["kokoro-v1.0.int8.onnx"])
    feed = {
        "tokens": np.array([[0, *ids, 0]]),
        "style": np.repeat(rows[len(ids)], 4, axis=1),
        "speed": np.ones(1, np.float32),
    }
    [wanted] = session.run(None, feed)
    assert np.allclose(heard, wanted / max(1, np.abs(wanted).max()), atol=1e-6)


def test_piper_gets_blanks_between_its_phonemes_and_the_speaker(serve):
    served = sherpa_models.piper()
    serve(served)
    backend = make("piper")
    backend.load(quiet)
    heard = speak(backend, "Come in.", preset="reader_7")
    backend.unload()
    numbers = {char: n for n, char in enumerate(dict.fromkeys(sherpa_models.IPA))}
    ids = [one for char in "kˈʌm ˈɪn." for one in (numbers[char], numbers["_"])]
    spoken = np.array([[numbers["^"], numbers["_"], *ids, numbers["$"]]])
    session = ort.InferenceSession(served["en_US-libritts_r-medium.onnx"])
    feed = {
        "input": spoken,
        "input_lengths": np.array([spoken.shape[1]]),
        "scales": np.array([0.667, 1.0, 0.8], np.float32),
        "sid": np.array([6]),
    }
    [wanted] = session.run(None, feed)
    assert np.allclose(heard, wanted / max(1, np.abs(wanted).max()), atol=1e-6)


def test_kittens_voices_have_their_own_pace(serve):
    serve(sherpa_models.kitten())
    backend = make("kitten")
    backend.load(quiet)
    bruno, hugo = (len(speak(backend, "Come in.", preset=one)) for one in ("m_bruno", "m_hugo"))
    backend.unload()
    assert bruno / hugo == pytest.approx(0.9 / 0.8, rel=0.01)


def older_kokoro():
    names = CATALOGUE["kokoro"].places
    styles = np.stack([np.full((510, 256), 0.5 + place / 36) for place, _ in enumerate(names)])
    return {
        "model.onnx": sherpa_models.kokoro_graph(width=256),
        "voices.bin": styles.astype(np.float32).tobytes(),
        "tokens.txt": "".join(f"{char} {n}\n" for n, char in enumerate(sherpa_models.IPA)).encode(),
        "lexicon-zh.txt": "你 k a\n你好 h a o\n".encode(),
    }


def put(hub_cache, source, files_):
    name, _, tag = source.source.partition("@")
    model = hub_cache / ("models--" + name.replace("/", "--"))
    snapshot = model / "snapshots" / (tag or "0" * 40)
    for path, content in files_.items():
        (snapshot / path).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / path).write_bytes(content)
    (model / "refs").mkdir(exist_ok=True)
    (model / "refs" / "main").write_text(tag or "0" * 40)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    with TinyHub({}).serving(monkeypatch, tmp_path):
        from huggingface_hub import constants

        yield Path(constants.HF_HUB_CACHE)


def test_who_has_the_older_files_is_served_by_them(cache):
    model = CATALOGUE["kokoro"]
    put(cache, model.older[0], older_kokoro())
    backend = create("kokoro")
    assert backend.to_fetch() is None
    assert [one.source for one in backend.weight_sources] == ["csukuangfj/kokoro-multi-lang-v1_0"]
    assert "csukuangfj/kokoro-multi-lang-v1_0" in backend.revision
    backend.load(quiet)
    sounds = {speak(backend, "Come in.", preset=one).tobytes() for one in ("af_heart", "am_puck")}
    assert len(sounds) == 2
    chinese = backend.condition(Voice("Ada", preset="zf_xiaobei"))
    assert len(whole(backend.speak(SpeechRequest("你好。", chinese))))
    assert backend.lacks("zh") is None
    backend.unload()


def test_a_take_of_the_time_of_sherpa_onnx_counts(cache):
    """Its graphs and phonemes were the same: another runtime alone makes no line stale."""
    put(cache, CATALOGUE["kokoro"].older[0], older_kokoro())
    assert create("kokoro").revision.startswith("sherpa-onnx 2.0.1, csukuangfj/kokoro")


def test_a_preset_whose_style_isnt_there_isnt_offered(serve):
    styles = {name: sherpa_models.style(0) for name in ("af_heart", "jm_kumo", "zf_xiaobei")}
    serve(sherpa_models.kokoro(styles))
    backend = make("kokoro")
    assert len(backend.capabilities.presets) == 58  # nobody knows yet
    backend.load(quiet)
    offered = [one.preset_id for one in backend.capabilities.presets]
    assert offered == ["af_heart", "zf_xiaobei", "xm_kumo"]
    assert len(speak(backend, "Come in.", preset="am_adam"))
    backend.unload()
    assert len(backend.capabilities.presets) == 3


def test_a_loud_graph_is_made_quieter_instead_of_cut(serve):
    styles = {"af_heart": 40 * sherpa_models.style(1)}
    served = sherpa_models.kokoro(styles)
    model = onnx.load_from_string(served["kokoro-v1.0.int8.onnx"])
    louder = next(one for one in model.graph.node if one.op_type == "Tanh")
    louder.op_type = "Identity"
    serve({**served, "kokoro-v1.0.int8.onnx": model.SerializeToString()})
    backend = make("kokoro")
    backend.load(quiet)
    heard = np.abs(speak(backend, "Come in.", preset="af_heart"))
    backend.unload()
    assert heard.max() == pytest.approx(1.0)
    assert (heard > 0.999).mean() < 0.01


def test_a_graph_that_fails_says_so(serve, monkeypatch):
    serve(sherpa_models.piper())
    backend = make("piper")
    backend.load(quiet)
    monkeypatch.setitem(backend._model._numbers, "k", 10_000)
    with pytest.raises(SpeechFailed, match=r"Piper failed at “Come in\.”"):
        speak(backend, "Come in.")
    backend.unload()


def test_the_marks_of_other_scripts_end_sentences():
    pytest.importorskip("espeakng_loader")
    phonemizer = Phonemizer(workers=1)
    read = [
        [clause.mark for clause in phonemizer.read([text], language)[0]]
        for text, language in (("वह आया।", "hi"), ("ماذا تفعل؟", "ar"), ("نعم، هنا", "ar"))
    ]
    phonemizer.close()
    assert read == [["."], ["?"], [",", ""]]


def test_without_its_package_chinese_says_what_it_needs(serve, monkeypatch):
    monkeypatch.setattr(mandarin, "find_spec", lambda _name: None)
    serve(sherpa_models.kokoro())
    backend = make("kokoro")
    assert "pip install pypinyin" in backend.lacks("zh")
    assert backend.lacks("fr") is None
    backend.load(quiet)
    with pytest.raises(SpeechFailed, match="pip install pypinyin"):
        next(backend.speak(request_for(backend, "你好。", language="zh")))
    backend.unload()


def test_chinese_is_spelt_by_pinyin():
    pytest.importorskip("pypinyin", reason="pypinyin, which reads Chinese, isn't installed")
    spoken = mandarin.read("他今年30岁，住在NASA！好吗？", None, lambda words: "nˈæsə!")
    assert spoken == "tʰa→ ʨi→n njɛ↗n sa→n li↗ŋ swei↘, ꭧu↘ ʦai↘ nˈæsə! xau↓ ma?"


def test_a_word_of_the_lexicon_is_the_longest(tmp_path):
    lexicon = tmp_path / "lexicon-zh.txt"
    lexicon.write_text("你 n i\n你好 n i x a u\n吗 m a\n", "utf-8")
    assert mandarin.read("你好吗？", lexicon, str) == "nixau ma?"


def choices(backend):
    """What names choose."""
    describe = backend.capabilities.describe_builtin
    return {describe(f"Character {number}", "en-US").label for number in range(60)}


def test_names_choose_mixtures_where_nothing_else_is_here(serve):
    files = sherpa_models.kokoro()
    with np.load(io.BytesIO(files.pop("voices-v1.0.bin"))) as styles:
        five = {name: styles[name] for name in styles.files if name.startswith("j")}
    serve(files | {"voices_ja.npz": sherpa_models.kokoro(five)["voices-v1.0.bin"]})
    backend = make("kokoro")
    backend.fetch(quiet)
    assert all(label.endswith(", with an accent)") for label in choices(backend))
    assert len(backend.capabilities.presets) == 10
    assert [*backend.capabilities.languages] == ["en-US"]


def test_a_mixture_that_was_chosen_stays_and_names_choose_none_where_all_styles_are_here(serve):
    serve(sherpa_models.kokoro())
    backend = make("kokoro")
    backend.fetch(quiet)
    assert not any("accent" in label for label in choices(backend))
    assert backend.condition(Voice("Ada", preset="xm_kumo")).payload.preset == "xm_kumo"
