"""What was said in hours is compared with its text in time and memory that grow with its length."""

from __future__ import annotations

import random
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


KINDS = [compare_with_faults, compare_unlike, compare_babble]


@pytest.mark.parametrize(
    ("work", "count"),
    zip(KINDS, (400, 400, 3_200), strict=True),
)
def test_time_and_memory_grow_with_the_length(work: Callable[[int], object], count: int) -> None:
    assert_linear(work, count)
    assert measure_bytes(work, count) < 8 * max(measure_bytes(work, count // 4), 1_000_000)


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
