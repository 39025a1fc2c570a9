from hypothesis import given
from hypothesis import strategies as st

from studio.engine.backend_queue import SegmentScheduler


def drain(scheduler: SegmentScheduler) -> list[tuple[str, int]]:
    taken = []
    while (one := scheduler.take()) is not None:
        taken.append(one)
    return taken


def test_segments_come_in_order_and_jobs_in_turn() -> None:
    scheduler = SegmentScheduler()
    scheduler.add("a", [2, 0, 1])
    scheduler.add("b", [0])
    assert drain(scheduler) == [("a", 0), ("a", 1), ("a", 2), ("b", 0)]


def test_the_play_head_goes_first_and_what_lies_before_it_last() -> None:
    scheduler = SegmentScheduler()
    scheduler.add("a", range(5))
    scheduler.focus("a", 3)
    assert [segment for _, segment in drain(scheduler)] == [3, 4, 0, 1, 2]


def test_the_job_that_is_listened_to_outranks_older_ones_from_its_play_head_on() -> None:
    scheduler = SegmentScheduler()
    scheduler.add("old", range(2))
    scheduler.add("new", range(3))
    scheduler.focus("new", 1)
    assert drain(scheduler) == [("new", 1), ("new", 2), ("old", 0), ("old", 1), ("new", 0)]


def test_the_heaviest_go_first_while_nobody_listens() -> None:
    scheduler = SegmentScheduler()
    scheduler.add("a", range(5), {0: 3, 1: 9, 2: 1, 3: 9, 4: 5})
    assert [scheduler.take() for _ in range(3)] == [("a", 1), ("a", 3), ("a", 4)]
    scheduler.focus("a", 1)
    assert drain(scheduler) == [("a", 2), ("a", 0)]


def test_a_job_that_is_listened_to_from_its_beginning_comes_in_order() -> None:
    scheduler = SegmentScheduler()
    scheduler.focus("a", 0)
    scheduler.add("a", range(3), {0: 1, 1: 2, 2: 3})
    assert drain(scheduler) == [("a", 0), ("a", 1), ("a", 2)]


def test_a_discarded_job_gives_back_what_waited() -> None:
    scheduler = SegmentScheduler()
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
    scheduler = SegmentScheduler()
    for number, segments in enumerate(jobs):
        scheduler.add(str(number), segments)
    expected = {(str(number), idx) for number, segments in enumerate(jobs) for idx in segments}
    assert len(scheduler) == len(expected)
    taken = []
    for job, play_head in moves:
        scheduler.focus(str(job), play_head)
        one = scheduler.take()
        if one is not None:
            taken.append(one)
    taken += drain(scheduler)
    assert len(taken) == len(expected)
    assert set(taken) == expected
