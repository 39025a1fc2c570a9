"""What was said in hours is compared with its text in time and memory that grow with its length."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable

import pytest
from growth import assert_linear

from studio.hearing.recognition import RecognisedWord, Transcript
from studio.hearing.transcript_diff import MarkKind, WordMark, compare_transcript

_SYLLABLES = ("ba", "ke", "lor", "mi", "tun", "sa", "vel", "dro", "pin", "ost")
TWO_HOURS = 20_000  # words


def make_words(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices(_SYLLABLES, k=3)) for _ in range(count)]


def compare(words: list[str], said: list[str]) -> tuple[WordMark, ...]:
    transcript = Transcript(" ".join(said), tuple(RecognisedWord(word) for word in said))
    return compare_transcript(" ".join(words), transcript, language="en")


def compare_with_faults(count: int) -> tuple[WordMark, ...]:
    """Of each hundred words one is left out, one said twice, one exchanged."""
    words, said = make_words(count, 1), list[str]()
    for at, word in enumerate(words):
        if at % 100 != 40:
            said.append("wagon" if at % 100 == 70 else word)
        if at % 100 == 20:
            said.append(word)
    return compare(words, said)


def compare_unlike(count: int) -> tuple[WordMark, ...]:
    return compare(make_words(count, 1), make_words(count, 2))


def compare_babble(count: int) -> tuple[WordMark, ...]:
    """A short text, and hours of something else."""
    return compare(make_words(12, 1), make_words(count, 2))


def compare_equal(count: int) -> tuple[WordMark, ...]:
    words = make_words(count, 1)
    return compare(words, words)


KINDS = [compare_with_faults, compare_unlike, compare_babble]


@pytest.mark.parametrize(("work", "count"), [(compare_with_faults, 800), (compare_babble, 1_600)])
def test_time_grows_with_the_length(work: Callable[[int], object], count: int) -> None:
    assert_linear(work, count)


@pytest.mark.parametrize(
    ("work", "count", "most_bytes"),
    [
        (compare_with_faults, 800, 2_500_000),
        (compare_unlike, 400, 8_000_000),
        (compare_babble, 1_600, 4_000_000),
    ],
)
def test_memory_is_that_of_a_part(
    work: Callable[[int], object], count: int, most_bytes: int
) -> None:
    """A table of both sides as a whole has two to six times as many."""
    assert measure_bytes(work, count) < most_bytes


def test_words_that_are_said_cost_little() -> None:
    """Where both sides agree there is nothing to search, unlike where nothing fits."""
    equal_s = min(measure_s(compare_equal, 200) for _ in range(5))
    assert 5 * equal_s < measure_s(compare_unlike, 200)


def measure_s(work: Callable[[int], object], count: int) -> float:
    start_s = time.thread_time()
    work(count)
    return time.thread_time() - start_s


def measure_bytes(work: Callable[[int], object], count: int) -> int:
    tracemalloc.start()
    work(count)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_each_fault_of_a_long_text_is_marked_in_its_place() -> None:
    marks = compare_with_faults(700)
    kinds = [MarkKind.REPEATED, MarkKind.MISSING, MarkKind.REPLACED]
    assert [mark.kind for mark in marks] == 7 * kinds


@pytest.mark.campaign
@pytest.mark.parametrize("work", KINDS)
def test_two_hours(work: Callable[[int], tuple[WordMark, ...]]) -> None:
    peak = measure_bytes(work, TWO_HOURS)
    print(f"\n{work.__name__}: {peak / 1e6:.0f} MB")
    assert peak < 300_000_000
    marks = work(TWO_HOURS)
    assert len(marks) == 600 if work is compare_with_faults else len(marks) == 1
