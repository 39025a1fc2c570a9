"""Lines into slots: order, both ways of batching, cancels; no model needed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.backends.base import Priority
from studio.backends.batching.slot_scheduler import SlotScheduler

MAX_WAIT_S = 0.05


@dataclass(eq=False)
class Line:
    """A line that takes so many frames, the longest first; listened to where `ahead` is given."""

    name: str
    frames: int = 10
    ahead: int | None = None
    has_delivered: bool = False

    def priority(self) -> Priority:
        return Priority(order=(-self.frames,)) if self.ahead is None else Priority(self.ahead)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def made(clock: Clock, slots: int = 4, *, continuous: bool = True) -> SlotScheduler[Line]:
    return SlotScheduler(slots, continuous=continuous, max_wait_s=MAX_WAIT_S, clock=clock)


def submit(scheduler: SlotScheduler[Line], *lines: Line) -> None:
    for line in lines:
        scheduler.submit(line)


def admitted(scheduler: SlotScheduler[Line]) -> dict[int, str]:
    return {slot: line.name for slot, line in scheduler.admit()}


def test_the_longest_line_goes_first_when_nobody_listens(clock):
    scheduler = made(clock, 2)
    submit(scheduler, Line("a", 5), Line("b", 30), Line("c", 20), Line("d", 30))
    assert admitted(scheduler) == {0: "b", 1: "d"}
    scheduler.free(0)
    assert admitted(scheduler) == {0: "c"}


def test_the_play_head_goes_first_when_somebody_does(clock):
    scheduler = made(clock, 2)
    submit(scheduler, Line("long", 90), Line("after", 5, 1), Line("heard", 5, 0))
    assert admitted(scheduler) == {0: "heard"}  # its prompt is read by itself
    assert admitted(scheduler) == {1: "after"}


def test_where_somebody_listens_is_asked_anew_each_time(clock):
    scheduler, moved = made(clock, 1), Line("b", 5)
    submit(scheduler, Line("a", 50), moved, Line("c", 40))
    clock.now_s += MAX_WAIT_S
    assert admitted(scheduler) == {0: "a"}
    moved.ahead = 0
    scheduler.free(0)
    assert admitted(scheduler) == {0: "b"}


def test_an_idle_engine_waits_for_company_but_not_long(clock):
    scheduler = made(clock)
    assert scheduler.wait_s() is None
    submit(scheduler, Line("a"))
    assert scheduler.wait_s() == pytest.approx(MAX_WAIT_S)
    assert admitted(scheduler) == {}
    clock.now_s += 0.03
    submit(scheduler, Line("b"))  # does not begin the wait anew
    assert scheduler.wait_s() == pytest.approx(0.02)
    clock.now_s += 0.021
    assert admitted(scheduler) == {0: "a", 1: "b"}


@pytest.mark.parametrize("continuous", [True, False])
def test_a_full_batch_or_a_listener_waits_for_nothing(clock, continuous):
    full, heard = (made(clock, 2, continuous=continuous) for _ in range(2))
    submit(full, Line("a"), Line("b"))
    assert len(full.admit()) == 2
    submit(heard, Line("a", 5, 3))
    assert len(heard.admit()) == 1


def test_continuous_refills_while_others_run(clock):
    scheduler = made(clock, 2)
    submit(scheduler, Line("a", 9), Line("b", 8), Line("c", 7))
    assert admitted(scheduler) == {0: "a", 1: "b"}
    assert scheduler.wait_s() is None
    scheduler.free(0)
    assert scheduler.wait_s() == 0
    assert admitted(scheduler) == {0: "c"}


def test_batch_and_wait_lets_all_slots_run_empty(clock):
    scheduler = made(clock, 2, continuous=False)
    submit(scheduler, Line("a", 9), Line("b", 8), Line("c", 7))
    scheduler.admit()
    scheduler.free(0)
    assert scheduler.wait_s() is None
    assert admitted(scheduler) == {}
    scheduler.free(1)
    clock.now_s += MAX_WAIT_S
    assert admitted(scheduler) == {0: "c"}


def test_beside_a_line_that_is_listened_to_only_a_few_are_admitted(clock):
    scheduler = made(clock, 16)
    submit(scheduler, Line("heard", 5, 0), *(Line(f"{n}") for n in range(20)))
    assert admitted(scheduler) == {0: "heard"}
    assert len(scheduler.admit()) == 4
    assert len(scheduler.admit()) == 4
    scheduler.free(0)
    assert len(scheduler.admit()) == 8  # nobody listens any more


def test_who_begins_to_listen_waits_for_few_prompts(clock):
    scheduler = made(clock, 64)
    submit(scheduler, *(Line(f"{n}") for n in range(63)))
    clock.now_s += MAX_WAIT_S
    assert len(scheduler.admit()) == 16
    submit(scheduler, Line("heard", 5, 0))
    assert admitted(scheduler) == {16: "heard"}


def test_a_batch_that_waits_is_admitted_whole_whoever_listens(clock):
    scheduler = made(clock, 32, continuous=False)
    submit(scheduler, Line("heard", 5, 0), *(Line(f"{n}") for n in range(40)))
    admitted_lines = admitted(scheduler)
    assert len(admitted_lines) == 32
    assert admitted_lines[0] == "heard"


def test_a_line_at_the_play_head_gets_the_slot_that_made_least(clock):
    scheduler = made(clock, 3)
    heard = Line("heard", 5, ahead=1)
    submit(scheduler, heard, Line("far", 30), Line("near", 20))
    assert admitted(scheduler) == {0: "heard", 1: "far", 2: "near"}
    frames = [1, 9, 4].__getitem__
    assert scheduler.find_preemptible(frames) is None  # nobody waits
    submit(scheduler, Line("soon", ahead=1), Line("later"))
    assert scheduler.find_preemptible(frames) is None  # nobody waits for them
    now = Line("now", ahead=0)
    submit(scheduler, now)
    assert scheduler.find_preemptible(frames) == 2
    scheduler.preempt(2, Line("near again", 20))
    assert scheduler.find_preemptible(frames) is None  # one slot is enough
    assert admitted(scheduler) == {2: "now"}
    assert scheduler.waiting[0].name == "near again"


def test_a_line_that_somebody_has_listened_to_keeps_its_slot(clock):
    scheduler = made(clock, 2)
    played, other = Line("played", has_delivered=True), Line("other")
    submit(scheduler, played, other)
    admitted = dict(scheduler.admit())
    submit(scheduler, Line("now", ahead=0))
    slot = scheduler.find_preemptible(lambda slot: 1 if admitted[slot] is played else 50)
    assert slot is not None
    assert admitted[slot] is other
    other.has_delivered = True
    assert scheduler.find_preemptible(lambda _slot: 1) is None


def test_no_line_that_is_listened_to_is_given_up(clock):
    scheduler = made(clock, 2)
    submit(scheduler, Line("a", ahead=0), Line("b", ahead=1))
    assert [admitted(scheduler) for _ in range(2)] == [{0: "a"}, {1: "b"}]
    submit(scheduler, Line("c", ahead=0))
    assert scheduler.find_preemptible([5, 1].__getitem__) is None


def test_the_span_shrinks_as_high_slots_run_empty(clock):
    scheduler = made(clock)
    submit(scheduler, *(Line(f"{n}") for n in range(4)))
    scheduler.admit()
    assert scheduler.span == 4
    scheduler.free(3)
    scheduler.free(1)
    assert scheduler.span == 3
    submit(scheduler, Line("late"))
    assert admitted(scheduler) == {1: "late"}  # the lowest free one


def test_what_still_runs_is_brought_together_at_the_bottom(clock):
    scheduler = made(clock, 6)
    submit(scheduler, *(Line(f"{n}") for n in range(6)))
    scheduler.admit()
    for slot in (0, 2, 4):
        scheduler.free(slot)
    assert scheduler.compact(2) == []  # too few
    assert scheduler.compact(6) == []  # they are
    assert scheduler.compact(4) == [(5, 0)]
    assert {slot: line.name for slot, line in scheduler.running.items()} == {0: "5", 1: "1", 3: "3"}


def test_a_cancelled_line_leaves_its_slot_or_its_place(clock):
    scheduler = made(clock, 1)
    running, waiting, gone = Line("a", 9), Line("b", 8), Line("c")
    submit(scheduler, running, waiting)
    clock.now_s += MAX_WAIT_S
    scheduler.admit()
    assert scheduler.discard(waiting) is None
    assert scheduler.discard(running) == 0
    assert scheduler.discard(gone) is None
    assert (scheduler.running, scheduler.waiting) == ({}, ())


def test_fewer_slots_after_the_memory_did_not_suffice(clock):
    scheduler = made(clock)
    submit(scheduler, *(Line(name) for name in "abcdef"))
    scheduler.admit()
    scheduler.requeue(list(scheduler.running.values()))
    scheduler.limit(2)
    assert [line.name for line in scheduler.waiting] == list("abcdef")
    assert admitted(scheduler) == {0: "a", 1: "b"}


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(1, 40), st.one_of(st.none(), st.integers(0, 5))),
        st.tuples(st.just("cancel"), st.integers(0, 400), st.none()),
        st.tuples(st.just("wait"), st.just(0), st.none()),
        st.tuples(st.just("frame"), st.integers(1, 10), st.none()),
    ),
    max_size=120,
)


class Engine:
    """Runs lines for as many frames as they ask for."""

    def __init__(self, clock: Clock, *, continuous: bool) -> None:
        self.clock = clock
        self.scheduler = made(clock, 8, continuous=continuous)
        self.left: dict[int, int] = {}
        self.lines: list[Line] = []
        self.ended: list[Line] = []

    def submit(self, frames: int, ahead: int | None) -> None:
        line = Line(str(len(self.lines)), frames, ahead)
        self.lines.append(line)
        self.scheduler.submit(line)

    def cancel(self, number: int) -> None:
        if not self.lines:
            return
        line = self.lines[number % len(self.lines)]
        slot = self.scheduler.discard(line)
        if line not in self.ended:
            self.ended.append(line)
        if slot is not None:
            del self.left[slot]

    def frame(self) -> None:
        for slot, line in self.scheduler.admit():
            assert slot not in self.left, "a slot was given twice"
            self.left[slot] = line.frames
        assert set(self.left) == set(self.scheduler.running)
        for slot in list(self.left):
            self.left[slot] -= 1
            if not self.left[slot]:
                del self.left[slot]
                self.ended.append(self.scheduler.free(slot))


@settings(max_examples=150)
@given(events=EVENTS, continuous=st.booleans())
def test_every_line_ends_once_whatever_comes_between(events, continuous):
    engine = Engine(Clock(), continuous=continuous)
    for what, number, ahead in events:
        match what:
            case "submit":
                engine.submit(number, ahead)
            case "cancel":
                engine.cancel(number)
            case "wait":
                engine.clock.now_s += MAX_WAIT_S
            case _:
                for _ in range(number):
                    engine.frame()
    for _ in range(sum(line.frames for line in engine.lines) + 1):
        engine.clock.now_s += MAX_WAIT_S
        engine.frame()
    assert sorted(engine.ended, key=id) == sorted(engine.lines, key=id)
