"""What the model libraries raise without memory becomes the studio's own error."""

import gc
import weakref

import pytest

from studio.backends.faults import speech_faults
from studio.errors import Cancelled, OutOfMemory


class OutOfMemoryError(RuntimeError):
    """Named like torch's, which needs a device to be raised for real."""


@pytest.mark.parametrize(
    "fault",
    [
        OutOfMemoryError("CUDA"),
        RuntimeError("MPS backend out of memory (MPS allocated: 5.00 GB)"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
)
def test_a_lack_of_memory_is_one_message_with_the_remedy(fault):
    told = pytest.raises(OutOfMemory, match=r"Ada ran out of memory.*TTS_MAX_CONCURRENCY")
    with told, speech_faults("Ada"):
        raise fault


@pytest.mark.parametrize(
    "fault", [RuntimeError("shapes differ"), ValueError("no"), Cancelled("stop")]
)
def test_everything_else_passes(fault):
    with pytest.raises(type(fault)) as caught, speech_faults("Ada"):
        raise fault
    assert caught.value is fault


def test_what_the_failed_call_held_is_free_when_the_error_is_raised():
    class Activations:
        pass

    held = []

    def forward():
        activations = Activations()
        held.append(weakref.ref(activations))
        raise RuntimeError("out of memory")

    with pytest.raises(OutOfMemory) as caught, speech_faults("Ada"):
        forward()
    assert held[0]() is None, caught


def test_it_holds_around_a_generators_chunks():
    def chunks():
        with speech_faults("Ada"):
            yield 1
            raise MemoryError

    spoken = chunks()
    assert next(spoken) == 1
    with pytest.raises(OutOfMemory):
        next(spoken)
    closed = chunks()
    next(closed)
    closed.close()
    gc.collect()


@pytest.mark.models
def test_a_real_cpu_allocator_that_has_no_room():
    torch = pytest.importorskip("torch", reason="the model packages are not installed")
    with pytest.raises(OutOfMemory), speech_faults("Ada"):
        torch.empty(2**60, dtype=torch.uint8)
