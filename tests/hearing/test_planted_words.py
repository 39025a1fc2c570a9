"""How many planted faults of words are found, with the tests' recogniser; `-s` prints the rates.

Of six voices, by held-out lines: one or two words cut, doubled, or exchanged with those of another
line. Each mark in a line without a fault is a false alarm.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from draft_ears import catalogue
from held_out_lines import SPEAKERS, draw_line

from benchmarks.draft_words import SpokenLine, WordSpeaker, plant_fault
from studio.audio.clip import Clip
from studio.hearing.hearing_models import HearingModels
from studio.hearing.word_aligner import WordAligner
from studio.hearing.word_check import ExpectedText, WordChecker
from studio.quality.checks import QualityIssue

pytest.importorskip("sherpa_onnx")

KINDS = ("missing", "repeated", "replaced")


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of lines.

    Attributes:
        found: By kind of fault, where a mark touches the words.
        named: By kind of fault, where that mark names the kind.
        false_alarms: Marks in lines without a fault, by the number of their words.
        marked_lines: Of lines without a fault that have a mark.
    """

    found: dict[str, float]
    named: dict[str, float]
    false_alarms: float
    marked_lines: float


class Listener:
    """Checks lines as the studio checks takes."""

    def __init__(self) -> None:
        self._aligner = WordAligner()
        self._checker = WordChecker(HearingModels(catalogue=catalogue()), self._aligner)

    def mark(self, line: SpokenLine, text: str) -> tuple[QualityIssue, ...]:
        return self._checker.check(Clip(line.render()), ExpectedText(text, "en")).issues

    def close(self) -> None:
        self._checker.close()
        self._aligner.close()


def plant(
    line: SpokenLine, other: SpokenLine, kind: str, chance: random.Random
) -> tuple[SpokenLine, int, int]:
    """A fault that can be heard: words aren't exchanged with the same ones."""
    while True:
        spoilt, first, count = plant_fault(line, other, kind, chance)
        if " ".join(spoilt.words).lower().strip(".,;?!") != " ".join(line.words).lower().strip(
            ".,;?!"
        ):
            return spoilt, first, count


def place_of(text: str, words: Sequence[str], first: int, count: int) -> tuple[int, int]:
    """Where words stand in a text that is all of them, divided by spaces."""
    start = len(" ".join(words[:first])) + (first > 0)
    return start, start + len(" ".join(words[first : first + count]))


def touches(mark: QualityIssue, place: tuple[int, int]) -> bool:
    """Whether a mark is at a place, or directly beside it, as one of two like words may be."""
    assert mark.start is not None
    assert mark.end is not None
    return mark.start <= place[1] + 1 and place[0] <= mark.end + 1


def measure(lines: int, seed: int) -> Rates:
    chance, speaker, listener = random.Random(seed), WordSpeaker(), Listener()
    found = dict.fromkeys(KINDS, 0)
    named = dict.fromkeys(KINDS, 0)
    false_alarms = marked_lines = words = 0
    for number in range(lines):
        name = SPEAKERS[number % len(SPEAKERS)]
        text, other = draw_line(chance), speaker.speak(draw_line(chance), name)
        line = speaker.speak(text, name)
        words += len(text.split())
        if marks := listener.mark(line, text):
            false_alarms += len(marks)
            marked_lines += 1
            print(f"false alarm: {text}", *marks, sep="\n  ")
        for kind in KINDS:
            spoilt, first, count = plant(line, other, kind, chance)
            place = place_of(text, line.words, first, count)
            marks = [mark for mark in listener.mark(spoilt, text) if touches(mark, place)]
            found[kind] += bool(marks)
            named[kind] += any(mark.kind == kind for mark in marks)
            if not marks:
                print(f"{kind} not found: {text[slice(*place)]!r} in {' '.join(spoilt.words)}")
    listener.close()
    return Rates(
        {kind: count / lines for kind, count in found.items()},
        {kind: count / lines for kind, count in named.items()},
        false_alarms / words,
        marked_lines / lines,
    )


def test_most_planted_faults_are_found() -> None:
    rates = measure(12, seed=1)
    print(rates)
    assert rates.found["missing"] >= 0.85
    assert rates.found["repeated"] >= 0.8
    assert rates.found["replaced"] >= 0.75
    assert rates.marked_lines <= 0.1


@pytest.mark.campaign
def test_planted_faults_of_500_lines() -> None:
    rates = measure(500, seed=500)
    print(rates)
    assert rates.found["missing"] >= 0.95
    assert rates.found["repeated"] >= 0.95
    assert rates.found["replaced"] >= 0.90
    assert rates.false_alarms <= 0.02
    assert rates.marked_lines <= 0.03
