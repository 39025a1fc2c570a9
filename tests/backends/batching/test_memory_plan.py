"""How many lines fit: chosen from free memory, or as set."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.backends.batching.line_runner import describe_plan
from studio.backends.batching.memory_plan import MemoryNeeds, MemoryPlan, plan_memory
from studio.backends.batching.runner_contract import BUCKETS
from studio.backends.options import BatchOptions
from studio.backends.qwen3.qwen3_memory import RELEASED_DIMS, plan_codec
from studio.errors import ModelUnavailable

GB = 10**9
ANY = BatchOptions()


def plan(
    free_bytes: int, device: str, batch: BatchOptions = ANY, *, kept_bytes: int = 0
) -> MemoryPlan:
    needs = MemoryNeeds(1_250, partial(plan_codec, device=device), kept_bytes)
    return plan_memory(RELEASED_DIMS, free_bytes, device, batch, needs)


@pytest.mark.parametrize(
    ("free_gb", "slots", "positions"),
    [(130, 64, 2048), (16, 32, 2048), (8, 16, 2048), (4.5, 8, 1024), (3.5, 4, 1024)],
)
def test_slots_of_the_usual_model_on_cards_of_some_sizes(free_gb, slots, positions):
    room = plan(round(free_gb * GB), "cuda")
    assert (room.layout.slots, room.layout.positions) == (slots, positions)


@pytest.mark.parametrize(("voices", "slots"), [(0, 16), (4, 16), (16, 8)])
def test_what_is_kept_of_voices_leaves_fewer_slots(voices, slots):
    kept = voices * RELEASED_DIMS.prefix_bytes(300, "cuda")
    room = plan(8 * GB, "cuda", kept_bytes=kept)
    assert (room.layout.slots, room.kept_bytes) == (slots, kept)
    assert kept == voices * 300 * 114_688


def test_doctor_tells_all_that_is_reckoned():
    room = plan(130 * GB, "cuda", kept_bytes=GB)
    assert describe_plan(room, "cuda") == (
        "64 lines at once on cuda, of 2,048 positions each; beside the weights 15.3 GB for the "
        "lines, 2.6 GB for their sound, 1.0 GB for what is kept of the voices"
    )


def test_what_is_set_is_kept():
    room = plan(100 * GB, "cuda", BatchOptions(slots=12, positions=700))
    assert (room.layout.slots, room.layout.positions, room.layout.max_frames) == (12, 704, 704)


def test_what_is_set_and_does_not_fit_is_told_with_the_remedy():
    with pytest.raises(ModelUnavailable, match="TTS_BATCH_SIZE"):
        plan(8 * GB, "cuda", BatchOptions(slots=64))


def test_next_smaller_choices():
    room, slots = plan(8 * GB, "cuda"), []
    each = room.slots_bytes // room.layout.slots
    while (room := room.smaller()) is not None:
        slots.append(room.layout.slots)
        assert room.slots_bytes == each * room.layout.slots
    assert slots == [8, 4, 2, 1]


@given(free_mb=st.integers(0, 200_000), device=st.sampled_from(["cuda", "mps", "cpu"]))
def test_whatever_is_chosen_fits(free_mb, device):
    try:
        room = plan(free_mb * 10**6, device)
    except ModelUnavailable:
        assert free_mb < 4_000
        return
    assert room.slots_bytes + room.sound_bytes + room.kept_bytes <= free_mb * 10**6 * 0.9
    assert room.layout.slots in BUCKETS
    assert room.layout.slots <= {"cuda": 64, "mps": 8, "cpu": 8}[device]
