"""Whatever happens in the other slots, a line's codes are those it has alone."""

from __future__ import annotations

from functools import cache

import pytest

pytest.importorskip("qwen_tts", reason="the neural voices' packages are not installed")

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from runner_lines import GREEDY, LIVELY, Scripted, admission, decoded, lines_of, made_core

from studio.backends.qwen3.checkpoint import SamplingParams
from studio.backends.qwen3.talker import TalkerRunner

pytestmark = pytest.mark.models

SLOTS = 6
MAX_FRAMES = 8
LINES = lines_of("base")
WAYS = (GREEDY, LIVELY, SamplingParams(temperature=1.1, top_k=100, top_p=0.9))

Line = tuple[int, int, int]
"""Which text, which sampling, which seed."""

lines = st.tuples(st.integers(0, len(LINES) - 1), st.integers(0, len(WAYS) - 1), st.integers(0, 2))
slots = st.integers(0, SLOTS - 1)
actions = st.one_of(
    st.tuples(st.just("admit"), slots, lines),
    st.tuples(st.just("step"), st.integers(1, 3), st.none()),
    st.tuples(st.just("move"), slots, slots),
    st.tuples(st.just("free"), slots, st.none()),
)


@cache
def shared_core() -> TalkerRunner:
    return made_core(slots=SLOTS)


@cache
def alone(line: Line) -> torch.Tensor:
    return decoded(_other_core(), 1, [admitted(_other_core(), 0, line)])[0]


@cache
def _other_core() -> TalkerRunner:
    return made_core(slots=1)


def admitted(core: TalkerRunner, slot: int, line: Line):
    text, way, seed = line
    scripted: Scripted = LINES[text]
    return admission(core, slot, scripted, WAYS[way], seed=seed, max_frames=MAX_FRAMES)


class Schedule:
    """A core, and what should be in its slots."""

    def __init__(self) -> None:
        self.core = shared_core()
        self.core.reset()
        self.taken: dict[int, Line] = {}
        self.compared = 0

    def admit(self, slot: int, line: Line) -> None:
        if slot not in self.taken:
            self.core.admit([admitted(self.core, slot, line)])
            self.taken[slot] = line

    def free(self, slot: int, _: None) -> None:
        self.core.free(slot)
        self.taken.pop(slot, None)

    def move(self, source: int, target: int) -> None:
        if source in self.taken and target not in self.taken:
            self.core.move(source, target)
            self.taken[target] = self.taken.pop(source)

    def step(self, count: int, _: None) -> None:
        highest = max(self.taken, default=0) + 1
        for _step in range(count):
            self.core.step(next(size for size in self.core.buckets if size >= highest))

    def compare(self) -> None:
        """Codes so far are the beginning of those of the line alone."""
        told = self.core.progress(latest=True)
        assert told.keys() == self.taken.keys()
        for slot, progress in told.items():
            expected = alone(self.taken[slot])
            assert torch.equal(
                self.core.codes(slot, 0, progress.frames), expected[: progress.frames]
            )
            assert progress.stop is None or progress.frames == len(expected)
            self.compared += progress.frames


def followed(script: list[tuple[str, int, object]]) -> Schedule:
    schedule = Schedule()
    for name, *arguments in script:
        getattr(schedule, name)(*arguments)
        if name != "step":
            schedule.compare()
    schedule.step(MAX_FRAMES + 1, None)
    schedule.compare()
    assert all(told.stop for told in schedule.core.progress(latest=True).values())
    return schedule


def bounded(examples: int):
    return settings(max_examples=examples)


@given(st.lists(actions, min_size=4, max_size=16))
@bounded(10)
def test_any_schedule_gives_every_line_its_own_codes(script):
    followed(script)


@pytest.mark.campaign
@given(st.lists(actions, min_size=4, max_size=60))
@bounded(600)
def test_many_schedules_give_every_line_its_own_codes(script):
    followed(script)


def test_a_full_schedule_compares_something():
    script = [("admit", slot, (slot, slot % 3, 1)) for slot in range(SLOTS)]
    schedule = followed([*script, ("step", 2, None), ("free", 0, None), ("move", 5, 0)])
    assert schedule.compared > 40
