"""Chatterbox with many lines in one pass, on small checkpoints: contract, lines, memory."""

from __future__ import annotations

import gc
import json
import random
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("chatterbox", reason="the neural voices' packages are not installed")

import torch
from chatterbox_checkpoint import (
    BY_NAME,
    VARIANTS,
    checkpoint,
    one_thread,
    request,
    short_form,
    small_architecture,
    voice_of,
    whole,
)
from chatterbox_lines import ENGLISH, LANGUAGES, MULTILINGUAL, TURBO
from contract import CHECKS, new_threads
from scenes import OpenStudio, finish

from studio.app import main
from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.backends.base import Conditioning, Priority, ReportsCapacity, ReportsHealth
from studio.backends.batching.runner_contract import BatchingUnavailable
from studio.backends.chatterbox.backend import ChatterboxBackend
from studio.backends.chatterbox.chatterbox_memory import (
    RELEASED_T3_DIMS,
    T3_POSITIONS,
    T3Dims,
    plan_t3_memory,
)
from studio.backends.chatterbox.t3_slots import T3Slots
from studio.backends.chatterbox.t3_weights import pack_t3
from studio.backends.options import BackendOptions, BatchOptions
from studio.dialog.model import Dialog, Speech
from studio.errors import Cancelled, ModelUnavailable, SpeechFailed
from studio.services.studio import RenderOptions
from studio.voices.speaker import Voice

pytestmark = pytest.mark.models

SLOTS = 4
FOUR = BatchOptions(slots=SLOTS, positions=512, max_wait_s=0.01)
WITHIN = 1e-4
GB = 10**9

# What the engine around a model does, whose code knows no model.
OF_THE_ENGINE = pytest.mark.parametrize("variant", short_form(TURBO), indirect=True)
# What is done to a model: of GPT-2, and of Llama, which the multilingual one is, too.
OF_BOTH_STACKS = pytest.mark.parametrize("variant", short_form(TURBO, ENGLISH), indirect=True)


def made_backend(variant: str, folder: Path, batch: BatchOptions = FOUR) -> ChatterboxBackend:
    options = BackendOptions(chatterbox_model=str(folder), device="cpu", batch=batch)
    return ChatterboxBackend(BY_NAME[variant], options)


@contextmanager
def opened(variant: str, folder: Path, batch: BatchOptions = FOUR) -> Iterator[ChatterboxBackend]:
    backend = made_backend(variant, folder, batch)
    with small_architecture(variant), one_thread():
        backend.load(lambda _progress: None)
        yield backend
        backend.unload()


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def folder(variant, tmp_path_factory) -> Path:
    return checkpoint(variant, tmp_path_factory)


@pytest.fixture(scope="module")
def backend(variant, folder):
    with opened(variant, folder) as backend:
        yield backend


@pytest.fixture(scope="module")
def voices(backend, variant) -> dict[str, Conditioning]:
    cast = {"Ida": Voice("Ida"), "Tom": voice_of("Tom", 110, variant)}
    return {name: backend.condition(voice) for name, voice in cast.items()}


LINES = tuple(
    (("Ida", "Tom")[number % 2], f"No. {number}, then." + " So." * (number % 3), number)
    for number in range(6)
)


def chunks_of(line: Iterator[Samples]) -> list[Samples]:
    """A line's sound, also where it is cut at its bound: with random weights some don't end."""
    made = []
    try:
        for chunk in line:
            made.append(chunk)
    except SpeechFailed as error:
        if "cut after" not in str(error):
            raise
    return made


def spoken(backend, voices, line: tuple[str, str, int], **fields: object) -> Samples:
    name, text, seed = line
    asked = request(text, voices[name], seed=seed, language=language_of(backend, seed), **fields)
    return np.concatenate(chunks_of(backend.speak(asked)))


def language_of(backend: ChatterboxBackend, number: int) -> str:
    """English, or one after the other where it speaks more."""
    several = MULTILINGUAL in backend.name
    return LANGUAGES[number % len(LANGUAGES)] if several else "en"


@pytest.fixture(scope="module")
def alone(backend, voices) -> list[Samples]:
    return [spoken(backend, voices, line) for line in LINES]


def assert_same(samples: Samples, expected: Samples) -> None:
    assert samples.shape == expected.shape
    assert np.abs(samples - expected).max() < WITHIN


@OF_BOTH_STACKS
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check, variant, backend):
    check(backend)


def test_it_says_how_many_lines_it_takes(backend, variant):
    assert backend.name == variant
    assert (backend.capabilities.slots, backend.capabilities.queues_requests) == (SLOTS, True)
    assert not backend.capabilities.streaming
    assert backend.capabilities.params == BY_NAME[variant].capabilities.params
    assert backend.capabilities.languages == BY_NAME[variant].capabilities.languages


