"""Chatterbox as a backend: the contract, bounds, stops, faults, and what stays in memory."""

from __future__ import annotations

import itertools
import shutil
import threading
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from chatterbox_checkpoint import (
    BY_NAME,
    LINE_TOKENS,
    VARIANTS,
    checkpoint,
    opened,
    request,
    sample_clip,
    voice_of,
    whole,
)
from contract import CHECKS

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.base import ConvertsVoices, FetchesWeights, KeepsConditioning, ReportsMemory
from studio.backends.chatterbox.backend import ChatterboxBackend
from studio.backends.chatterbox.variants import (
    MAX_TOKENS,
    TOKENS_PER_S,
    choose_language,
    estimate_token_bound,
)
from studio.backends.options import BackendOptions
from studio.errors import (
    AudioRejected,
    Cancelled,
    ModelUnavailable,
    OutOfMemory,
    SampleRejected,
    SpeechFailed,
)
from studio.voices.speaker import Sample, Voice

pytestmark = pytest.mark.models
torch = pytest.importorskip("torch", reason="the model packages are not installed")
pytest.importorskip("chatterbox", reason="the model packages are not installed")
import safetensors.torch  # noqa: E402

IDA = Voice("Ida")


@pytest.fixture(scope="module", params=VARIANTS)
def backend(request, tmp_path_factory) -> Iterator[ChatterboxBackend]:
    with opened(request.param, checkpoint(request.param, tmp_path_factory)) as backend:
        yield backend


@pytest.fixture(scope="module")
def english(tmp_path_factory) -> Iterator[ChatterboxBackend]:
    with opened("chatterbox", checkpoint("chatterbox", tmp_path_factory)) as backend:
        yield backend


@pytest.fixture(scope="module")
def turbo(tmp_path_factory) -> Iterator[ChatterboxBackend]:
    name = "chatterbox-turbo"
    with opened(name, checkpoint(name, tmp_path_factory)) as backend:
        yield backend


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check, backend) -> None:
    check(backend)


def test_it_keeps_the_further_contracts(english) -> None:
    for protocol in (ConvertsVoices, FetchesWeights, KeepsConditioning, ReportsMemory):
        assert isinstance(english, protocol)
    assert english.capabilities.voice_conversion
    assert english.memory_bytes() == 0


def test_languages_and_tags_are_the_packages_own() -> None:
    from chatterbox.mtl_tts import SUPPORTED_LANGUAGES

    can = {name: variant.capabilities for name, variant in BY_NAME.items()}
    assert dict(can["chatterbox-multilingual"].languages) == SUPPORTED_LANGUAGES
    assert "laugh" in can["chatterbox-turbo"].tags
    for name in ("chatterbox", "chatterbox-turbo"):
        assert set(can[name].languages) == {"en"}, "other languages are refused, not misread"
    for name in ("chatterbox", "chatterbox-multilingual"):
        assert not can[name].tags


def test_a_tag_is_one_token_for_turbo(turbo) -> None:
    tokenizer = turbo._model._package.tokenizer
    for tag in turbo.capabilities.tags:
        assert len(tokenizer(f"[{tag}]").input_ids) == 1


def test_the_sound_carries_the_watermark(backend) -> None:
    samples = whole(backend.speak(request("Is this marked?", backend.condition(IDA))))
    found = backend._model._package.watermarker.get_watermark(samples, sample_rate=STUDIO_RATE_HZ)
    assert found.mean() > 0.9
    without = 0.1 * np.random.default_rng(1).standard_normal(len(samples)).astype(np.float32)
    found = backend._model._package.watermarker.get_watermark(without, sample_rate=STUDIO_RATE_HZ)
    assert found.mean() < 0.9


# Voices


def test_a_voice_survives_the_disk(backend, tmp_path: Path) -> None:
    made = backend.condition(voice_of("Tom", 110, backend.name))
    backend.write_conditioning(made, tmp_path / "voice.safetensors")
    read = backend.read_conditioning(tmp_path / "voice.safetensors")
    assert read.size_bytes == made.size_bytes > 1_000
    one, other = (whole(backend.speak(request("Once more.", each))) for each in (made, read))
    assert np.array_equal(one, other)


def test_two_voices_at_once_find_the_packages_tables_whole(english, monkeypatch) -> None:
    """It enters a table of two before the other: the second voice comes in between."""
    from studio.backends.chatterbox.chatterbox_model import clear_device_caches

    second, made, window = [], [], torch.hann_window

    def interrupted(*args: object, **options: object) -> torch.Tensor:
        if not second:
            tom = voice_of("Tom", 110)
            second.append(threading.Thread(target=lambda: made.append(english.condition(tom))))
            second[0].start()
            second[0].join(0.3)
        return window(*args, **options)

    clear_device_caches()
    monkeypatch.setattr(torch, "hann_window", interrupted)
    made.append(english.condition(voice_of("Ann", 170)))
    second[0].join()
    assert len(made) == 2


