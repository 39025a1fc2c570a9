"""Drift of a voice: which is found in the draft voice's lines, at how many false alarms.

`-s` prints the rates. The draft voice is compared with its own reading of the text, so these are
upper bounds: no recording of a person and no neural voice was at hand.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import pytest
from spoken_lines import LANGUAGES, VOICES, SpokenLine, VoiceReader

from studio.audio.clip import Clip
from studio.backends.espeak.backend import DraftBackend
from studio.hearing.fault_planting import Fault, PlantableTake, plant_fault
from studio.hearing.reference_reading import ReferenceReader
from studio.quality.checks import ExpectedSpeech, IssueKind, TakeMetrics, check_take
from studio.quality.voice_drift import build_baseline, find_outliers

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
            for line, take in zip(ones, own, strict=True):
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
def test_drift_of_two_semitones_and_of_12_per_cent_is_found(reader, reference):
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
