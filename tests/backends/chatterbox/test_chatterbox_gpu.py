"""Chatterbox on CUDA: full size, random weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from chatterbox_checkpoint import BY_NAME, VARIANTS, checkpoint, request, voice_of, whole

from studio.backends.base import SpeechRequest
from studio.backends.chatterbox.backend import ChatterboxBackend
from studio.backends.options import BackendOptions
from studio.errors import Cancelled
from studio.voices.speaker import Voice

torch = pytest.importorskip("torch", reason="the model packages are not installed")
pytest.importorskip("chatterbox", reason="the model packages are not installed")
pytestmark = [
    pytest.mark.models,
    pytest.mark.gpu,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]

LEEWAY_BYTES = 64 * 1024 * 1024


def fresh(variant: str, folder: Path, *, amp: bool = False) -> ChatterboxBackend:
    options = BackendOptions(chatterbox_model=str(folder), device="cuda", amp_on_cuda=amp)
    return ChatterboxBackend(BY_NAME[variant], options)


# The first one: a model that others use would share the allocator's blocks.
@pytest.mark.parametrize("variant", VARIANTS)
def test_cycles_give_all_memory_back(variant: str, tmp_path_factory) -> None:
    folder = checkpoint(variant, tmp_path_factory, full_size=True)
    before_bytes = torch.cuda.memory_allocated()
    for _ in range(5):
        backend = fresh(variant, folder)
        backend.load(lambda _progress: None)
        assert backend.memory_bytes() > 1_000_000_000
        assert len(whole(backend.speak(request("Yes.", backend.condition(Voice("Ida"))))))
        backend.unload()
        assert torch.cuda.memory_allocated() - before_bytes < LEEWAY_BYTES
        assert torch.cuda.memory_reserved() - before_bytes < 4 * LEEWAY_BYTES


@pytest.fixture(scope="module", params=VARIANTS)
def backend(request, tmp_path_factory) -> Iterator[ChatterboxBackend]:
    folder = checkpoint(request.param, tmp_path_factory, full_size=True)
    backend = fresh(request.param, folder)
    backend.load(lambda _progress: None)
    yield backend
    backend.unload()


def lines(backend: ChatterboxBackend, count: int) -> list[SpeechRequest]:
    voices = [Voice("Ida"), *(voice_of("Tom", hz, backend.name) for hz in (100, 170, 240))]
    conditioning = [backend.condition(voice) for voice in voices]
    return [
        request(f"Line {idx}.", conditioning[idx % len(voices)], seed=idx) for idx in range(count)
    ]


def test_each_line_sounds_as_it_does_alone(backend: ChatterboxBackend) -> None:
    """Kernels are chosen by shape alone, so a line's sums come in the same order."""
    requests = lines(backend, 24)
    alone = [whole(backend.speak(line)) for line in requests]
    with ThreadPoolExecutor(8) as threads:
        at_once = list(threads.map(lambda line: whole(backend.speak(line)), requests))
    for one, other in zip(alone, at_once, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_a_cancelled_line_stops_at_the_next_step(backend: ChatterboxBackend) -> None:
    looks = itertools.count(1)
    line = request("Stop.", backend.condition(Voice("Ida")), cancelled=lambda: next(looks) >= 9)
    with pytest.raises(Cancelled):
        whole(backend.speak(line))
    assert next(looks) == 10


def test_a_recording_in_another_voice(backend: ChatterboxBackend) -> None:
    said = voice_of("Tom", 110).sample.clip
    made = backend.convert(said, backend.condition(Voice("Ida")), seed=1)
    assert made.duration_s == pytest.approx(said.duration_s, abs=0.04)


@pytest.mark.parametrize("variant", VARIANTS)
def test_mixed_precision_speaks(variant: str, tmp_path_factory) -> None:
    backend = fresh(variant, checkpoint(variant, tmp_path_factory, full_size=True), amp=True)
    backend.load(lambda _progress: None)
    assert len(whole(backend.speak(request("Yes.", backend.condition(Voice("Ida"))))))
    backend.unload()