def test_exaggeration_is_the_lines_own(english) -> None:
    voice = english.condition(IDA).payload
    calm, wild = voice.for_t3(0.25), voice.for_t3(2.0)
    assert (calm.emotion_adv.item(), wild.emotion_adv.item()) == (0.25, 2.0)
    english._model._package.t3.prepare_conditioning(calm)
    assert calm.cond_prompt_speech_emb is not None
    assert wild.cond_prompt_speech_emb is None


def test_voices_differ(english) -> None:
    lines = [
        whole(english.speak(request("Who is it?", english.condition(voice))))
        for voice in (IDA, voice_of("Tom", 110), voice_of("Ann", 220))
    ]
    for one, other in itertools.combinations(lines, 2):
        assert len(one) != len(other) or np.abs(one - other).max() > 0.01


def test_turbo_refuses_a_sample_that_is_too_short_for_it(turbo) -> None:
    short = Voice("Tom", Sample(sample_clip(110, 4.0), "short"))
    with pytest.raises(SampleRejected, match=r"Tom.*4\.0 s.*more than 5 s"):
        turbo.condition(short)


# Texts


@pytest.mark.parametrize("text", ["", "   ", "…!?", "[laugh]", "[laugh] [sigh]…"])
def test_nothing_to_speak_never_reaches_the_model(turbo, text: str) -> None:
    with pytest.raises(SpeechFailed, match="nothing to speak"):
        whole(turbo.speak(request(text, turbo.condition(IDA))))


@pytest.mark.parametrize("text", ["Yes.", "7", "Oh [laugh]"])
def test_very_short_lines_are_spoken(backend, text: str) -> None:
    from studio.backends.chatterbox.chatterbox_model import TURBO_TAIL

    samples = whole(backend.speak(request(text, backend.condition(IDA))))
    longest_s = (estimate_token_bound(text) + len(TURBO_TAIL)) / TOKENS_PER_S
    assert 0.1 < len(samples) / STUDIO_RATE_HZ <= longest_s


def test_languages_are_read(tmp_path_factory) -> None:
    name = "chatterbox-multilingual"
    with opened(name, checkpoint(name, tmp_path_factory)) as backend:
        voice = backend.condition(IDA)
        for language in ("en", "ja", "zh", "ko", "he", None):
            line = request("Ja, 你好 שלום!", voice, language=language)
            assert len(whole(backend.speak(line)))


def test_the_bound_grows_with_the_text_and_has_an_end() -> None:
    assert estimate_token_bound("Yes.") == 53
    assert estimate_token_bound("Yes, of course.") == 150
    assert estimate_token_bound("Oh [laugh]") > estimate_token_bound("Oh, well")
    assert estimate_token_bound("你好。") > estimate_token_bound("abc")
    assert estimate_token_bound("word " * 60) == MAX_TOKENS
    assert 40 * TOKENS_PER_S == MAX_TOKENS


@pytest.mark.parametrize(
    ("text", "spoken_s"), [("$1,299,999.99", 8), ("3,141,592,653,589.", 11), ("100 %", 2.5)]
)
def test_numbers_have_room_for_their_words(text: str, spoken_s: float) -> None:
    assert estimate_token_bound(text) > spoken_s * TOKENS_PER_S


def test_the_longest_piece_of_dense_script_is_spoken_within_its_bound() -> None:
    longest_s = 80 / 4.5 + 5  # of 80 characters, with pauses
    assert longest_s * TOKENS_PER_S < estimate_token_bound("你" * 80) < MAX_TOKENS


@pytest.mark.parametrize(
    ("text", "code"),
    [("สวัสดีครับ", "th"), ("გამარჯობა", "ka"), ("வணக்கம்", "ta"), ("Їжак спить.", "uk")],
)
def test_a_script_that_the_model_does_not_speak_is_refused(text: str, code: str) -> None:
    with pytest.raises(SpeechFailed, match=rf"doesn't speak \({code}\).*one of ar, da, de"):
        choose_language(None, text)


@pytest.mark.parametrize(
    ("language", "text", "code"),
    [
        (None, "Привет", "ru"),
        (None, "你好", "zh"),
        (None, "שלום", "he"),
        (None, "Guten Tag", "en"),
        ("cmn", "你好", "zh"),
        ("nb", "Hei", "no"),
        ("de-AT", "Servus", "de"),
    ],
)
def test_a_language_is_read_as_the_models_own(language, text: str, code: str) -> None:
    assert choose_language(language, text) == code


