"""The batched backend on a CUDA device: lines together, streams, memory given back."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from contract import check_closed_early_then_speaks_on, check_samples
from qwen3_checkpoint import small_checkpoint
from qwen3_speakers import VOICES, collected, request_for

from studio.backends.base import Priority
from studio.backends.device import give_back
from studio.backends.options import BackendOptions, BatchOptions
from studio.backends.qwen3.backend import Qwen3Backend
from studio.backends.qwen3.qwen3_memory import STREAM_CHUNK_FRAMES
from studio.errors import StudioError
from studio.voices.speaker import Voice

pytestmark = [
    pytest.mark.models,
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

SAMPLES_PER_FRAME = 1_920


class OnCuda(Qwen3Backend):
    """Gives every speaker the same voice."""

    def condition(self, voice: Voice):
        return super().condition(VOICES["base"])


@pytest.fixture(scope="module")
def backend():
    options = BackendOptions(
        qwen3_model=str(small_checkpoint("base")),
        device="cuda",
        batch=BatchOptions(slots=8, positions=1_024),
    )
    backend = OnCuda(options)
    backend.load(lambda _progress: None)
    yield backend
    backend.unload()


@pytest.mark.parametrize(
    "check", [check_samples, check_closed_early_then_speaks_on], ids=lambda check: check.__name__
)
def test_contract(check, backend):
    check(backend)


def test_40_lines_through_8_slots_some_of_them_heard(backend):
    def speak(number: int) -> list:
        request = request_for(
            backend,
            VOICES["base"],
            f"Line {number}." + " And on." * (number % 5),
            seed=number,
            priority=lambda: Priority() if number % 10 else Priority(0),
        )
        return collected(backend.speak(request))

    with ThreadPoolExecutor(16) as pool:
        spoken = list(pool.map(speak, range(40)))
    assert all(sum(map(len, chunks)) % SAMPLES_PER_FRAME == 0 for chunks in spoken)
    assert all(len(chunks) == 1 for number, chunks in enumerate(spoken) if number % 10)
    assert all(len(spoken[number][0]) == SAMPLES_PER_FRAME for number in range(0, 40, 10))
    assert backend.health().faults == 0


def test_the_codec_replays_graphs_too(backend):
    codec = backend._runner._engine._codec._codec
    prepared = codec.captured
    assert prepared > len(STREAM_CHUNK_FRAMES)
    for priority in (Priority(), Priority(0)):
        asked = request_for(backend, VOICES["base"], priority=lambda priority=priority: priority)
        collected(backend.speak(asked))
    assert codec.captured == prepared


def test_first_audio_beside_full_slots_at_any_length_of_text(backend):
    """Lengths that were never read before; a library that planned for each would halt all lines."""
    stop: list[bool] = []

    def filling(number: int) -> None:
        long, until = "And on and on. " * 20, {"cancelled": lambda: bool(stop)}
        while not stop:
            asked = request_for(backend, VOICES["base"], long, seed=number, **until)
            with suppress(StudioError):
                collected(backend.speak(asked))

    def first_s(number: int) -> float:
        asked = request_for(
            backend, VOICES["base"], "So. " * (3 * number + 1), priority=lambda: Priority(0)
        )
        began_s = time.perf_counter()
        with closing(backend.speak(asked)) as chunks:
            next(chunks)
        return time.perf_counter() - began_s

    with ThreadPoolExecutor(7) as pool:
        for number in range(7):
            pool.submit(filling, number)
        try:
            waited_s = [first_s(number) for number in range(12)]
        finally:
            stop.append(True)
    usual_s = sorted(waited_s)[len(waited_s) // 2]
    print(f"first audio {1000 * usual_s:.0f} ms, at most {1000 * max(waited_s[1:]):.0f} ms")
    assert max(waited_s[1:]) < 5 * usual_s + 0.05


def test_too_little_memory_for_a_bucket_means_a_smaller_one_and_all_lines_whole():
    """A real allocator that refuses: the share of the card is held where it is."""
    options = BackendOptions(
        qwen3_model=str(small_checkpoint("base")),
        device="cuda",
        batch=BatchOptions(slots=8, positions=1_024),
    )
    backend = OnCuda(options)
    backend.load(lambda _progress: None)
    core = backend._runner._engine._core
    refused: list[int] = []
    run = core._graphs.run

    def lacking(shape) -> None:
        if shape.rows > 2:
            refused.append(shape.rows)
            give_back("cuda")
            total = torch.cuda.get_device_properties(0).total_memory
            torch.cuda.set_per_process_memory_fraction(torch.cuda.memory_reserved() / total)
            try:
                torch.empty(2**30, dtype=torch.uint8, device="cuda")
            finally:
                torch.cuda.set_per_process_memory_fraction(1.0)
        run(shape)

    core._graphs.run = lacking
    try:
        with ThreadPoolExecutor(8) as pool:
            spoken = list(
                pool.map(
                    lambda seed: collected(
                        backend.speak(request_for(backend, VOICES["base"], "No.", seed=seed))
                    ),
                    range(8),
                )
            )
        assert refused
        assert all(chunks for chunks in spoken)
        assert backend.health().faults == 0
    finally:
        backend.unload()


def test_unload_gives_the_memory_back_and_a_second_load_speaks_the_same():
    give_back("cuda")
    before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    backend = OnCuda(
        BackendOptions(
            qwen3_model=str(small_checkpoint("base")),
            device="cuda",
            batch=BatchOptions(slots=4, positions=1_024),
        )
    )
    spoken = []
    for _ in range(2):
        backend.load(lambda _progress: None)
        request = request_for(backend, VOICES["base"], params={"temperature": 0})
        spoken.append(np.concatenate(collected(backend.speak(request))))
        assert backend.health().faults == 0
        backend.unload()
        give_back("cuda")
        assert torch.cuda.memory_allocated() - before[0] < 20_000_000
        assert torch.cuda.memory_reserved() - before[1] < 200_000_000
    assert spoken[0].shape == spoken[1].shape
