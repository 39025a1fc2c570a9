from __future__ import annotations

from studio.backends.draft.backend import DraftBackend
from studio.engine.memory import Memory, MemoryChange, measure_memory, resident_bytes


class OnADevice(DraftBackend):
    def memory_bytes(self) -> int:
        return 4_000_000_000


def test_a_backend_with_a_device_tells_what_it_holds_there() -> None:
    assert measure_memory(OnADevice()).device_bytes == 4_000_000_000
    assert measure_memory(DraftBackend()).device_bytes is None


def test_processes_a_model_runs_in_are_counted_and_gone_after_the_unload() -> None:
    backend = DraftBackend(workers=1)
    before_bytes = resident_bytes()
    backend.load(lambda _: None)
    with_worker_bytes = resident_bytes()
    backend.unload()
    assert with_worker_bytes - before_bytes > 5e6
    assert resident_bytes() - before_bytes < (with_worker_bytes - before_bytes) / 2


def test_a_change_reads_well_in_the_log() -> None:
    here = MemoryChange(Memory(100_000_000), Memory(900_000_000))
    assert str(here) == "memory 100 -> 900 MB"
    there = MemoryChange(Memory(1_000_000, 0), Memory(2_000_000, 4_000_000_000))
    assert str(there) == "memory 1 -> 2 MB, on the device 0 -> 4000 MB"
