"""The judge: it reports what faults in other takes measure, switches off what is of no use, and
says what it can't judge.

The takes are the draft voice's, whose words are timed by aligning them to its own reading.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from draft_ears import catalogue
from spoken_lines import SpokenLine, VoiceReader

from studio.audio.clip import Clip
from studio.backends.espeak.backend import DraftBackend
from studio.engine.model_manager import EvictionPolicy
from studio.errors import BadInput, Cancelled
from studio.hearing.draft_reading import DraftReader
from studio.hearing.fault_planting import Fault, PlantableTake, plant_fault
from studio.hearing.hearing_models import HearingModels
from studio.hearing.judge import CheckFigures, Judge, JudgeReport, Share
from studio.hearing.word_check import WordChecker
from studio.hearing.word_times import WordTime, align_words
from studio.quality.checks import (
    ExpectedSpeech,
    IssueKind,
    QualityIssue,
    QualityReport,
    TakeMetrics,
    check_take,
)


@pytest.fixture(scope="module")
def reader() -> Iterator[VoiceReader]:
    backend = DraftBackend(workers=1)
    backend.load(lambda _: None)
    try:
        yield VoiceReader(backend)
    finally:
        backend.unload()


@pytest.fixture(scope="module")
def align() -> Iterator[partial]:
    reader = DraftReader()
    try:
        yield partial(align_words, reader=reader)
    finally:
        reader.close()


def same(clip: Clip) -> Clip:
    return clip


def take_of(line: SpokenLine) -> PlantableTake:
    said = ExpectedSpeech(line.text, language=line.language)
    return PlantableTake(partial(same, line.clip), said, line.voice, line.language)


def takes_of(reader: VoiceReader, count: int, *voices: str, start: int = 0) -> list[PlantableTake]:
    return [
        take_of(line)
        for number, voice in enumerate(voices)
        for line in reader.lines(voice, "en", start + count, seed=number)[start:]
    ]


def figures(report: JudgeReport) -> dict[tuple[str, str], tuple[Share, Share]]:
    return {(one.voice, one.fault): (one.found, one.alarms) for one in report.faults}


def coverage(reports: list[JudgeReport]) -> tuple[int, int]:
    """How many figures of each report hold the rate that all the others measure; of how many."""
    inside = total = 0
    every = [figures(report) for report in reports]
    for own in every:
        for key, shares in own.items():
            for which, share in enumerate(shares):
                others = [one[key][which] for one in every if one is not own]
                measured = sum(others, Share(0, 0)).rate
                low, high = share.interval
                inside += low <= measured <= high
                total += 1
    return inside, total


def repeat(reader, align, *, repetitions: int, count: int) -> tuple[int, int]:
    reports = []
    for number in range(repetitions):
        takes = takes_of(reader, count, "m3", "linda", start=number * count)
        reports.append(Judge(check_take, align, seed=number).judge(takes))
    inside, total = coverage(reports)
    for key, (found, alarms) in figures(reports[0]).items():
        print(key, found, [f"{one:.2f}" for one in found.interval], alarms)
    print(f"{inside} of {total} figures hold what the others measure")
    return inside, total


@pytest.mark.slow
def test_what_is_reported_is_what_faults_in_other_takes_measure(reader, align):
    inside, total = repeat(reader, align, repetitions=3, count=9)
    assert total == 3 * 2 * 7 * 2
    assert inside >= 0.95 * total


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_in_19_of_20_repetitions_what_is_reported_is_what_others_measure(reader, align):
    inside, total = repeat(reader, align, repetitions=20, count=30)
    assert inside >= 19 / 20 * total


def metrics_of(text: str) -> TakeMetrics:
    return TakeMetrics(3.0, -20.0, 3.0)


def silent_take(number: int, voice: str = "Maud", language: str | None = "en") -> PlantableTake:
    clip = Clip(np.full(24_000, 0.1, dtype=np.float32))
    words = tuple(WordTime("word", 0, 4, at_s, at_s + 0.2) for at_s in (0.1, 0.4, 0.7))
    said = ExpectedSpeech(f"Line {number}.", language=language)
    return PlantableTake(partial(same, clip), said, voice, language, words=words)


def marks(share: float, kind: IssueKind, seed: int = 0):
    """A check that marks this share of takes, whatever is in them."""
    rng = random.Random(seed)

    def check(clip: Clip, said: ExpectedSpeech) -> QualityReport:
        issues = (QualityIssue(kind, 1.0, "Marked."),) if rng.random() < share else ()
        return QualityReport(metrics_of(said.text), issues)

    return check


def test_a_check_that_marks_at_random_is_switched_off():
    takes = [silent_take(number) for number in range(40)]
    [one] = Judge(marks(0.5, IssueKind.END)).judge(takes).checks
    assert (one.voice, one.language, one.check, one.is_off) == ("Maud", "en", "end", True)
    assert one.kinds == (IssueKind.END,)
    assert one.alarms.trials == 40


@pytest.mark.parametrize(
    ("found", "alarms", "is_off"),
    [
        (Share(40, 40), Share(0, 40), False),
        (Share(20, 40), Share(2, 40), False),
        (Share(5, 40), Share(2, 40), True),
        (Share(40, 40), Share(40, 40), True),
        (Share(0, 40), Share(1, 40), True),
        (Share(0, 40), Share(0, 40), False),
        (Share(0, 0), Share(1, 40), False),
    ],
)
def test_a_check_is_off_that_marks_good_takes_and_faults_hardly_more(found, alarms, is_off):
    assert CheckFigures("Maud", "en", "pitch", (IssueKind.PITCH,), found, alarms).is_off is is_off


@pytest.mark.parametrize(
    ("share", "low", "high"),
    [  # by R's prop.test(correct = FALSE)
        (Share(0, 10), 0.0, 0.2775),
        (Share(81, 263), 0.2553, 0.3662),
        (Share(10, 10), 0.7225, 1.0),
        (Share(0, 0), 0.0, 1.0),
    ],
)
def test_intervals_are_wilsons(share, low, high):
    assert share.interval == pytest.approx((low, high), abs=1e-4)


def test_voices_with_few_takes_are_named_and_not_judged():
    takes = [silent_take(number) for number in range(8)]
    takes += [silent_take(number, "Tom", None) for number in range(7)]
    report = Judge(marks(0.0, IssueKind.END)).judge(takes)
    assert report.too_few == (("Tom", None, 7),)
    assert {one.voice for one in report.faults} == {"Maud"}


@pytest.mark.parametrize("count", [0, 7])
def test_with_too_few_takes_of_all_it_says_what_it_needs(count):
    with pytest.raises(BadInput, match="at least 8 ready lines of one voice in one language"):
        Judge(check_take).judge([silent_take(number) for number in range(count)])


def test_without_word_times_only_what_needs_none_is_planted():
    takes = [silent_take(number) for number in range(8)]
    wordless = [PlantableTake(one.load, one.said, one.voice, one.language) for one in takes]
    report = Judge(marks(0.0, IssueKind.END)).judge(wordless)
    assert {one.fault for one in report.faults} == {Fault.TAIL, Fault.PITCH}


def test_progress_reaches_its_end_and_it_can_be_cancelled():
    takes = [silent_take(number) for number in range(50)]
    steps: list[tuple[int, int]] = []
    Judge(check_take, progress=lambda *step: steps.append(step)).judge(takes)
    assert steps == [(done, 320) for done in range(1, 321)], "40 takes as they are, and 7 faults"
    steps.clear()
    judge = Judge(
        check_take, progress=lambda *step: steps.append(step), cancelled=lambda: len(steps) == 5
    )
    with pytest.raises(Cancelled, match="what was known before stays"):
        judge.judge(takes)
    assert len(steps) == 5


def test_faults_are_planted_where_the_words_are():
    """Each word is a level of its own, so that it can be seen where it went."""
    samples = np.concatenate(
        [np.zeros(2_400), *(np.full(4_800, level) for level in (0.1, 0.2, 0.3))]
    ).astype(np.float32)
    words = tuple(WordTime("word", 0, 4, at_s, at_s + 0.2) for at_s in (0.1, 0.3, 0.5))

    def take(gain: float, voice: str) -> PlantableTake:
        clip = Clip(samples * np.float32(gain))
        return PlantableTake(partial(same, clip), ExpectedSpeech("One."), voice, words=words)

    ida, ida_too, tom = take(1, "Ida"), take(2, "Ida"), take(3, "Tom")

    def planted(fault: Fault) -> Clip:
        clip = plant_fault(fault, ida, [ida, ida_too, tom], random.Random(1))
        assert clip is not None
        return clip

    def levels(fault: Fault) -> list[float]:
        return [round(float(one), 3) for one in planted(fault).samples[4_800::4_800]]

    assert levels(Fault.WORD_CUT) == [0.1, 0.3]
    assert levels(Fault.WORD_DOUBLED) == [0.1, 0.2, 0.2, 0.3]
    assert levels(Fault.WORD_EXCHANGED) == [0.1, 0.4, 0.3]
    assert 14_400 * 0.8 < len(planted(Fault.END_CUT)) < len(samples) - 0.4 * 4_800
    assert 0.8 * 24_000 > len(planted(Fault.TAIL)) - len(samples) > 0
    assert np.array_equal(planted(Fault.OTHER_SPEAKER).samples, tom.load().samples)
    assert len(planted(Fault.PITCH)) == pytest.approx(len(samples), rel=0.05)
    assert plant_fault(Fault.TAIL, tom, [ida, tom], random.Random(1)) is None
    assert plant_fault(Fault.OTHER_SPEAKER, ida, [ida, ida_too], random.Random(1)) is None


@pytest.mark.slow
def test_with_a_recogniser_words_are_judged_too(reader, align):
    pytest.importorskip("sherpa_onnx")
    words = WordChecker(HearingModels(EvictionPolicy(), catalogue=catalogue()))

    def check_all(clip: Clip, said: ExpectedSpeech) -> QualityReport:
        report = check_take(clip, said)
        return replace(report, issues=report.issues + words.find_issues(clip, said))

    try:
        report = Judge(check_all, align).judge(takes_of(reader, 10, "m3"))
    finally:
        words.close()
    found = {fault: share.hits for (_, fault), (share, _) in figures(report).items()}
    print(found)
    assert found[Fault.WORD_CUT] >= 9
    assert found[Fault.WORD_DOUBLED] >= 7
    assert found[Fault.WORD_EXCHANGED] >= 6
    assert found[Fault.TAIL] >= 9
    assert [one.check for one in report.checks if one.is_off] == []
