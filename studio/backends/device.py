"""The device a model runs on: which one, its memory, and one thread at a time on Metal."""

from __future__ import annotations

import ctypes
import gc
import logging
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil

from studio.errors import ModelUnavailable

if TYPE_CHECKING:
    import torch

# One thread at a time on Apple's graphics: all models of the process share a turn.
#
# Metal's command queue in torch 2.11 takes one thread at a time; two that submit at once end the
# process (pytorch issue 197805). Whatever a backend does there, it does in its turn: reading a
# prompt, a step, conditioning, turning codes into sound, loading, giving memory back. On other
# devices a turn costs nothing. Tested on a CPU that is declared such a device, not on a Mac.

ItemT = TypeVar("ItemT")

ONE_AT_A_TIME = {"mps": threading.RLock()}
"""Guards each device that takes one thread at a time; reentrant, as models call each other."""


def turn(device: Any) -> AbstractContextManager[Any]:
    """A context in which this thread alone uses a device.

    Args:
        device: A torch device or its name.
    """
    return ONE_AT_A_TIME.get(str(device).partition(":")[0]) or nullcontext()


def in_turns(items: Iterable[ItemT], device: Any) -> Iterator[ItemT]:
    """Items that a generator makes on a device, each made in a turn of its own.

    Between them, while whoever takes them does something else, others have the device.
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
    """Let a method of something that has a `_device` run in its turn there."""

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

log = logging.getLogger(__name__)

_FULL_PRECISION_FROM = 8  # Ampere; T4 and RTX 20 would imitate bfloat16
_LOST_SIGNS = ("CUDA error", "device-side assert", "CUBLAS_STATUS", "CUDNN_STATUS")
_lost = threading.Event()  # set for good: a process has one context on a card


def choose_device(wanted: str | None) -> str:
    """The device to load a model on; imports torch.

    Args:
        wanted: One of `DEVICES`; None for the best there is.

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
    """Where a model will probably be loaded; imports nothing, so it may be wrong without torch.

    Args:
        wanted: One of `DEVICES`; None for the best there is.
    """
    if wanted is not None:
        return wanted
    if "torch" in sys.modules:
        return _present()[0]
    return "cuda" if Path("/dev/nvidia0").exists() else "cpu"


def prepare(device: str, *, tf32: bool = False) -> None:
    """Set what torch would choose otherwise on CUDA, in the whole process; before a model loads.

    Args:
        device: One of `DEVICES`.
        tf32: Whether float32 is rounded to 10 bits before it is multiplied, which codec and
            vocoder are faster with, and differ by.

    Raises:
        ModelUnavailable: The card stopped working.
    """
    if device != "cuda":
        return
    if _lost.is_set():
        raise ModelUnavailable(LOST)
    import torch

    # cuDNN's attention plans anew for every length it meets, tens of milliseconds each.
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = tf32


def model_dtype(device: str) -> torch.dtype:
    """The precision of a language model: 16 bits where the device multiplies them by itself."""
    import torch

    if device != "cuda" or torch.cuda.get_device_capability()[0] < _FULL_PRECISION_FROM:
        return torch.float32
    return torch.bfloat16


def card_lost(error: BaseException | None = None) -> bool:
    """Whether CUDA reported an error that stays for the rest of the process.

    Args:
        error: One more to judge; memory that is short passes.
    """
    if error is not None and _is_loss(error):
        _lost.set()
    return _lost.is_set()


def memory_used_bytes(device: str) -> int:
    """What torch has allocated on an accelerator; on "cpu" this process's resident memory."""
    import torch

    if device == "cuda":
        return int(torch.cuda.memory_allocated())
    if device == "mps":
        return int(torch.mps.current_allocated_memory())
    return int(psutil.Process().memory_info().rss)


def give_back(device: str) -> None:
    """Return freed memory to the device and to the system, so that others can have it.

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
            # both; those still needed are made anew, and those of graphs stay in their pools.
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
    """Whether the card still does something: after an error that stays it refuses everything."""
    import torch

    if not torch.cuda.is_available():
        return True  # there is no card to lose
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
    """Let glibc hand freed heap pages back; without it resident memory stays near its peak."""
    if not sys.platform.startswith("linux"):
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
    if trim is not None:
        trim(0)


_MARGIN = 1.1
"""What reading the files takes beside the weights themselves, as a factor."""


def check_room(title: str, weights_bytes: int, device: str) -> None:
    """Refuse a load that the machine's memory can't hold: the system would end the whole studio.

    Args:
        title: The backend's name for people.
        weights_bytes: What the weights take on the device.
        device: Where to; a card of its own tells itself when it is full.

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
