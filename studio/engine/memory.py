"""How much memory the studio uses, for telling what a model took and gave back."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from studio.backends.abilities import TellsMemory
from studio.backends.base import Backend


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory in use at one moment.

    Attributes:
        resident_bytes: Of this process and the processes it started.
        device_bytes: Of the model on its accelerator; None for a backend that doesn't tell.
    """

    resident_bytes: int
    device_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """Memory before and after a load or an unload."""

    before: Memory
    after: Memory

    def __str__(self) -> str:
        """For the log."""
        told = _megabytes(self.before.resident_bytes, self.after.resident_bytes)
        if self.before.device_bytes is None or self.after.device_bytes is None:
            return f"memory {told}"
        device = _megabytes(self.before.device_bytes, self.after.device_bytes)
        return f"memory {told}, on the device {device}"


def measure_memory(backend: Backend) -> Memory:
    """Look at this process, its workers and the backend's accelerator; takes milliseconds."""
    device_bytes = backend.memory_bytes() if isinstance(backend, TellsMemory) else None
    return Memory(resident_bytes(), device_bytes)


def resident_bytes() -> int:
    """Resident memory of this process and the processes it started."""
    studio = psutil.Process()
    total_bytes = int(studio.memory_info().rss)
    for worker in studio.children(recursive=True):
        try:
            total_bytes += int(worker.memory_info().rss)
        except psutil.NoSuchProcess:
            continue
    return total_bytes


def _megabytes(before_bytes: int, after_bytes: int) -> str:
    return f"{before_bytes / 1e6:.0f} -> {after_bytes / 1e6:.0f} MB"
