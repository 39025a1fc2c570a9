"""Qwen3-TTS on CUDA with the 0.6B model's dimensions and random weights."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("faster_qwen3_tts", reason="the neural voices' packages are not installed")

import torch
from qwen3_checkpoint import build_checkpoint
from qwen3_reference import CASES, spoken_twice
from qwen3_speakers import LINE, collected, request_for, speaker
from qwen_tts import Qwen3TTSModel

from studio.backends.batching.cuda_graphs import CudaGraphRunner
from studio.backends.device import memory_used_bytes, prepare
from studio.backends.options import BackendOptions
from studio.backends.qwen3.backend import Qwen3Backend
from studio.backends.qwen3.codec import CodecStream
from studio.backends.qwen3.qwen3_model import load_model

pytestmark = [
    pytest.mark.models,
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; there is none"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_checkpoint(tmp_path_factory.mktemp("full") / "base", "base", full_size=True)


def test_memory_is_given_back(folder: Path):
    before = memory_used_bytes("cuda")
    backend = Qwen3Backend(BackendOptions(qwen3_model=str(folder), device="cuda"))
    for _ in range(5):
        backend.load(lambda _progress: None)
        spoken(backend, 1)
        assert backend.memory_bytes() > 1e9
        backend.unload()
        assert memory_used_bytes("cuda") - before < 50e6


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


def test_24_lines_of_4_speakers_8_in_flight_are_whole_and_one_alone_is_the_same_again(backend):
    """In company a card adds up in another order, so that codes of 16 bits part after a while."""
    voices = [speaker(pitch_hz=pitch_hz) for pitch_hz in (90, 120, 150, 190)]

    def line(number: int) -> np.ndarray:
        request = request_for(backend, voices[number % 4], f"No. {number}.", seed=number)
        return np.concatenate(collected(backend.speak(request)))

    with ThreadPoolExecutor(8) as pool:
        for samples in pool.map(line, range(24)):
            assert len(samples)
            assert len(samples) % 1_920 == 0
            assert np.isfinite(samples).all()
    assert all(np.array_equal(line(number), line(number)) for number in range(4))


@pytest.fixture(scope="module", params=["base", "custom_voice", "voice_design"])
def both(request, folder: Path, tmp_path_factory: pytest.TempPathFactory):
    """A kind of checkpoint in the package and in ours, written and loaded once for its cases."""
    kind = request.param
    prepare("cuda")
    if kind != "base":
        folder = build_checkpoint(tmp_path_factory.mktemp("full") / kind, kind, full_size=True)
    package = Qwen3TTSModel.from_pretrained(
        str(folder), dtype=torch.float32, device_map="cuda", use_safetensors=True
    )
    yield kind, package, load_model(folder, "cuda", torch.float32)
    if kind != "base":
        shutil.rmtree(folder)


@pytest.mark.parametrize("case", CASES)
def test_greedy_codes_are_those_of_the_package(case: str, both):
    """In float32, where two kernels' sums differ too little to turn the order of two codes."""
    kind, package, ours = both
    if CASES[case][0] != kind:
        pytest.skip(f"a case of {CASES[case][0]}")
    pair = spoken_twice(case, LINE, package, ours)
    assert torch.equal(pair.our_codes.cpu(), pair.their_codes.cpu())


@pytest.mark.parametrize("chunk_frames", [3, 16, 75])
def test_joined_chunks_equal_the_whole(backend, chunk_frames: int):
    decoder = backend._require_model()._codec.model.decoder
    codes = torch.randint(0, 2_048, (180, 16), device="cuda")
    with torch.inference_mode():
        whole = decoder(codes.T[None])[0, 0].cpu().numpy()
    stream = CodecStream(decoder)
    joined = np.concatenate([stream.decode(chunk) for chunk in codes.split(chunk_frames)])
    assert np.abs(joined - whole).max() < 1e-4


def test_greedy_lines_draw_nothing(backend):
    one, other = (spoken(backend, 1, params={"temperature": 0}, language="en") for _ in range(2))
    assert np.array_equal(one, other)


def test_a_closed_line_frees_the_graphs_for_the_next(backend):
    chunks = backend.speak(request_for(backend, speaker()))
    next(chunks)
    chunks.close()
    assert len(spoken(backend, 2))


def test_lines_go_on_while_another_model_captures_its_graphs(backend):
    """Torch has one source of chance for all captures, from which replayed lines draw."""
    alone = [spoken(backend, seed) for seed in range(6)]
    begun = threading.Event()
    number = torch.zeros(1, device="cuda")

    def captured() -> int:
        made = 0
        for _ in range(20):
            replays = CudaGraphRunner(lambda shape: number.add_(shape), torch.device("cuda", 0))
            for shape in range(8):
                replays.prepare(shape)
                begun.set()
            made += replays.captured
            replays.close()
        return made

    with ThreadPoolExecutor(1) as pool:
        capturing = pool.submit(captured)
        assert begun.wait(120)
        beside = [spoken(backend, seed) for seed in range(6)]
        assert capturing.result() == 20 * 8
    assert all(map(np.array_equal, alone, beside))
