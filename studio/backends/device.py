"""The device a model runs on: which one, how much memory it uses, and giving it back."""

from __future__ import annotations

import ctypes
import gc
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

import psutil

from studio.backends.metal import turn
from studio.errors import ModelUnavailable

if TYPE_CHECKING:
    import torch

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

_FULL_PRECISION_FROM = 8  # the compute capability from which cards multiply bfloat16 themselves
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
    told = any(sign in str(error) for sign in _LOST_SIGNS)
    return isinstance(error, RuntimeError) and told and not _answers()


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
