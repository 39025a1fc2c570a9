"""Qwen3-TTS, many lines in one pass, on small checkpoints: contract, lines, streams, memory."""

from __future__ import annotations

import gc
import json
import random
import re
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from contract import CHECKS, check_params_at_their_bounds, new_threads
from qwen3_checkpoint import FEW_GROUPS, small_checkpoint
from qwen3_speakers import (
    VOICES,
    collected,
    recording,
    request_for,
    speaker,
    use_one_core,
    whole,
)
from scenes import OpenStudio, finish

from studio.app import main
from studio.audio.clip import Samples, write_wav
from studio.backends.base import Conditioning, Priority, ReportsCapacity, ReportsHealth
from studio.backends.batching.int8_matrix import can_multiply_int8
from studio.backends.batching.runner_contract import BatchingUnavailable
from studio.backends.options import BackendOptions, BatchOptions
from studio.backends.qwen3.backend import Qwen3Backend
from studio.dialog.model import Dialog, Speech
from studio.errors import Cancelled, ModelUnavailable, SpeechFailed
from studio.services.studio import RenderOptions
from studio.voices.speaker import Voice

pytestmark = pytest.mark.models

SAMPLES_PER_FRAME = 1_920
WITHIN = 1e-4
SLOTS = 4
PATIENCE_S = 120


FOUR = BatchOptions(slots=SLOTS, positions=1_024, max_wait_s=0.01)


def options_for(kind: str, batch: BatchOptions = FOUR, *, ends: bool = True) -> BackendOptions:
    use_one_core()
    source = str(small_checkpoint(kind, ends=ends, groups=FEW_GROUPS))
    return BackendOptions(qwen3_model=source, device="cpu", batch=batch)


def made_backend(kind: str = "base", *, batch: BatchOptions = FOUR) -> Qwen3Backend:
    return Qwen3Backend(options_for(kind, batch))


class WithVoice(Qwen3Backend):
    """Gives its own voice to speakers that the checkpoint can't serve as they are."""

    def __init__(self, kind: str) -> None:
        super().__init__(options_for(kind))
        self.voice = VOICES[kind]

    def condition(self, voice: Voice) -> Conditioning:
        return super().condition(replace(self.voice, speaker=voice.speaker))


# What is batched knows no kind; the contract of each, line by line, is `test_qwen3_backend.py`'s.
KINDS = ("base", pytest.param("custom_voice", marks=pytest.mark.campaign), "voice_design")


@pytest.fixture(scope="module", params=KINDS)
def any_backend(request):
    backend = WithVoice(request.param)
    backend.load(lambda _progress: None)
    yield backend
    backend.unload()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check, any_backend):
    if check is check_params_at_their_bounds and any_backend.voice is not VOICES["base"]:
        pytest.skip("the parameters are the same for every kind of checkpoint")
    check(any_backend)


@pytest.fixture(scope="module")
def backend():
    backend = made_backend()
    backend.load(lambda _progress: None)
    yield backend
    backend.unload()


CAST = {
    name: speaker(name, pitch_hz=pitch_hz, transcript=transcript)
    for name, pitch_hz, transcript in (("Ida", 120, None), ("Bruno", 90, "Hello."))
}
LINES = tuple(
    (name, f"No. {number}, {name}." + " So it is." * (number % 3), number)
    for number in range(4)
    for name in CAST
)


def spoken(backend: Qwen3Backend, line: tuple[str, str, int], **fields: object) -> Samples:
    name, text, seed = line
    made = collected(backend.speak(request_for(backend, CAST[name], text, seed=seed, **fields)))
    return np.concatenate(made)


@pytest.fixture(scope="module")
def alone(backend) -> list[Samples]:
    return [spoken(backend, line) for line in LINES]


def assert_same(samples: Samples, expected: Samples) -> None:
    assert samples.shape == expected.shape
    assert np.abs(samples - expected).max() < WITHIN


def test_8_lines_through_4_slots_are_as_if_alone(backend, alone):
    order = list(range(len(LINES)))
    random.Random(3).shuffle(order)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda number: spoken(backend, LINES[number]), order))
    for number, samples in zip(order, together, strict=True):
        assert_same(samples, alone[number])


def test_cancels_and_late_arrivals_change_no_survivor(backend, alone):
    gone = {number: threading.Event() for number in range(0, len(LINES), 3)}

    def speak(number: int) -> Samples | None:
        cancelled = gone[number].is_set if number in gone else lambda: False
        try:
            return spoken(backend, LINES[number], cancelled=cancelled)
        except Cancelled:
            return None
        finally:
            for other in gone:
                if other > number:
                    gone[other].set()
                    break

    with ThreadPoolExecutor(10) as pool:
        together = list(pool.map(speak, range(len(LINES))))
    for number, samples in enumerate(together):
        if samples is not None:
            assert_same(samples, alone[number])
        else:
            assert number in gone
    assert backend.health().running <= SLOTS


