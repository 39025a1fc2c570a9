"""The device a model runs on: its choice, memory, exclusive use on Metal, and faults."""

from __future__ import annotations

import ctypes
import gc
import logging
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from studio.errors import ModelUnavailable, OutOfMemory
from studio.setup.commands import install_remedy

if TYPE_CHECKING:
    import torch


# One thread at a time on Apple's graphics: all models of the process share a turn.
#
# Metal's command queue in torch 2.11 takes one thread at a time; two that submit at once end the
# process (pytorch issue 197805). Whatever a backend does there, it does in its turn: reading a
# prompt, a step, conditioning, turning codes into sound, loading, giving memory back. On other
# devices a turn costs nothing. Tested on a CPU that is declared such a device, not on a Mac.

log = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")

ONE_AT_A_TIME = {"mps": threading.RLock()}
"""Guards each device that takes one thread at a time; reentrant, as models call each other."""


def turn(device: Any) -> AbstractContextManager[Any]:
    """A context manager for exclusive use of a device, a name or a `torch.device`."""
    return ONE_AT_A_TIME.get(str(device).partition(":")[0]) or nullcontext()


def in_turns(items: Iterable[ItemT], device: Any) -> Iterator[ItemT]:
    """Iterate over a generator that works on a device, with exclusive use for each item.

    Between two items other threads may use the device.
    """
    making = iter(items)
    try:
        while True:
            with turn(device):
                try:
                    item = next(making)
                except StopIteration:
                    return
            yield item
    finally:
        if isinstance(making, Generator):
            making.close()


def taking_turns(method: Callable[[Any], None]) -> Callable[[Any], None]:
    """Decorate a method to have exclusive use of the object's `_device`."""

    @wraps(method)
    def in_turn(itself: Any) -> None:
        with turn(itself._device):
            method(itself)

    return in_turn


DEVICES = ("cuda", "mps", "cpu")
"""Best first."""

CARD_TURN = threading.RLock()
"""Guards what CUDA bears from one thread at a time in the whole process: capturing a graph, which
marks torch's one source of chance and its allocator as its own; replaying one that draws from that
source; waiting for the whole device and giving its memory back, which break another's capture."""

LOST = (
    "The graphics card reported an error from which only a new start recovers. Restart the studio; "
    "what is finished is kept."
)

_FULL_PRECISION_FROM = 8  # Ampere; T4 and RTX 20 would imitate bfloat16
_BFLOAT16_FROM_MACOS = (14, 0)
_LOST_SIGNS = ("CUDA error", "device-side assert", "CUBLAS_STATUS", "CUDNN_STATUS")
_lost = threading.Event()  # set for good: a process has one context on a card


def choose_device(wanted: str | None) -> str:
    """The device to load a model on, None for the best there is; imports torch.

    Raises:
        ModelUnavailable: The wanted one isn't there, or stopped working.
    """
    present = _present()
    if wanted is None:
        return present[0]
    if wanted not in present:
        raise ModelUnavailable(
            f"The device “{wanted}” isn't there; choose one of: {', '.join(present)}."
        )
    return wanted


def likely_device(wanted: str | None) -> str:
    """A guess at a model's device; imports nothing, so it may be wrong without torch."""
    if wanted is not None:
        return wanted
    if "torch" in sys.modules:
        return _present()[0]
    return "cuda" if Path("/dev/nvidia0").exists() else "cpu"


def prepare(device: str, *, tf32: bool = False) -> None:
    """Set torch's CUDA options for the whole process; called before a model loads.

    With `tf32` what convolutions multiply is rounded to 10 bits, as torch does by itself: codec and
    vocoder are twice as fast. Matrices, which choose the codes, always keep all 24 bits.

    Raises:
        ModelUnavailable: The card stopped working.
    """
    if device != "cuda":
        return
    if _lost.is_set():
        raise ModelUnavailable(LOST)
    import torch

    # cuDNN's attention plans again for every length it meets, tens of milliseconds each.
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_tf32 = False


def model_dtype(device: str) -> torch.dtype:
    """The dtype of a language model: 16 bits where the device supports them natively.

    A frame reads all weights, so that half of them is half the time where memory decides, as it
    does on a Mac; nobody has tried it on one.
    """
    import torch

    match device:
        case "cuda":
            halves = torch.cuda.get_device_capability()[0] >= _FULL_PRECISION_FROM
        case "mps":
            halves = torch.backends.mps.is_macos_or_newer(*_BFLOAT16_FROM_MACOS)
        case _:
            halves = False
    return torch.bfloat16 if halves else torch.float32


def card_lost(error: BaseException | None = None) -> bool:
    """Whether CUDA reported an error that lasts until the process ends.

    Args:
        error: A new error to judge; running out of memory isn't lasting.
    """
    if error is not None and _is_loss(error):
        _lost.set()
    return _lost.is_set()


def memory_used_bytes(device: str) -> int:
    """Memory torch has allocated on an accelerator; on "cpu" this process's resident memory."""
    if device == "cpu":
        return int(psutil.Process().memory_info().rss)
    import torch

    on_mps = device == "mps"
    return int(torch.mps.current_allocated_memory() if on_mps else torch.cuda.memory_allocated())


