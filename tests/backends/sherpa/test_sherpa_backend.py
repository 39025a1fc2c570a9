"""Every small voice keeps the contract, alone and in company, and gives its memory back."""

import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
import sherpa_models
from contract import CHECKS, LINE, request_for, whole
from sherpa_backends import make

from studio.backends.base import SpeechRequest
from studio.backends.registry import create, offer_of
from studio.backends.sherpa.catalogue import CATALOGUE
from studio.errors import Cancelled, SampleRejected, SpeechFailed
from studio.voices.speaker import Voice

pytest.importorskip("sherpa_onnx")

LINES = (
    LINE, "Come in.", "Is it late? It is.", "Dr. Smith left at nine, or was it ten; who knows?",
    "One two three four.", "“Never,” she said.", "It rains. It pours. It stops.", "Good night!",
)  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check, loaded):
    check(loaded)


def test_a_line_is_the_same_alone_and_among_eight(loaded):
    alone = [whole(loaded.speak(request_for(loaded, text))) for text in LINES]
    start = threading.Barrier(len(LINES))

    def speak(text):
        start.wait()
        return whole(loaded.speak(request_for(loaded, text)))

    with ThreadPoolExecutor(len(LINES)) as pool:
        together = list(pool.map(speak, LINES))
    assert all(map(np.array_equal, alone, together))


def test_another_line_voice_or_speed_is_another_sound(loaded):
    line = whole(loaded.speak(request_for(loaded)))
    assert not np.array_equal(line, whole(loaded.speak(request_for(loaded, "Come in."))))
    if any(param.name == "speed" for param in loaded.capabilities.params):
        quick = whole(loaded.speak(request_for(loaded, params={"speed": 2.0})))
        assert len(quick) == pytest.approx(len(line) / 2, rel=0.05)


def test_a_line_comes_sentence_by_sentence(loaded):
    chunks = loaded.speak(request_for(loaded, "One. Two. Three."))
    assert len(list(chunks)) == 3


def test_a_line_is_cancelled_between_sentences(loaded):
    asked = []
    chunks = loaded.speak(request_for(loaded, "One. Two. Three.", cancelled=lambda: bool(asked)))
    next(chunks)
    asked.append(True)
    with pytest.raises(Cancelled):
        next(chunks)


def test_a_line_that_waits_for_a_core_is_cancelled(loaded):
    cores = loaded._model._free_cores
    for _ in range(4):
        cores.acquire()
    asked = threading.Event()
    threading.Timer(0.3, asked.set).start()
    try:
        with pytest.raises(Cancelled):
            next(loaded.speak(request_for(loaded, cancelled=asked.is_set)))
    finally:
        cores.release(4)


def test_an_unknown_language_is_refused_with_those_there_are(loaded):
    with pytest.raises(SpeechFailed, match=rf"{loaded.title} doesn't know .*“tlh”.* en"):
        next(loaded.speak(request_for(loaded, language="tlh")))


@pytest.mark.parametrize("text", ["…", "!?", "—", "\u200b.", "🙂"])
def test_a_line_without_any_phoneme_is_refused(text, loaded):
    with pytest.raises(SpeechFailed, match="nothing to speak"):
        next(loaded.speak(request_for(loaded, text)))


def test_a_very_long_sentence_is_spoken_to_its_end(loaded):
    short, long = ("very " * n + "long" for n in (4, 70))
    sounds = [whole(loaded.speak(request_for(loaded, text))) for text in (short, long)]
    assert len(sounds[1]) > 8 * len(sounds[0])


def test_each_name_has_a_voice_and_a_renamed_speaker_keeps_it(loaded):
    presets = loaded.capabilities.presets
    if not presets:
        pytest.skip("it clones only")

    def sound(speaker, **fields):
        voice = loaded.condition(Voice(speaker, **fields))
        request = SpeechRequest("Come in.", voice, language="en-US", seed=1)
        return whole(loaded.speak(request)).tobytes()

    names = [f"Person {number}" for number in range(24)]
    by_name = [sound(one) for one in names]
    assert len(set(by_name)) >= 4
    assert sound("Ada", first_name=names[0]) == by_name[0]
    assert sound("Ada", preset="of another backend") == sound("Ada")
    of_presets = {sound("Ada", preset=one.preset_id) for one in presets[:8]}
    assert len(of_presets) == 8
    for one, heard in zip(names, by_name, strict=True):
        told = loaded.capabilities.describe_builtin(one, "en-US").label
        assert heard in {sound("Ada", preset=it.preset_id) for it in presets if it.label == told}


def test_a_clone_needs_a_sample(loaded):
    if not CATALOGUE[loaded.name].cloning:
        pytest.skip("it has voices of its own")
    with pytest.raises(SampleRejected, match="Ada has no sample"):
        super(type(loaded), loaded).condition(Voice("Ada"))


def test_loads_and_unloads_give_memory_and_processes_back(loaded):
    _cycle(loaded, 20)


@pytest.mark.campaign
def test_200_loads_and_unloads_give_memory_and_processes_back(loaded):
    _cycle(loaded, 200)


def _cycle(backend, times):
    process = psutil.Process()
    backend.unload()
    others = {*process.children()}
    sizes = []
    for _ in range(times):
        backend.unload()
        backend.load(lambda _progress: None)
        whole(backend.speak(request_for(backend, "Come in.")))
        gc.collect()
        sizes.append(process.memory_info().rss)
    # eSpeak NG's of this backend, and of no former load.
    assert len({*process.children()} - others) <= 4 * 2
    # Half of them settle the allocator; a model left behind each time would be 300 kB.
    grown = sizes[-1] - sizes[times // 2]
    assert grown < 150_000 * times / 2


def test_no_torch_is_imported(tmp_path):
    """From the registry to the sound of each, in a process of its own."""
    program = f"""
import sys
from pathlib import Path
sys.path[:0] = {[path for path in sys.path if path]!r}
import pytest
import sherpa_models
from contract import request_for, whole
from sherpa_backends import make
from tiny_hub import TinyHub
for name, files in sherpa_models.FILES.items():
    with pytest.MonkeyPatch.context() as patch:
        with TinyHub(files()).serving(patch, Path({str(tmp_path)!r}) / name):
            backend = make(name)
            backend.load(lambda progress: None)
            assert len(whole(backend.speak(request_for(backend))))
            backend.unload()
print(len(sherpa_models.FILES))
print([one for one in ("torch", "transformers") if one in sys.modules])
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.stdout.split("\n")[:2] == [str(len(CATALOGUE)), "[]"], ended.stderr


def test_a_seed_in_the_graph_decides_no_line(serve):
    """The runtime goes on drawing from one generator, line after line.

    Once it doesn't, or takes seeds with a request, Kokoro, Kitten and Piper can have seeds.
    """
    serve(sherpa_models.kokoro(noisy=True))
    backend = make("kokoro")
    sounds = []
    for _ in range(2):
        backend.load(lambda _progress: None)
        sounds.append([whole(backend.speak(request_for(backend))) for _ in range(2)])
        backend.unload()
    (first, second), (first_again, second_again) = sounds
    assert not np.array_equal(first, second)
    assert np.array_equal(first, first_again)
    assert np.array_equal(second, second_again)
    assert not backend.capabilities.seeded


def test_without_weights_it_is_offered_for_download(name, serve):
    serve({})
    offer = offer_of(create(name))
    assert offer.unavailable is None
    assert "not on this machine yet" in offer.to_fetch
