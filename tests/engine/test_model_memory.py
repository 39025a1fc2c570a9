from __future__ import annotations

from studio.backends.espeak.backend import DraftBackend
from studio.engine.model_manager import (
    MemoryChange,
    MemoryUsage,
    measure_memory,
    measure_resident_bytes,
)


class OnADevice(DraftBackend):
    def memory_bytes(self) -> int:
        return 4_000_000_000


def test_a_backend_with_a_device_tells_what_it_holds_there() -> None:
    assert measure_memory(OnADevice()).device_bytes == 4_000_000_000
    assert measure_memory(DraftBackend()).device_bytes is None


def test_processes_a_model_runs_in_are_counted_and_gone_after_the_unload() -> None:
    backend = DraftBackend(workers=1)
    before_bytes = measure_resident_bytes()
    backend.load(lambda _: None)
    with_worker_bytes = measure_resident_bytes()
    backend.unload()
    assert with_worker_bytes - before_bytes > 5e6
    assert measure_resident_bytes() - before_bytes < (with_worker_bytes - before_bytes) / 2


def test_a_change_reads_well_in_the_log() -> None:
    here = MemoryChange(MemoryUsage(100_000_000), MemoryUsage(900_000_000))
    assert str(here) == "memory 100 -> 900 MB"
    there = MemoryChange(MemoryUsage(1_000_000, 0), MemoryUsage(2_000_000, 4_000_000_000))
    assert str(there) == "memory 1 -> 2 MB, on the device 0 -> 4000 MB"
