"""The batched backend on a CUDA device: lines together, streams, memory given back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from contract import check_closed_early_then_speaks_on, check_samples
from qwen3_checkpoint import small_checkpoint
from qwen3_speakers import VOICES, collected, request_for

from studio.backends.batched.backend import Qwen3BatchedBackend
from studio.backends.batched.memory import STREAM_FRAMES
from studio.backends.device import give_back
from studio.backends.options import BackendOptions, BatchOptions
from studio.speakers.speaker import Voice

pytestmark = [
    pytest.mark.models,
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

SAMPLES_PER_FRAME = 1_920


class OnCuda(Qwen3BatchedBackend):
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
            urgency=lambda: 0 if number % 10 == 0 else None,
        )
        return collected(backend.speak(request))

    with ThreadPoolExecutor(16) as pool:
        spoken = list(pool.map(speak, range(40)))
    assert all(sum(map(len, chunks)) % SAMPLES_PER_FRAME == 0 for chunks in spoken)
    assert all(len(chunks) == 1 for number, chunks in enumerate(spoken) if number % 10)
    assert all(len(spoken[number][0]) == SAMPLES_PER_FRAME for number in range(0, 40, 10))
    assert backend.health().faults == 0


def test_the_codec_replays_graphs_too(backend):
    codec = backend._engine._codec._codec
    prepared = codec.captured
    assert prepared > len(STREAM_FRAMES)
    for urgency in (None, 0):
        asked = request_for(backend, VOICES["base"], urgency=lambda urgency=urgency: urgency)
        collected(backend.speak(asked))
    assert codec.captured == prepared


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
