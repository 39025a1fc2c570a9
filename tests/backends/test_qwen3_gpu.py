"""Qwen3-TTS on CUDA with the 0.6B model's dimensions and random weights."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faster_qwen3_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_checkpoint import build_checkpoint
from qwen3_speakers import collected, request_for, speaker

from studio.backends.device import memory_used_bytes
from studio.backends.options import BackendOptions
from studio.backends.qwen3.backend import Qwen3Backend

pytestmark = [
    pytest.mark.models,
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; there is none"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_checkpoint(tmp_path_factory.mktemp("full") / "base", "base", full_size=True)


@pytest.fixture(scope="module")
def backend(folder: Path):
    backend = Qwen3Backend(BackendOptions(qwen3_model=str(folder), device="cuda"))
    backend.load(lambda _progress: None)
    yield backend
    backend.unload()


def spoken(backend: Qwen3Backend, seed: int, **fields: object) -> np.ndarray:
    """A short line; random weights may not end it, so what was made before the bound counts."""
    request = request_for(backend, speaker(), f"No. {seed}.", seed=seed, **fields)
    return np.concatenate(collected(backend.speak(request)))


def test_it_speaks(backend):
    samples = spoken(backend, 1)
    assert len(samples) % 1_920 == 0
    assert np.isfinite(samples).all()
    assert np.abs(samples).max() <= 1


def test_lines_in_flight_are_as_if_alone(backend):
    alone = [spoken(backend, seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda seed: spoken(backend, seed), range(6)))
    assert all(map(np.array_equal, alone, together))


def test_greedy_lines_draw_nothing(backend):
    one, other = (spoken(backend, 1, params={"temperature": 0}, language="en") for _ in range(2))
    assert np.array_equal(one, other)


def test_a_closed_line_frees_the_graphs_for_the_next(backend):
    chunks = backend.speak(request_for(backend, speaker()))
    next(chunks)
    chunks.close()
    assert len(spoken(backend, 2))


def test_memory_is_given_back(folder: Path):
    before = memory_used_bytes("cuda")
    backend = Qwen3Backend(BackendOptions(qwen3_model=str(folder), device="cuda"))
    for _ in range(3):
        backend.load(lambda _progress: None)
        spoken(backend, 1)
        assert backend.memory_bytes() > 1e9
        backend.unload()
        assert memory_used_bytes("cuda") - before < 50e6