@pytest.mark.campaign
@pytest.mark.timeout(1_800)
def test_300_lines_through_8_slots_with_cancels_are_as_if_alone():
    backend = made_backend(batch=replace(FOUR, slots=8))
    backend.load(lambda _progress: None)
    lines = [(name, f"No. {n}." + " On." * (n % 7), n) for n in range(150) for name in CAST]
    gone = [threading.Event() for _ in lines]

    def speak(number: int) -> Samples | None:
        gone[(number * 7 + 3) % len(lines)].set() if number % 5 == 0 else None
        try:
            return spoken(backend, lines[number], cancelled=gone[number].is_set)
        except Cancelled:
            return None

    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(speak, range(len(lines))))
    for line, event, samples in zip(lines, gone, together, strict=True):
        if samples is None:
            assert event.is_set()
        else:
            assert_same(samples, spoken(backend, line))
    backend.unload()


def test_a_line_at_the_play_head_comes_frame_by_frame(backend, alone):
    name, text, seed = LINES[1]
    request = request_for(backend, CAST[name], text, seed=seed, priority=lambda: Priority(0))
    chunks = collected(backend.speak(request))
    assert len(chunks[0]) == SAMPLES_PER_FRAME
    assert len(chunks) > 2
    assert_same(np.concatenate(chunks), alone[1])


def test_batch_and_wait_is_the_same(alone):
    options = BatchOptions(slots=3, positions=1_024, max_wait_s=0.01, continuous=False)
    backend = made_backend(batch=options)
    backend.load(lambda _progress: None)
    assert backend.capabilities.slots == 3
    with ThreadPoolExecutor(5) as pool:
        together = list(pool.map(lambda line: spoken(backend, line), LINES[:5]))
    backend.unload()
    for samples, expected in zip(together, alone, strict=False):
        assert_same(samples, expected)


def test_a_line_at_the_end_of_its_cache_is_marked():
    few = BatchOptions(slots=2, positions=128, max_wait_s=0)
    backend = Qwen3Backend(options_for("base", few, ends=False))
    backend.load(lambda _progress: None)
    text = "Long, long ago. " * 10
    with pytest.raises(SpeechFailed, match=r"TTS_BATCH_POSITIONS|too long together"):
        whole(backend.speak(request_for(backend, speaker(), text)))
    backend.unload()


def test_a_step_that_fails_is_told_and_the_next_line_is_spoken(backend, alone, monkeypatch):
    core = backend._runner._engine._core
    step, failing = core.step, iter([True])

    def fail_once(bucket: int) -> None:
        if next(failing, False):
            raise RuntimeError("the device said no")
        step(bucket)

    monkeypatch.setattr(core, "step", fail_once)
    with pytest.raises(SpeechFailed, match="the device said no"):
        spoken_or_raise(backend, LINES[0])
    assert_same(spoken(backend, LINES[0]), alone[0])
    assert isinstance(backend, ReportsHealth)
    assert backend.health().faults == 1
    assert backend.health().alive


def spoken_or_raise(backend: Qwen3Backend, line: tuple[str, str, int]) -> Samples:
    name, text, seed = line
    return whole(backend.speak(request_for(backend, CAST[name], text, seed=seed)))


def test_unload_stops_the_threads_and_frees_the_model():
    before = {*threading.enumerate()}
    backend = made_backend()
    backend.load(lambda _progress: None)
    spoken(backend, LINES[0])
    decoder = weakref.ref(backend._model.codec_decoder)
    core = weakref.ref(backend._runner._engine._core)
    assert new_threads(before) == ["codec", "codec, streamed", "engine"]
    backend.unload()
    gc.collect()
    assert new_threads(before) == []
    assert core() is decoder() is None
    assert backend.health().alive
    with pytest.raises(ModelUnavailable, match="not loaded"):
        next(backend.speak(request_for_unloaded()))


def request_for_unloaded():
    from studio.backends.base import SpeechRequest
    from studio.backends.qwen3.prompt import Qwen3Voice

    return SpeechRequest("Hello.", Conditioning(Qwen3Voice(), 1))


def test_fewer_slots_where_the_memory_does_not_suffice_after_all(monkeypatch):
    from studio.backends.qwen3.talker_slots import TalkerSlots

    allocate = TalkerSlots.allocate.__func__

    def allocate_few(cls, weights, layout):
        if layout.slots > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return allocate(cls, weights, layout)

    monkeypatch.setattr(TalkerSlots, "allocate", classmethod(allocate_few))
    monkeypatch.setattr("studio.backends.neural_backend.should_batch", lambda *_, **__: True)
    backend = made_backend(batch=BatchOptions(positions=1_024))
    backend.load(lambda _progress: None)
    assert backend.capabilities.slots == 2
    assert len(spoken(backend, LINES[0]))
    backend.unload()


