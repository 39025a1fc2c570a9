"""Faults of the model libraries, turned into the studio's own errors."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from studio.backends.device import DEVICES, give_back
from studio.errors import OutOfMemory

_MEMORY_SIGNS = (
    "out of memory",  # CUDA's and MPS's allocators
    "DefaultCPUAllocator",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


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


def _lacks_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return any(sign in str(error) for sign in _MEMORY_SIGNS)
