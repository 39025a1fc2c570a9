"""Drift of a voice: which is found in the draft voice's lines, at how many false alarms.

`-s` prints the rates. The draft voice is compared with its own reading of the text, so these are
upper bounds: no recording of a person and no neural voice was at hand.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest
from spoken_lines import LANGUAGES, VOICES, SpokenLine, VoiceReader

from studio.audio.clip import Clip
from studio.backends.espeak.backend import DraftBackend
from studio.hearing.fault_planting import Fault, PlantableTake, plant_fault
from studio.hearing.reference_reading import ReferenceReader
from studio.quality.checks import ExpectedSpeech, IssueKind, TakeMetrics, check_take
from studio.quality.voice_drift import (
    build_baseline,
    compare_with_sample,
    describe_distance,
    find_outliers,
)

LONG_S = 2.6
"""So long that two seconds of speech are left when it is 30 % faster."""

FOUND_BY = {
    Fault.PITCH: {IssueKind.PITCH},
    Fault.TEMPO: {IssueKind.PACE},
    Fault.OTHER_SPEAKER: {IssueKind.PITCH, IssueKind.TIMBRE},
}


@pytest.fixture(scope="module")
def reader() -> Iterator[VoiceReader]:
    backend = DraftBackend(workers=1)
    backend.load(lambda _: None)
    try:
        yield VoiceReader(backend)
    finally:
        backend.unload()


@pytest.fixture(scope="module")
def reference() -> Iterator[ReferenceReader]:
    reader = ReferenceReader()
    try:
        yield reader
    finally:
        reader.close()


def same(clip: Clip) -> Clip:
    return clip


def measured(line: SpokenLine, clip: Clip, reference: ReferenceReader) -> TakeMetrics:
    reading = reference.read(line.text, line.language)
    return check_take(clip, ExpectedSpeech(line.text), reading).metrics


def rates(
    reader: VoiceReader, reference: ReferenceReader, voices: dict[str, int], languages: list[str]
) -> tuple[dict[str, float], float, int]:
    """The share of planted drifts that is found, that of good lines with a mark, and their number.

    Args:
        voices: How many lines of each voice are made in each language.
    """
    found: dict[Fault, list[bool]] = {fault: [] for fault in FOUND_BY}
    alarms = []
    for seed, language in enumerate(languages):
        lines = {
            voice: reader.lines(voice, language, count, seed=40_000 + 100 * seed + number)
            for number, (voice, count) in enumerate(voices.items())
        }
        takes = [
            PlantableTake(partial(same, line.clip), ExpectedSpeech(line.text), line.voice)
            for ones in lines.values()
            for line in ones
        ]
        for voice, ones in lines.items():
            own = [take for take in takes if take.voice == voice]
            metrics = [measured(line, line.clip, reference) for line in ones]
            usual = build_baseline(metrics, voice)
            rng = random.Random(seed)
            alarms += [bool(find_outliers(one, usual)) for one in metrics]
            for line, take, one in zip(ones, own, metrics, strict=True):
                if one.speech_s < LONG_S:
                    continue
                for fault, kinds in FOUND_BY.items():
                    clip = plant_fault(fault, take, takes, rng)
                    assert clip is not None
                    issues = find_outliers(measured(line, clip, reference), usual)
                    found[fault].append(bool({one.kind for one in issues} & kinds))
    shares = {str(fault): sum(ones) / len(ones) for fault, ones in found.items()}
    share = sum(alarms) / len(alarms)
    print(f"{shares}, false alarms {share:.3f}, of {len(alarms)} lines")
    return shares, share, len(alarms)


@pytest.mark.slow
def test_drift_of_two_semitones_and_of_30_per_cent_is_found(reader, reference):
    shares, alarms, _ = rates(reader, reference, {"m3": 12, "f1": 12}, ["en"])
    assert shares["pitch"] >= 0.9
    assert shares["tempo"] >= 0.9
    assert shares["other_speaker"] >= 0.9
    assert alarms <= 0.02


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_drift_is_found_in_500_lines_of_six_voices_and_three_languages(reader, reference):
    voices = dict.fromkeys(VOICES, 28)
    shares, alarms, count = rates(reader, reference, voices, list(LANGUAGES))
    assert count >= 500
    assert shares["pitch"] >= 0.9
    assert shares["tempo"] >= 0.9
    assert alarms <= 0.02


def test_a_take_in_quite_another_pitch_than_its_sample_is_marked():
    sample = TakeMetrics(9.0, -20.0, 0.0, pitch=0.0, bands_db=(1.0, -1.0))
    take = TakeMetrics(3.0, -20.0, 3.0, pitch=6.9, bands_db=(-1.0, 1.0))
    near = compare_with_sample(take, sample)
    assert near.sample_timbre_db == 2.0
    assert find_outliers(near, None) == ()
    [issue] = find_outliers(compare_with_sample(replace(take, pitch=-7.6), sample), None)
    assert (issue.kind, issue.message) == ("pitch", "Lower by 8 semitones than its sample.")
    unmeasured = TakeMetrics(9.0, -20.0, 0.0)
    assert find_outliers(compare_with_sample(take, unmeasured), None) == ()
    assert find_outliers(compare_with_sample(unmeasured, sample), None) == ()


def metrics_of(pitch: float, **more: object) -> TakeMetrics:
    values = {"pitch": pitch, "bands_db": (1.0, 0.0, -1.0), "reading_s": 2.0, "reading_pitch": 1.0}
    return TakeMetrics(2.0, -20.0, 2.0, **(values | more))


def test_reasons_are_said_in_words():
    usual = build_baseline([metrics_of(3.0) for _ in range(9)], "Maud")

    def said(metrics: TakeMetrics) -> list[str]:
        return [issue.message for issue in find_outliers(metrics, usual)]

    assert said(metrics_of(3.0)) == []
    assert said(metrics_of(6.0)) == ["Higher by 3 semitones than Maud’s other lines."]
    assert said(metrics_of(1.5)) == ["Lower by 2 semitones than Maud’s other lines."]
    assert said(metrics_of(3.0, reading_s=1.7)) == []  # 18 % slower: hardly anybody hears that
    assert said(metrics_of(3.0, reading_s=1.5)) == ["Slower by 33% than Maud’s other lines."]
    assert said(metrics_of(3.0, reading_s=2.6)) == ["Faster by 30% than Maud’s other lines."]
    assert said(metrics_of(3.0, reading_s=1.0)) == [
        "2.0 times as slow as Maud’s other lines.",
    ]
    assert said(metrics_of(3.0, bands_db=(-9.0, 0.0, 9.0))) == [
        "Brighter by 4 dB an octave than Maud’s other lines."
    ]
    assert said(metrics_of(3.0, bands_db=(8.0, -12.0, 6.0))) == [
        "It sounds like another voice: 9 dB from Maud’s other lines in colour."
    ]
    assert (
        describe_distance(metrics_of(4.0, sample_pitch=2.5), usual)
        == "From Maud’s other lines: +1.0 semitones, +0 % in pace, +0.0 dB in colour. From its "
        "sample: +1.5 semitones."
    )
    assert describe_distance(metrics_of(3.0), None) == ""


def test_another_voiceprint_is_another_voice():
    usual = build_baseline([metrics_of(3.0, voiceprint="small:fwA=")] * 9, "Maud")
    [issue] = find_outliers(metrics_of(3.0, voiceprint="small:QG4="), usual)
    assert (issue.kind, issue.message) == (
        "timbre",
        "It sounds like another voice than Maud’s other lines: likeness 0.50, where 1.00 is usual.",
    )


def test_a_voice_that_varies_gets_a_wider_margin():
    steady = build_baseline([metrics_of(pitch) for pitch in (3.0, 3.1, 2.9) * 4])
    lively = build_baseline([metrics_of(pitch) for pitch in (3.0, 4.5, 1.5) * 4])
    high = metrics_of(5.0)
    assert [issue.kind for issue in find_outliers(high, steady)] == ["pitch"]
    assert find_outliers(high, lively) == ()


def test_where_questions_rise_a_question_is_no_drift():
    statements = [metrics_of(3.0 + step / 10, reading_pitch=1.0) for step in range(6)]
    questions = [metrics_of(7.0 + step / 10, reading_pitch=5.0) for step in range(6)]
    usual = build_baseline([*statements, *questions])
    assert find_outliers(metrics_of(7.3, reading_pitch=5.0), usual) == ()
    assert [one.kind for one in find_outliers(metrics_of(7.3, reading_pitch=1.0), usual)] == [
        "pitch"
    ]


def test_lines_with_tags_and_short_ones_say_nothing_of_the_voice(reader):
    clip = reader.read("The children were hiding upstairs, and that was all.", "en")
    assert check_take(clip, ExpectedSpeech("The children were hiding.")).metrics.pitch is not None
    assert check_take(clip, ExpectedSpeech("[laugh] The children.")).metrics.pitch is None
    assert check_take(reader.read("Yes.", "en"), ExpectedSpeech("Yes.")).metrics.pitch is None


def test_figures_of_imported_records_break_nothing():
    usual = build_baseline([metrics_of(3.0) for _ in range(9)])
    for strange in (math.nan, math.inf, -math.inf, 1e308):
        odd = metrics_of(strange, bands_db=(strange,) * 3, reading_s=strange, sample_pitch=strange)
        find_outliers(odd, usual)
        describe_distance(odd, usual)
        assert build_baseline([odd] * 9 + [metrics_of(3.0)] * 9) is not None
    assert find_outliers(metrics_of(3.0, bands_db=(1.0,)), usual) == ()