def no_memory(*_):
    raise torch.OutOfMemoryError("CUDA out of memory")


def no_such_attention(_config):
    raise BatchingUnavailable("This Qwen3-TTS checkpoint has another attention.")


@pytest.fixture(scope="module")
def made_without_slots() -> Samples:
    lone = made_backend(batch=BatchOptions(slots=1))
    lone.load(lambda _progress: None)
    samples = spoken(lone, LINES[0])
    lone.unload()
    return samples


@pytest.mark.parametrize(
    ("where", "fault", "reason"),
    [
        ("studio.backends.qwen3.talker_slots.TalkerSlots.allocate", no_memory, "TTS_BATCH_SIZE"),
        ("studio.backends.qwen3.talker_weights._check_supported", no_such_attention, "attention"),
        ("studio.backends.qwen3.batched_codec._prepare_codec", no_memory, "TTS_BATCH_SIZE"),
    ],
)
def test_where_lines_cannot_be_batched_each_is_made_alone(
    where, fault, reason, made_without_slots, monkeypatch, caplog
):
    monkeypatch.setattr(where, fault)
    backend = made_backend()
    assert backend.capabilities.slots == SLOTS
    before = {*threading.enumerate()}
    backend.load(lambda _progress: None)
    assert backend.capabilities.slots is None
    assert new_threads(before) == []
    assert re.search(f"speaks one line at a time: .*{reason}", caplog.text)
    assert np.array_equal(spoken(backend, LINES[0]), made_without_slots)
    backend.unload()


@pytest.mark.parametrize(
    ("batch", "slots"),
    [
        (BatchOptions(), 8 if can_multiply_int8("cpu") else None),
        (BatchOptions(float32=True), None),
        (BatchOptions(slots=1), None),
        (BatchOptions(slots=2), 2),
        (BatchOptions(enabled=False, slots=2), None),
    ],
)
def test_on_a_cpu_lines_are_decoded_together_where_that_pays(batch, slots):
    backend = made_backend(batch=replace(batch, positions=512))
    assert backend.capabilities.slots == slots
    backend.load(lambda _progress: None)
    assert backend.capabilities.slots == slots
    assert backend.capabilities.queues_requests == bool(slots)
    backend.unload()


def test_doctor_is_told_what_fits():
    backend = made_backend()
    assert isinstance(backend, ReportsCapacity)
    assert backend.describe_capacity().startswith("4 lines at once on cpu, of 1,024 positions each")
    options = BackendOptions(qwen3_model="nobody/here", device="cpu", batch=FOUR)
    none = Qwen3Backend(options)
    assert (
        "lines at once on cpu" in none.describe_capacity()
        or "TTS_BATCH_SIZE" in none.describe_capacity()
    )
    lone = Qwen3Backend(replace(options, batch=BatchOptions(slots=1)))
    assert lone.describe_capacity().startswith("one line at a time on cpu")


def test_the_engine_fills_the_slots_and_the_takes_are_those_of_one_at_a_time(
    open_studio: OpenStudio, backend, tmp_path: Path
):
    voices = {name: tmp_path / f"{name}.wav" for name in CAST}
    for name, path in voices.items():
        write_wav(path, recording(120 if name == "Ida" else 90))
    dialog = Dialog(tuple(Speech(name, text, seed=seed) for name, text, seed in LINES))
    studio = open_studio(backend, max_concurrency=1)
    job = studio.render(dialog, RenderOptions(voices=voices))
    finish(job)
    assert job.summarize().max_in_flight > SLOTS
    assert all(record.streamed_samples for record in job.records)


def test_a_render_from_the_command_line(tmp_path: Path, monkeypatch, capsys):
    use_one_core()
    monkeypatch.setenv("QWEN3_TTS_MODEL", str(small_checkpoint("base", groups=FEW_GROUPS)))
    monkeypatch.setenv("TTS_BATCH_SIZE", "4")
    script = "\n".join(f"{name}: Line {number}." for number in range(3) for name in CAST)
    (tmp_path / "scene.txt").write_text(script)
    argv = ["render", str(tmp_path / "scene.txt"), "-o", str(tmp_path / "scene.wav"), "--json"]
    argv += ["--backend", "qwen3", "--workspace", str(tmp_path / "workspace")]
    for name in CAST:
        write_wav(tmp_path / f"{name}.wav", recording(120 if name == "Ida" else 90))
        argv += ["--voice", f"{name}={tmp_path / name}.wav"]
    status = main([*argv, "--seed", "3"])
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (status, report["failed"], report["segments"]) == (0, [], 6)
    assert report["backend"] == "qwen3"
    assert report["max_in_flight"] == 6