@pytest.mark.parametrize("variant", [MULTILINGUAL], indirect=True)
def test_a_line_is_read_in_its_own_language(backend, variant, voices):
    tokenizer = backend._model._package.tokenizer.tokenizer
    for language in LANGUAGES:
        line = backend._line(request("So it is.", voices["Ida"], language=language))
        assert tokenizer.token_to_id(f"[{language}]") in line.text


def test_6_lines_through_4_slots_are_as_if_alone(backend, voices, alone):
    order = list(range(len(LINES)))
    random.Random(3).shuffle(order)
    with ThreadPoolExecutor(len(order)) as pool:
        together = list(pool.map(lambda number: spoken(backend, voices, LINES[number]), order))
    for number, samples in zip(order, together, strict=True):
        assert_same(samples, alone[number])


@OF_THE_ENGINE
def test_a_line_that_somebody_waits_for_is_the_same_in_one_piece(backend, voices, alone):
    name, text, seed = LINES[0]
    line = request(text, voices[name], seed=seed, priority=lambda: Priority(0))
    (chunk,) = chunks_of(backend.speak(line))
    assert_same(chunk, alone[0])


@OF_THE_ENGINE
def test_cancels_change_no_survivor(backend, voices, alone):
    gone = {number: threading.Event() for number in (0, 3, 5)}
    for number in (0, 5):
        gone[number].set()

    def speak(number: int) -> Samples | None:
        cancelled = gone[number].is_set if number in gone else lambda: False
        try:
            return spoken(backend, voices, LINES[number], cancelled=cancelled)
        except Cancelled:
            return None
        finally:
            gone[3].set()

    with ThreadPoolExecutor(len(LINES)) as pool:
        together = list(pool.map(speak, range(len(LINES))))
    assert together[0] is together[5] is None
    for number, samples in enumerate(together):
        if samples is None:
            assert number in gone
        else:
            assert_same(samples, alone[number])


@OF_THE_ENGINE
def test_a_step_that_fails_is_told_and_the_next_line_is_spoken(backend, voices, alone, monkeypatch):
    core = backend._runner._engine._core
    step, failing = core.step, iter([True])

    def fail_once(bucket: int) -> None:
        if next(failing, False):
            raise RuntimeError("the device said no")
        step(bucket)

    monkeypatch.setattr(core, "step", fail_once)
    name, text, seed = LINES[1]
    with pytest.raises(SpeechFailed, match="the device said no"):
        whole(backend.speak(request(text, voices[name], seed=seed)))
    assert_same(spoken(backend, voices, LINES[1]), alone[1])
    assert isinstance(backend, ReportsHealth)
    assert backend.health().faults == 1
    assert backend.health().alive


@OF_BOTH_STACKS
def test_a_line_that_does_not_end_is_marked_and_heard(variant, tmp_path_factory):
    with opened(variant, checkpoint(variant, tmp_path_factory, ends=False)) as backend:
        chunks, line = [], request("No.", backend.condition(Voice("Ida")))
        with pytest.raises(SpeechFailed, match="cut after 2 s"):
            chunks.extend(backend.speak(line))
        assert sum(map(len, chunks)) > 1.5 * STUDIO_RATE_HZ


@OF_THE_ENGINE
def test_a_line_at_the_end_of_its_slot_is_marked(variant, tmp_path_factory):
    endless = checkpoint(variant, tmp_path_factory, ends=False)
    with opened(variant, endless, BatchOptions(slots=2, positions=256, max_wait_s=0)) as backend:
        line = request("Long, long ago, in a house by the sea.", backend.condition(Voice("Ida")))
        with pytest.raises(SpeechFailed, match=r"longer than the memory.*cut"):
            whole(backend.speak(line))


@OF_BOTH_STACKS
def test_unload_stops_the_threads_and_frees_the_model(variant, folder):
    before = {*threading.enumerate()}
    backend = made_backend(variant, folder)
    with small_architecture(variant), one_thread():
        backend.load(lambda _progress: None)
    line = request("Yes.", backend.condition(Voice("Ida")))
    assert chunks_of(backend.speak(line))
    caches = weakref.ref(backend._runner._engine._core._slots.kv_cache)
    package = weakref.ref(backend._model._package)
    assert new_threads(before) == ["codec", "engine"]
    backend.unload()
    gc.collect()
    assert new_threads(before) == []
    assert caches() is package() is None
    assert backend.health().alive
    with pytest.raises(ModelUnavailable, match="not loaded"):
        next(iter(backend.speak(line)))


@OF_THE_ENGINE
def test_fewer_slots_where_the_memory_does_not_suffice_after_all(variant, folder, monkeypatch):
    allocate = T3Slots.allocate.__func__

    def allocate_few(cls, weights, layout):
        if layout.slots > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return allocate(cls, weights, layout)

    monkeypatch.setattr(T3Slots, "allocate", classmethod(allocate_few))
    monkeypatch.setattr("studio.backends.neural_backend.should_batch", lambda *_, **__: True)
    with opened(variant, folder, BatchOptions(positions=512)) as backend:
        assert backend.capabilities.slots == 2
        assert len(whole(backend.speak(request("Yes.", backend.condition(Voice("Ida"))))))


