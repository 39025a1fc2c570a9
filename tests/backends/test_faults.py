"""What the model libraries raise without memory becomes the studio's own error."""

import gc
import pickle
import weakref
from pathlib import Path

import pytest

from studio.backends.device import load_faults, speech_faults
from studio.errors import Cancelled, ModelUnavailable, OutOfMemory


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


MEMORY, DEVICE, FILE = "not enough memory", "can't run on this graphics card", "a file of it is"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), MEMORY),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), MEMORY),
        (RuntimeError("MPS backend out of memory (MPS allocated: 5.00 GB)"), MEMORY),
        (MemoryError(), MEMORY),
        (RuntimeError("CUDA error: no kernel image is available for execution"), DEVICE),
        (RuntimeError("The NVIDIA driver on your system is too old"), DEVICE),
        (RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"), DEVICE),
        (RuntimeError("MPS device operation failed"), DEVICE),
        (RuntimeError("Error(s) in loading state_dict for T3: size mismatch"), FILE),
        (RuntimeError("PytorchStreamReader failed reading zip archive"), FILE),
        (FileNotFoundError("ve.pt"), FILE),
        (KeyError("model"), FILE),
        (pickle.UnpicklingError("invalid load key"), FILE),
        (ImportError("cannot import name 'MimiConfig'"), "python launch.py"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_load_that_fails_says_by_what(fault, told):
    """A full or unfit card costs nobody a second download of gigabytes."""
    with (
        pytest.raises(ModelUnavailable, match=told) as caught,
        load_faults("Ada", Path("/models/ada")),
    ):
        raise fault
    assert ("delete the folder" in str(caught.value)) is (told == FILE)
    assert "Ada" in str(caught.value)


def test_a_broken_safetensors_file_is_a_file():
    safetensors = pytest.importorskip("safetensors", reason="the model packages are not installed")
    with (
        pytest.raises(ModelUnavailable, match="a file of it is"),
        load_faults("Ada", Path("/models/ada")),
    ):
        raise safetensors.SafetensorError("header too large")


def test_what_a_failed_load_held_is_free_when_the_error_is_raised(monkeypatch):
    class Weights:
        pass

    held, given_back = [], []
    monkeypatch.setattr("studio.backends.device.give_back", given_back.append)

    def load():
        weights = Weights()
        held.append(weakref.ref(weights))
        raise RuntimeError("CUDA out of memory")

    with pytest.raises(ModelUnavailable) as caught, load_faults("Ada", Path("/models/ada")):
        load()
    assert held[0]() is None, caught
    assert given_back == ["cuda", "mps", "cpu"]


@pytest.mark.parametrize(
    "fault", [Cancelled("stop"), ModelUnavailable("its own"), ZeroDivisionError()]
)
def test_a_load_lets_the_studios_own_errors_and_mistakes_pass(fault):
    with pytest.raises(type(fault)) as caught, load_faults("Ada", Path("/models/ada")):
        raise fault
    assert caught.value is fault