def give_back(device: str) -> None:
    """Return freed memory to the device and to the system, for other processes.

    Of a card that is lost nothing comes back before the process ends.
    """
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and device == "cuda" and torch.cuda.is_available():
        _give_back_cuda(torch)
    if torch is not None and device == "mps" and torch.backends.mps.is_available():
        with turn(device):
            torch.mps.empty_cache()
    _trim_heap()


def _give_back_cuda(torch: Any) -> None:
    try:
        with CARD_TURN:
            # One for each thread and stream that multiplied, 32 MB each on Hopper, which outlives
            # both; those still needed are made again, and those of graphs stay in their pools.
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
    except RuntimeError as error:
        if not card_lost(error):
            raise
        log.error("the graphics card gives nothing back: %s", error)


def _is_loss(error: BaseException) -> bool:
    is_sign = any(sign in str(error) for sign in _LOST_SIGNS)
    return isinstance(error, RuntimeError) and is_sign and not _answers()


def _answers() -> bool:
    """Whether the card still works: after a lasting error it refuses everything."""
    torch = sys.modules.get("torch")  # a process without torch uses no card
    if torch is None or not torch.cuda.is_available():
        return True
    try:
        with CARD_TURN:
            torch.zeros(1, device="cuda").item()
    except torch.OutOfMemoryError:
        return True
    except (RuntimeError, AssertionError):
        return False
    return True


def _present() -> tuple[str, ...]:
    import torch

    found = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    return tuple(device for device in DEVICES if found[device])


def _trim_heap() -> None:
    """Make glibc return freed heap pages; else resident memory stays near its peak."""
    if not sys.platform.startswith("linux"):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
    if trim is not None:
        trim(0)


_MARGIN = 1.1
"""Memory for reading the files, as a factor of the weights."""


def check_room(title: str, weights_bytes: int, device: str) -> None:
    """Refuse a load that exceeds free memory: the system would kill the whole studio.

    A card reports by itself when it is full.

    Raises:
        ModelUnavailable: Too little is free; names what is needed and what is there.
    """
    if device == "cuda":
        return
    needed_bytes, free_bytes = weights_bytes * _MARGIN, psutil.virtual_memory().available
    if free_bytes < needed_bytes:
        raise ModelUnavailable(
            f"{title} needs about {needed_bytes / 1e9:.1f} GB of memory, and "
            f"{free_bytes / 1e9:.1f} GB are free. Close other programs or unload other models and "
            "load again, or choose a smaller voice engine."
        )


_MEMORY_SIGNS = (
    "out of memory",  # CUDA's and MPS's allocators
    "DefaultCPUAllocator",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)
_DEVICE_SIGNS = ("CUDA", "CUBLAS", "CUDNN", "cuDNN", "NVIDIA", "HIP error", "MPS", "Metal")
_FILE_FAULTS = (OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError, EOFError)


@contextmanager
def speech_faults(title: str) -> Iterator[None]:
    """Turn allocator errors within the block into `OutOfMemory`; pass on all others.

    What the failed call held is freed before the error is raised, so that the others in flight
    and a second try find room.

    Raises:
        OutOfMemory: The device's allocator had no room.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not _lacks_memory(error):
            raise
        # The frames of the failed call hold its tensors.
        traceback.clear_frames(error.__traceback__)
    else:
        return
    for device in DEVICES[:-1]:
        give_back(device)
    raise OutOfMemory(
        f"{title} ran out of memory on this line. Make the line shorter, close other programs "
        "that use the device, or set TTS_MAX_CONCURRENCY to a smaller number."
    )


@contextmanager
def load_faults(title: str, folder: Path) -> Iterator[None]:
    """Turn errors of a load into messages: memory, the device, the packages, or the files.

    Raises:
        ModelUnavailable: In place of what the libraries raised. What the failed load held is
            freed before.
    """
    try:
        yield
    except (*_FILE_FAULTS, MemoryError, ImportError, pickle.UnpicklingError) as error:
        log.warning("loading %s from %s failed", title, folder, exc_info=True)
        message = _load_message(title, folder, error)
        traceback.clear_frames(error.__traceback__)
    except Exception as error:
        if type(error).__name__ != "SafetensorError":  # its package may not be here
            raise
        message = _load_message(title, folder, error)
    else:
        return
    for device in DEVICES:
        give_back(device)
    raise ModelUnavailable(message)


def _load_message(title: str, folder: Path, error: Exception) -> str:
    reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    if _lacks_memory(error):
        return (
            f"There is not enough memory on the device for {title}. Unload other models, close "
            "other programs that use it, or choose a smaller model, and load again."
        )
    if card_lost(error):
        return LOST
    if isinstance(error, RuntimeError) and any(sign in str(error) for sign in _DEVICE_SIGNS):
        return (
            f"{title} can't run on this graphics card ({reason}). Restart the studio; if that "
            "doesn't help, bring the card's driver up to date, or choose another voice engine. "
            "The model's files are as they should be."
        )
    if isinstance(error, ImportError):
        return f"The packages of {title} don't fit together ({reason}). {install_remedy()}"
    return (
        f"{title} can't be loaded from {folder}: a file of it is broken, missing or another "
        f"model's ({reason}). Put the whole, unchanged model there, or delete the folder to "
        "download it again."
    )


def _lacks_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return any(sign in str(error) for sign in _MEMORY_SIGNS)
