"""Which device a model gets, and that memory comes back from it."""

import pytest

from studio.backends.device import choose_device, give_back, memory_used_bytes
from studio.backends.faults import speech_faults
from studio.errors import ModelUnavailable, OutOfMemory

pytestmark = pytest.mark.models

torch = pytest.importorskip("torch", reason="the model packages are not installed")

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


def test_the_best_there_is_or_the_one_asked_for():
    assert choose_device(None) in ("cuda", "mps", "cpu")
    assert choose_device("cpu") == "cpu"


def test_one_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ModelUnavailable, match=r"“abacus” isn't there; choose one of: .*cpu"):
        choose_device("abacus")


def test_memory_of_a_cpu_model_comes_back():
    give_back("cpu")  # what tests before this one left on the heap would be taken first
    before_bytes = memory_used_bytes("cpu")
    # Many small tensors: large ones are mapped alone and return without any help.
    tensors = [torch.ones(16 * 1024) for _ in range(3000)]
    held_bytes = memory_used_bytes("cpu")
    assert held_bytes - before_bytes > 150e6
    del tensors
    give_back("cpu")
    assert memory_used_bytes("cpu") - before_bytes < 50e6


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
