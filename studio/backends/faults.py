"""Faults of the model libraries, turned into the studio's own errors."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from studio.backends.device import DEVICES, LOST, card_lost, give_back
from studio.errors import ModelUnavailable, OutOfMemory

log = logging.getLogger(__name__)

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
    """Turn a lack of memory within the block into `OutOfMemory`; all else passes as it is.

    What the failed call held is freed before the error is raised, so that the others in flight
    and a second try find room.

    Args:
        title: The backend's name for people.

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
    """Tell by what a load failed: too little memory, the device, the packages, or the files.

    Args:
        title: The backend's name for people.
        folder: Where the model's files are.

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
        return (
            f"The packages of {title} don't fit together ({reason}). Start python launch.py, which "
            "installs the versions that do."
        )
    return (
        f"{title} can't be loaded from {folder}: a file of it is broken, missing or another "
        f"model's ({reason}). Put the whole, unchanged model there, or delete the folder to "
        "download it again."
    )


def _lacks_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return any(sign in str(error) for sign in _MEMORY_SIGNS)