def test_a_line_without_end_is_cut_heard_and_marked(tmp_path_factory) -> None:
    folder = checkpoint("chatterbox", tmp_path_factory, ends=False)
    with opened("chatterbox", folder) as backend:
        spoken = backend.speak(request("A", backend.condition(IDA)))
        heard = next(spoken)
        assert len(heard) == estimate_token_bound("A") * STUDIO_RATE_HZ // TOKENS_PER_S
        with pytest.raises(SpeechFailed, match=r"cut after 1.7 s.*seed"):
            next(spoken)


def test_any_seed_is_taken(turbo) -> None:
    voice = turbo.condition(IDA)
    for seed in (None, 0, -1, 2**70):
        assert len(whole(turbo.speak(request("Any.", voice, seed=seed))))


# Stopping and faults


class Stop:
    """Cancels at the nth look, and counts them."""

    def __init__(self, at: int) -> None:
        self.looks = 0
        self._at = at

    def __call__(self) -> bool:
        self.looks += 1
        return self.looks >= self._at


@pytest.mark.parametrize("at", [2, 5, LINE_TOKENS, LINE_TOKENS + 6])
def test_a_cancelled_line_stops_at_the_next_step(english, at: int) -> None:
    """The looks after `LINE_TOKENS` are those of the flow that makes the sound."""
    stop = Stop(at)
    with pytest.raises(Cancelled):
        whole(english.speak(request("Stop me.", english.condition(IDA), cancelled=stop)))
    assert stop.looks == at


