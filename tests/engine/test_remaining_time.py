"""How long a render still takes: honest from the tenth line on."""

from __future__ import annotations

import heapq
import random
import statistics

import pytest
from scenes import OpenStudio, dialog_of, finish

from studio.engine.remaining_time import RemainingTime


def simulate(n_lines: int, slots: int, *, noise: float, seed: int) -> tuple[float, list[tuple]]:
    """Run lines through slots on a clock of its own; the whole time, and (time, estimate)."""
    draw = random.Random(seed)
    weights = {idx: draw.uniform(15, 200) for idx in range(n_lines)}
    remaining = RemainingTime(weights)
    running: list[tuple[float, int]] = []
    waiting = list(weights)
    now_s, seen = 0.0, []
    while running or waiting:
        while waiting and len(running) < slots:
            idx = waiting.pop(0)
            remaining.begin(idx, now_s)
            took_s = weights[idx] / 14 * draw.uniform(1 - noise, 1 + noise)
            heapq.heappush(running, (now_s + took_s, idx))
        now_s, idx = heapq.heappop(running)
        remaining.end(idx, now_s)
        seen.append((now_s, remaining.estimate_s(now_s)))
    return now_s, seen


@pytest.mark.parametrize("slots", [1, 3, 8])
@pytest.mark.parametrize("n_lines", [40, 200])
def test_at_half_time_it_is_within_a_quarter(n_lines: int, slots: int) -> None:
    off = []
    for seed in range(20):
        whole_s, seen = simulate(n_lines, slots, noise=0.3, seed=seed)
        at_s, estimate_s = min(seen, key=lambda one: abs(one[0] - whole_s / 2))
        off.append(abs(estimate_s - (whole_s - at_s)) / (whole_s - at_s))
    assert statistics.median(off) < 0.12
    assert sorted(off)[-2] < 0.25, "one in twenty may end with an unlucky long line"


def test_it_says_nothing_before_the_tenth_line_and_nothing_is_left_at_the_end() -> None:
    _, seen = simulate(40, 3, noise=0.3, seed=1)
    assert [estimate for _, estimate in seen[:9]] == [None] * 9
    assert all(estimate is not None for _, estimate in seen[9:])
    assert seen[-1][1] == 0


def test_a_line_that_takes_long_is_never_over_before_it_ends() -> None:
    remaining = RemainingTime(dict.fromkeys(range(11), 100.0))
    for idx in range(10):
        remaining.begin(idx, idx)
        remaining.end(idx, idx + 1)
    remaining.begin(10, 10)
    assert remaining.estimate_s(10) == pytest.approx(1)
    assert remaining.estimate_s(10.5) == pytest.approx(0.5)
    assert 0 < remaining.estimate_s(60) < 0.5


def test_lines_that_never_began_leave_with_their_weight() -> None:
    remaining = RemainingTime(dict.fromkeys(range(30), 100.0))
    for idx in range(10):
        remaining.begin(idx, idx)
        remaining.end(idx, idx + 1)
    for idx in range(10, 29):  # cancelled
        remaining.end(idx, 10)
    assert remaining.estimate_s(10) == pytest.approx(1)


def test_a_job_knows_how_long_it_still_takes(open_studio: OpenStudio) -> None:
    job = open_studio().render(dialog_of(30))
    assert job.estimate_remaining_s() is None
    finish(job)
    assert job.estimate_remaining_s() == 0


@pytest.mark.campaign
def test_the_draft_voice_is_within_a_quarter_at_half_time(open_studio: OpenStudio) -> None:
    """The median of five renders, on a machine that does little else."""
    studio, off = open_studio(), []
    for _ in range(5):
        job = studio.render(dialog_of(300))
        seen = []
        for event in job.events.follow():
            if event.state == "saved":
                seen.append((event.at_s, job.estimate_remaining_s()))
        whole_s = job.summarize().wall_s
        at_s, estimate_s = min(seen, key=lambda one: abs(one[0] - whole_s / 2))
        assert estimate_s is not None
        off.append(abs(estimate_s - (whole_s - at_s)) / (whole_s - at_s))
    print(f"\noff by {[f'{one:.0%}' for one in off]} at half time")
    assert statistics.median(off) < 0.25