def test_a_model_of_another_kind_is_refused():
    from chatterbox.models.t3 import T3

    with small_architecture(ENGLISH):
        t3 = T3()
    t3.cfg.hidden_act = "gelu"
    with pytest.raises(BatchingUnavailable, match="layers that the batched T3 doesn't know"):
        pack_t3(t3, 256, torch.float32)


@OF_THE_ENGINE
def test_where_lines_cannot_be_batched_each_is_made_alone(variant, folder, monkeypatch, caplog):
    def unknown(_t3):
        raise BatchingUnavailable("This Chatterbox checkpoint has other layers.")

    monkeypatch.setattr("studio.backends.chatterbox.t3_weights._check_supported", unknown)
    with opened(variant, folder) as backend:
        assert backend.capabilities.slots is None
        assert "speaks one line at a time: This Chatterbox checkpoint" in caplog.text
        assert len(np.concatenate(chunks_of(line_of(backend))))


def line_of(backend: ChatterboxBackend) -> Iterator[Samples]:
    return backend.speak(request("Yes.", backend.condition(Voice("Ida"))))


def test_doctor_is_told_what_fits(variant, folder):
    backend = made_backend(variant, folder)
    assert isinstance(backend, ReportsCapacity)
    told = backend.describe_capacity()
    assert told.startswith("4 lines at once on cpu, of 512 positions each") or "memory" in told


SMALL_CARD_GB = {TURBO: 6, ENGLISH: 9, MULTILINGUAL: 10}


LONGEST_LINES = {  # tokens of its voice and text, and of its speech at a slow pace
    ENGLISH: (34 + 302, 300 / 11 * 25),
    MULTILINGUAL: (34 + 80 * 6 + 4, 80 / 4 * 25),
    TURBO: (376 + 150, 300 / 11 * 25),
}


@pytest.mark.parametrize("device", ["cpu", "mps", "cuda"])
@pytest.mark.parametrize("free_gb", [4, 5, 6, 8, 10, 12, 24])
def test_the_longest_line_fits_wherever_any_does(variant, device, free_gb):
    """Little memory makes fewer slots, not shorter lines."""
    dimensions = RELEASED_T3_DIMS[variant]
    try:
        room = plan_t3_memory(BY_NAME[variant], dimensions, free_gb * GB, device, BatchOptions())
    except ModelUnavailable:
        assert free_gb < 8
        return
    assert room.layout.positions >= sum(LONGEST_LINES[variant])


@pytest.mark.parametrize("small", [False, True])
def test_slots_on_cards_of_some_sizes(variant, small):
    free_bytes = round((SMALL_CARD_GB[variant] if small else 140) * GB)
    room = plan_t3_memory(
        BY_NAME[variant], RELEASED_T3_DIMS[variant], free_bytes, "cuda", BatchOptions()
    )
    assert room.layout.slots >= (8 if small else 64)
    assert room.layout.positions == T3_POSITIONS[variant][small]


def test_a_slot_takes_what_was_reckoned(backend):
    core = backend._runner._engine._core
    dimensions = T3Dims.of(backend._model.t3, half=False)
    reckoned = SLOTS * dimensions.slot_bytes(core.layout, "cpu")
    assert abs(core._slots.size_bytes - reckoned) < 0.05 * reckoned


@OF_THE_ENGINE
def test_the_engine_fills_the_slots(open_studio: OpenStudio, backend):
    dialog = Dialog(tuple(Speech("Ida", text, seed=seed) for _, text, seed in LINES))
    studio = open_studio(backend, max_concurrency=1)
    job = studio.render(dialog, RenderOptions())
    finish(job)
    assert job.summarize().max_in_flight > SLOTS
    assert all(record.streamed_samples for record in job.records)


@OF_THE_ENGINE
def test_a_render_from_the_command_line(variant, folder, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("CHATTERBOX_MODEL", str(folder))
    monkeypatch.setenv("TTS_BATCH_SIZE", "3")
    monkeypatch.setenv("TTS_BATCH_POSITIONS", "512")
    script = "\n".join(f"Ida: {text}" for _, text, _ in LINES[:5])
    (tmp_path / "scene.txt").write_text(script)
    argv = ["render", str(tmp_path / "scene.txt"), "-o", str(tmp_path / "scene.wav"), "--json"]
    argv += ["--backend", variant, "--workspace", str(tmp_path / "workspace")]
    with small_architecture(variant), one_thread():
        main([*argv, "--seed", "3"])
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["backend"], report["segments"]) == (variant, 5)
    assert all("cut after" in one["message"] for one in report["failed"])
