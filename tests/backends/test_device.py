"""Which device a model gets, and that memory comes back from it."""

import asyncio
import subprocess
import sys
import threading

import pytest
from serving import ROOT

from studio.backends import device
from studio.backends.device import (
    LOST,
    card_lost,
    choose_device,
    give_back,
    memory_used_bytes,
    model_dtype,
    prepare,
    speech_faults,
)
from studio.errors import ModelUnavailable, OutOfMemory
from studio.server.routes.monitoring import _trouble

pytestmark = pytest.mark.models

torch = pytest.importorskip("torch", reason="the model packages are not installed")

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def test_the_best_there_is_or_the_one_asked_for():
    assert choose_device(None) in ("cuda", "mps", "cpu")
    assert choose_device("cpu") == "cpu"


def test_one_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ModelUnavailable, match=r"“abacus” isn't there; choose one of: .*cpu"):
        choose_device("abacus")


HELD_AND_LEFT = """
import torch
from studio.backends.device import give_back, memory_used_bytes
before_bytes = memory_used_bytes("cpu")
# Many small tensors: large ones are mapped alone and return without any help.
tensors = [torch.ones(16 * 1024) for _ in range(3000)]
held_bytes = memory_used_bytes("cpu")
del tensors
give_back("cpu")
print(held_bytes - before_bytes, memory_used_bytes("cpu") - before_bytes)
"""


def test_memory_of_a_cpu_model_comes_back():
    # In a process of its own: a shared one has a heap with gaps, and threads that let go of theirs.
    done = subprocess.run(
        [sys.executable, "-c", HELD_AND_LEFT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    held_bytes, left_bytes = map(int, done.stdout.split())
    assert held_bytes > 150e6
    assert left_bytes < 50e6


@pytest.fixture
def chosen():
    """What torch chooses on CUDA, brought back afterwards."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    before = cuda.cudnn_sdp_enabled(), cudnn.allow_tf32, cuda.matmul.allow_tf32
    yield lambda: (cuda.cudnn_sdp_enabled(), cudnn.allow_tf32, cuda.matmul.allow_tf32)
    cuda.enable_cudnn_sdp(before[0])
    cudnn.allow_tf32, cuda.matmul.allow_tf32 = before[1:]


@pytest.mark.parametrize("tf32", [False, True])
def test_on_a_card_attention_makes_no_plans_and_convolutions_round_by_choice(chosen, tf32: bool):
    before = chosen()
    prepare("cpu", tf32=not tf32)
    assert chosen() == before
    prepare("cuda", tf32=tf32)
    assert chosen() == (False, tf32, False)


@pytest.mark.parametrize(
    ("capability", "dtype"), [((7, 5), torch.float32), ((8, 0), torch.bfloat16)]
)
def test_a_card_that_only_imitates_bfloat16_gets_float32(monkeypatch, capability, dtype):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert model_dtype("cuda") is dtype
    assert model_dtype("cpu") is torch.float32


@pytest.mark.parametrize(("macos", "dtype"), [(13, torch.float32), (14, torch.bfloat16)])
def test_a_mac_that_knows_bfloat16_gets_it(monkeypatch, macos, dtype):
    monkeypatch.setattr(
        torch.backends.mps, "is_macos_or_newer", lambda major, _minor: major <= macos
    )
    assert model_dtype("mps") is dtype


@pytest.fixture
def lost(monkeypatch):
    """A card that answers nothing any more, where an error says so."""
    monkeypatch.setattr(device, "_lost", threading.Event())
    monkeypatch.setattr(device, "_answers", lambda: False)


def test_an_error_that_stays_is_told_and_nothing_is_loaded_after_it(lost):
    assert not card_lost(RuntimeError("shapes differ"))
    assert not card_lost(ValueError("CUDA error"))
    prepare("cuda")
    assert card_lost(RuntimeError("CUDA error: an illegal memory access was encountered"))
    assert card_lost()
    with pytest.raises(ModelUnavailable, match="Restart the studio"):
        prepare("cuda")
    assert asyncio.run(_trouble(None)) == LOST


def test_a_card_that_still_answers_is_not_lost(lost, monkeypatch):
    monkeypatch.setattr(device, "_answers", lambda: True)
    assert not card_lost(RuntimeError("CUDA error: invalid argument"))


def test_a_lost_card_gives_nothing_back_and_unloading_goes_on(lost, monkeypatch):
    def broken() -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", broken)
    give_back("cuda")
    assert card_lost()


def test_what_libraries_multiply_with_is_given_back_before_the_cache(monkeypatch):
    done: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", lambda: done.append("workspaces"))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: done.append("cache"))
    give_back("cuda")
    assert done == ["workspaces", "cache"]


@pytest.mark.gpu
@needs_cuda
def test_memory_of_a_cuda_model_comes_back():
    before_bytes = memory_used_bytes("cuda")
    reserved_before_bytes = torch.cuda.memory_reserved()
    tensors = [torch.ones(1024, 1024, device="cuda") for _ in range(64)]
    assert memory_used_bytes("cuda") - before_bytes >= 64 * 4 * 1024**2
    del tensors
    give_back("cuda")
    assert memory_used_bytes("cuda") == before_bytes
    assert torch.cuda.memory_reserved() <= reserved_before_bytes


def fill_the_device():
    held = []
    while True:
        held.append(torch.empty(2**34, dtype=torch.uint8, device="cuda"))


@pytest.mark.gpu
@needs_cuda
def test_a_full_cuda_device_is_told_and_left_clean():
    before_bytes = memory_used_bytes("cuda")
    with pytest.raises(OutOfMemory), speech_faults("Ada"):
        fill_the_device()
    assert memory_used_bytes("cuda") == before_bytes
