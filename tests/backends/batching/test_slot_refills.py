"""What refilling slots saves: steps for the lines of the sample dialogs, on the real scheduler."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from benchmarks.qwen3_engines import build_timed_lines
from studio.backends.base import Priority
from studio.backends.batching.slot_scheduler import SlotScheduler

pytest.importorskip("torch", reason="the neural voices' packages are not installed")

pytestmark = pytest.mark.models


@dataclass(eq=False)
class Line:
    """A line with so many frames left, the longest of which goes first."""

    frames: int
    left: int
    has_delivered: bool = False

    def priority(self) -> Priority:
        return Priority(order=(-self.frames,))


def count_steps(n_lines: int, slots: int, *, continuous: bool) -> tuple[int, int]:
    """Steps until all lines are done, and the slots refilled while others ran."""
    scheduler: SlotScheduler[Line] = SlotScheduler(slots, continuous=continuous, max_wait_s=0.0)
    for line in build_timed_lines(n_lines):
        scheduler.submit(Line(line.frames, line.frames))
    steps = 0
    while scheduler.waiting or scheduler.running:
        scheduler.admit()
        steps += 1
        for slot, line in scheduler.running.items():
            line.left -= 1
            if not line.left:
                scheduler.free(slot)
    return steps, scheduler.refilled


@pytest.mark.parametrize(("n_lines", "slots"), [(24, 4), (24, 8), (200, 64)])
def test_refilled_slots_need_fewer_steps_than_whole_batches(n_lines: int, slots: int) -> None:
    steps, refilled = count_steps(n_lines, slots, continuous=True)
    waiting_steps, waiting_refilled = count_steps(n_lines, slots, continuous=False)
    print(f"{n_lines} lines, {slots} slots: {steps} steps, {waiting_steps} in whole batches")
    assert steps < waiting_steps
    assert waiting_refilled == 0 < refilled
