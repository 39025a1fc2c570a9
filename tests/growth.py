"""Whether work is linear, judged by how its time grows; a bound in seconds judges the machine."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

TIMES = 4
# Linear work takes 4 times as long on 4 times as much, quadratic work 16 times.
MOST_GROWTH = 8.0
_SMALL_ROUNDS = 2
_ATTEMPTS = 6


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Fail unless `work(size)` takes about four times as long as on a quarter of the size.

    Other work on the machine lengthens a measurement, for seconds or minutes. So what is compared
    was measured right after each other, the quarter at its best of before and after, until the
    growth is seen to be small or the attempts are used up.
    """
    work(size // TIMES)  # caches are filled, expressions compiled
    for _ in range(_ATTEMPTS):
        before_s = min(_spent_s(work, size // TIMES) for _ in range(_SMALL_ROUNDS))
        large_s = _spent_s(work, size)
        small_s = min(before_s, *(_spent_s(work, size // TIMES) for _ in range(_SMALL_ROUNDS)))
        if large_s < MOST_GROWTH * small_s:
            return
    raise AssertionError(f"{size:,} took {large_s:.3f} s, a quarter of it {small_s:.3f} s")


def count_calls(work: Callable[[], object]) -> int:
    """How many functions of Python and C some work calls, which is the same on any machine."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def _spent_s(work: Callable[[int], object], size: int) -> float:
    """This thread's processor time; collecting garbage would count what other tests left."""
    collects = gc.isenabled()
    gc.disable()
    try:
        start_s = time.thread_time()
        work(size)
        return time.thread_time() - start_s
    finally:
        if collects:
            gc.enable()