def test_lack_of_memory_is_said_so(english, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: not enough")

    voice = english.condition(IDA)
    monkeypatch.setattr(english._model._package.s3gen.flow.encoder, "forward_layers", full)
    with pytest.raises(OutOfMemory, match="Chatterbox ran out of memory"):
        whole(english.speak(request("Too much.", voice)))
    monkeypatch.undo()
    assert len(whole(english.speak(request("Too much.", voice))))


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    options = BackendOptions(chatterbox_model=str(tmp_path / "none"), device="cpu")
    backend = ChatterboxBackend(BY_NAME["chatterbox"], options)
    assert backend.to_fetch() is not None
    with pytest.raises(ModelUnavailable, match="none"):
        backend.load(lambda _progress: None)
    backend.unload()


def test_a_broken_model_is_one_message_and_the_next_try_works(tmp_path_factory) -> None:
    folder = checkpoint("chatterbox-turbo", tmp_path_factory)
    whole_file = (folder / "conds.pt").read_bytes()
    (folder / "conds.pt").write_bytes(whole_file[: len(whole_file) // 2])
    try:
        with (
            pytest.raises(ModelUnavailable, match="Turbo can't be loaded from"),
            opened("chatterbox-turbo", folder),
        ):
            pass
    finally:
        (folder / "conds.pt").write_bytes(whole_file)
    with opened("chatterbox-turbo", folder) as backend:
        assert len(whole(backend.speak(request("Better.", backend.condition(IDA)))))


def test_the_revision_is_that_of_the_weights(english, tmp_path: Path) -> None:
    assert english.revision.startswith("chatterbox-tts 0.1.7, ")
    options = BackendOptions(chatterbox_model=str(tmp_path), device="cpu")
    other = ChatterboxBackend(BY_NAME["chatterbox"], options)
    before = other.revision
    assert before != english.revision
    for name in BY_NAME["chatterbox"].needs:
        (tmp_path / name).write_bytes(b"weights")
    assert other.revision != before


# Voice conversion


def test_a_recording_keeps_its_length_in_another_voice(backend) -> None:
    tom = backend.condition(voice_of("Tom", 110, backend.name))
    said = sample_clip(300, 0.8)
    converted = [backend.convert(said, voice, seed=1) for voice in (tom, backend.condition(IDA))]
    for made in converted:
        assert made.duration_s == pytest.approx(said.duration_s, abs=0.04)
    assert np.abs(converted[0].samples - converted[1].samples).max() > 0.01


@pytest.mark.parametrize("duration_s", [0.1, 61.0])
def test_a_recording_of_the_wrong_length_is_refused(english, duration_s: float) -> None:
    with pytest.raises(AudioRejected, match=rf"{duration_s:.1f} s"):
        english.convert(Clip.silence(duration_s), english.condition(IDA))


def test_a_conversion_can_be_stopped(english) -> None:
    stop = Stop(3)
    with pytest.raises(Cancelled):
        english.convert(sample_clip(300, 0.5), english.condition(IDA), cancelled=stop)
    assert stop.looks == 3


# Memory


def measured() -> tuple[int, int, int]:
    """Resident bytes, threads, open files."""
    process = psutil.Process()
    return process.memory_info().rss, threading.active_count(), process.num_fds()


def cycle(variant: str, folder: Path, times: int, after_each: Callable[[], None]) -> None:
    for _ in range(times):
        with opened(variant, folder) as backend:
            whole(backend.speak(request("Again.", backend.condition(IDA))))
        after_each()


def check_cycles(variant: str, folder: Path, times: int) -> None:
    kept: list[tuple[int, int, int]] = []
    cycle(variant, folder, times, lambda: kept.append(measured()))
    settled, last = kept[min(4, times // 2)], kept[-1]
    assert last[0] - settled[0] < 40 * 1024 * 1024
    assert last[1] <= settled[1]
    assert last[2] <= settled[2]


def test_unloading_gives_the_memory_back(tmp_path_factory) -> None:
    folder = checkpoint("chatterbox", tmp_path_factory)
    weights_bytes = sum(path.stat().st_size for path in folder.iterdir())
    with opened("chatterbox", folder) as backend:
        loaded_bytes, *_ = measured()
    assert backend._model is None
    assert loaded_bytes - measured()[0] > 0.7 * weights_bytes


def test_cycles_leave_nothing_behind(tmp_path_factory) -> None:
    check_cycles("chatterbox-turbo", checkpoint("chatterbox-turbo", tmp_path_factory), 4)


@pytest.mark.campaign
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("variant", VARIANTS)
def test_two_hundred_cycles_leave_nothing_behind(variant: str, tmp_path_factory) -> None:
    check_cycles(variant, checkpoint(variant, tmp_path_factory), 200)


def test_the_third_version_of_the_multilingual_model_is_loaded_where_it_is(
    tmp_path: Path, tmp_path_factory
) -> None:
    """With both in the folder it is the third; each has an identity, and so takes, of its own."""
    name = "chatterbox-multilingual"
    folder = Path(shutil.copytree(checkpoint(name, tmp_path_factory), tmp_path / "model"))
    second, third = (folder / f"t3_mtl23ls_v{version}.safetensors" for version in (2, 3))
    spoken, revisions = [], []

    def speak() -> None:
        with opened(name, folder) as backend:
            line = request("Grüße aus Köln.", backend.condition(IDA), language="de")
            spoken.append(whole(backend.speak(line)))
            revisions.append(backend.revision)

    speak()
    weights = safetensors.torch.load_file(second)
    weights["speech_head.weight"][:6_561] = weights["speech_head.weight"][:6_561].flip(0)
    safetensors.torch.save_file(weights, third)
    speak()
    second.unlink()
    speak()
    assert not np.array_equal(spoken[0], spoken[1])
    assert np.array_equal(spoken[1], spoken[2])
    assert revisions[0] != revisions[1] == revisions[2]


@pytest.mark.parametrize("version", [2, 3])
def test_a_multilingual_line_is_read_as_nfkd_of_its_full_case_mapping(
    version: int, tmp_path: Path, tmp_path_factory
) -> None:
    """Of either version, in lower case by Unicode's full mapping, then NFKD, before its tokens.

    Source: `MTLTokenizer.preprocess_text` of github.com/resemble-ai/chatterbox, 5de7a54 (21 July
    2026), which `mtl_tts.py` calls with its defaults for `t3_mtl23ls_v3.safetensors`, too.
    """
    name = "chatterbox-multilingual"
    folder = Path(shutil.copytree(checkpoint(name, tmp_path_factory), tmp_path / "model"))
    (folder / "t3_mtl23ls_v2.safetensors").rename(folder / f"t3_mtl23ls_v{version}.safetensors")
    with opened(name, folder) as backend:
        model = backend._require_model()
        for written, read in (
            ("ÄRGER Im\ufb01x.", "a\u0308rger imfix."),  # a ligature
            ("\u0130stanbul.", "i\u0307stanbul."),  # one capital, two small characters
            ("\u039f\u0394\u039f\u03a3.", "\u03bf\u03b4\u03bf\u03c2."),  # a sigma at a word's end
            ("\u2167 \u00bd.", "viii 1\u20442."),
        ):
            assert unicodedata.normalize("NFKD", written.lower()) == read
            tokens = model.text_tokens(written, "de")
            assert torch.equal(tokens, model.text_tokens(read, "de"))
            assert not torch.equal(tokens, model.text_tokens("Quite another.", "de"))


def test_a_turbo_tokenizer_in_one_file_reads_the_same(tmp_path: Path, turbo) -> None:
    from transformers import AutoTokenizer

    source = Path(turbo._source)
    folder = Path(shutil.copytree(source, tmp_path / "model"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for name in ("vocab.json", "merges.txt", "added_tokens.json", "tokenizer_config.json"):
        (folder / name).unlink()
    tokenizer.save_pretrained(folder)
    assert not (folder / "vocab.json").exists()
    with opened("chatterbox-turbo", folder) as backend:
        text = "Well [laugh], that is it."
        lines = [
            whole(one.speak(request(text, one.condition(IDA), seed=3))) for one in (turbo, backend)
        ]
    assert np.array_equal(*lines)
