"""The device a model runs on: which one, how much memory it uses, and giving it back."""

from __future__ import annotations

import ctypes
import gc
import sys

import psutil

from studio.errors import ModelUnavailable

DEVICES = ("cuda", "mps", "cpu")
"""Best first."""


def choose_device(wanted: str | None) -> str:
    """The device to load a model on; imports torch.

    Args:
        wanted: One of `DEVICES`; None for the best there is.

    Raises:
        ModelUnavailable: The wanted one isn't there.
    """
    present = _present()
    if wanted is None:
        return present[0]
    if wanted not in present:
        raise ModelUnavailable(
            f"The device “{wanted}” isn't there; choose one of: {', '.join(present)}."
        )
    return wanted


def memory_used_bytes(device: str) -> int:
    """What torch has allocated on an accelerator; on "cpu" this process's resident memory."""
    import torch

    if device == "cuda":
        return int(torch.cuda.memory_allocated())
    if device == "mps":
        return int(torch.mps.current_allocated_memory())
    return int(psutil.Process().memory_info().rss)


def give_back(device: str) -> None:
    """Return freed memory to the device and to the system, so that others can have it."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and device == "cuda" and torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch is not None and device == "mps" and torch.backends.mps.is_available():
        torch.mps.empty_cache()
    _trim_heap()


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
