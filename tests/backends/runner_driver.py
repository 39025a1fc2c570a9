"""Driving a decoding core of any model, until its lines have stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch

from studio.backends.batching.model_runner import SlotModelRunner

LineT = TypeVar("LineT")


def run_out(core: SlotModelRunner, bucket: int, *, steps: int = 200) -> None:
    """Step until every line has stopped."""
    for _ in range(steps):
        if all(progress.stop for progress in core.progress(latest=True).values()):
            return
        core.step(bucket)
    raise AssertionError(f"lines go on after {steps} steps")


def codes_of(core: SlotModelRunner, slot: int) -> torch.Tensor:
    return core.codes(slot, 0, core.progress(latest=True)[slot].frames)


def decoded(
    core: SlotModelRunner, bucket: int, admissions: Sequence[Any]
) -> dict[int, torch.Tensor]:
    """Codes by slot of lines that are decoded together; leaves the slots free."""
    core.admit(admissions)
    run_out(core, bucket)
    codes = {line.slot: codes_of(core, line.slot) for line in admissions}
    for line in admissions:
        core.free(line.slot)
    return codes


def refilled_slots(
    core: SlotModelRunner,
    slots: int,
    lines: Iterable[LineT],
    admission: Callable[[int, LineT], Any],
) -> dict[LineT, torch.Tensor]:
    """Codes by line of lines that take slots as these become free, in mid-generation."""
    waiting, running, made = list(lines), {}, {}
    while waiting or running:
        for slot in range(slots):
            if slot not in running and waiting:
                running[slot] = waiting.pop(0)
                core.admit([admission(slot, running[slot])])
        core.step(core.buckets[-1])
        for slot, progress in core.progress(latest=True).items():
            if progress.stop:
                made[running.pop(slot)] = core.codes(slot, 0, progress.frames)
                core.free(slot)
    return made
