import math

from hypothesis import given
from hypothesis import strategies as st

from studio.backends.base import Priority
from studio.engine.backend_queue import SegmentScheduler


def take(scheduler: SegmentScheduler[str]) -> tuple[str, int] | None:
    taken = scheduler.take()
    return taken and taken[:2]


def drain(scheduler: SegmentScheduler[str]) -> list[tuple[str, int]]:
    taken = []
    while (one := take(scheduler)) is not None:
        taken.append(one)
    return taken


def test_segments_come_in_order_and_jobs_in_turn() -> None:
    scheduler = SegmentScheduler[str]()
    scheduler.add("a", [2, 0, 1])
    scheduler.add("b", [0])
    assert drain(scheduler) == [("a", 0), ("a", 1), ("a", 2), ("b", 0)]


def test_the_play_head_goes_first_and_what_lies_before_it_last() -> None:
    scheduler = SegmentScheduler[str]()
    scheduler.add("a", range(5))
    scheduler.focus("a", 3)
    assert [segment for _, segment in drain(scheduler)] == [3, 4, 0, 1, 2]


def test_the_job_that_is_listened_to_outranks_older_ones_from_its_play_head_on() -> None:
    scheduler = SegmentScheduler[str]()
    scheduler.add("old", range(2))
    scheduler.add("new", range(3))
    scheduler.focus("new", 1)
    assert drain(scheduler) == [("new", 1), ("new", 2), ("old", 0), ("old", 1), ("new", 0)]


def test_the_heaviest_go_first_while_nobody_listens() -> None:
    scheduler = SegmentScheduler[str]()
    scheduler.add("a", range(5), {0: 3, 1: 9, 2: 1, 3: 9, 4: 5})
    assert [take(scheduler) for _ in range(3)] == [("a", 1), ("a", 3), ("a", 4)]
    scheduler.focus("a", 1)
    assert drain(scheduler) == [("a", 2), ("a", 0)]


def test_a_job_that_is_listened_to_from_its_beginning_comes_in_order() -> None:
    scheduler = SegmentScheduler[str]()
    scheduler.focus("a", 0)
    scheduler.add("a", range(3), {0: 1, 1: 2, 2: 3})
    assert drain(scheduler) == [("a", 0), ("a", 1), ("a", 2)]


def test_jobs_that_come_together_are_ordered_by_weight_and_wait_for_no_later_round() -> None:
    scheduler = SegmentScheduler[str]()
    for job, weight in zip("abcdef", (1, 3, 2, 9, 7, 8), strict=True):
        scheduler.add(job, [0], {0: weight}, round_size=3)
    assert [job for job, _ in drain(scheduler)] == ["b", "c", "a", "d", "f", "e"]


def test_a_job_that_fills_a_round_is_not_mixed_with_those_that_came_before_it() -> None:
    scheduler = SegmentScheduler[str]()
    scheduler.add("small", [0], {0: 1}, round_size=3)
    scheduler.add("large", range(9), dict.fromkeys(range(9), 5), round_size=3)
    scheduler.add("late", [0], {0: 9}, round_size=3)
    assert [job for job, _ in drain(scheduler)] == ["small", *["large"] * 9, "late"]


def test_what_was_taken_keeps_its_rank_and_follows_the_play_head() -> None:
    scheduler = SegmentScheduler[str]()
    scheduler.add("a", range(4), {0: 3, 1: 1, 2: 9, 3: 2})
    scheduler.add("b", [0], {0: 99})
    taken = []
    while (one := scheduler.take()) is not None:
        taken.append(one)
    assert [priority() for _, _, priority in taken] == sorted(one[2]() for one in taken)
    scheduler.focus("a", 2)
    assert sorted((one[2](), one[:2]) for one in taken)[0] == (Priority(0), ("a", 2))
    assert {one[:2]: one[2]().ahead for one in taken} == {
        ("a", 0): math.inf,
        ("a", 1): math.inf,
        ("a", 2): 0,
        ("a", 3): 1,
        ("b", 0): math.inf,
    }


def test_a_discarded_job_gives_back_what_waited() -> None:
    scheduler = SegmentScheduler[str]()
    scheduler.add("a", range(3))
    scheduler.take()
    assert scheduler.discard("a") == [1, 2]
    assert scheduler.discard("a") == []
    assert scheduler.take() is None


@given(
    st.lists(st.sets(st.integers(0, 50)), max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 60)), max_size=10),
)
def test_every_segment_is_taken_once(jobs: list[set[int]], moves: list[tuple[int, int]]) -> None:
    scheduler = SegmentScheduler[str]()
    for number, segments in enumerate(jobs):
        scheduler.add(str(number), segments)
    expected = {(str(number), idx) for number, segments in enumerate(jobs) for idx in segments}
    assert len(scheduler) == len(expected)
    taken = []
    for job, play_head in moves:
        scheduler.focus(str(job), play_head)
        one = take(scheduler)
        if one is not None:
            taken.append(one)
    taken += drain(scheduler)
    assert len(taken) == len(expected)
    assert set(taken) == expected
