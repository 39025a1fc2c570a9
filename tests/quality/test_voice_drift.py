"""Drift of a voice, by measurements; `test_trained_sounds.py` has what it finds in real ones."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.quality.checks import ExpectedSpeech, TakeMetrics, check_take
from studio.quality.voice_drift import (
    build_baseline,
    describe_distance,
    find_outliers,
)


def test_a_take_in_quite_another_pitch_than_its_sample_is_marked():
    take = TakeMetrics(3.0, -20.0, 3.0, mean_pitch=6.9, sample_mean_pitch=0.0)
    assert find_outliers(take, None) == ()
    low = replace(take, mean_pitch=-7.6)
    [issue] = find_outliers(low, None)
    assert (issue.kind, issue.message) == ("pitch", "Lower by 8 semitones than its sample.")
    for unsure in ({"speech_s": 1.9}, {"mean_pitch": None}, {"sample_mean_pitch": None}):
        assert find_outliers(replace(low, **unsure), None) == ()


def metrics_of(pitch: float = 3.0, speech_s: float = 2.0, **more: object) -> TakeMetrics:
    values = {"usual_s": speech_s, "mean_pitch": pitch}
    return TakeMetrics(speech_s, -20.0, **(values | more))


def test_reasons_are_said_in_words():
    usual = build_baseline([metrics_of() for _ in range(9)], "Maud")

    def said(metrics: TakeMetrics) -> list[str]:
        return [issue.message for issue in find_outliers(metrics, usual)]

    assert said(metrics_of()) == []
    assert said(metrics_of(6.0)) == ["Higher by 3 semitones than Maud’s other lines."]
    assert said(metrics_of(1.5)) == ["Lower by 2 semitones than Maud’s other lines."]
    assert said(metrics_of(4.0)) == []
    assert (
        describe_distance(metrics_of(4.0, sample_mean_pitch=2.5), usual)
        == "From Maud’s other lines: +1.0 semitones. From its sample: +1.5 semitones."
    )
    assert describe_distance(metrics_of(), None) == ""


def test_another_voiceprint_is_another_voice():
    usual = build_baseline([metrics_of(voiceprint="small:fwA=")] * 9, "Maud")
    [issue] = find_outliers(metrics_of(voiceprint="small:QG4="), usual)
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


def test_a_short_line_may_be_further_from_the_others_than_a_long_one():
    """Its mean varies more: a line of four seconds half as much as one of one."""
    lines = [metrics_of(3.0 + apart, 4.0) for apart in (-0.4, -0.2, 0.0, 0.2, 0.4) * 4]
    usual = build_baseline(lines)
    for pitch in (1.2, 4.8):
        assert find_outliers(metrics_of(pitch, 1.0), usual) == ()
        assert [one.kind for one in find_outliers(metrics_of(pitch, 4.0), usual)] == ["pitch"]


def test_where_questions_and_short_lines_rise_they_are_no_drift():
    statements = [metrics_of(3.0 + step / 10, 4.0) for step in range(9)]
    questions = [metrics_of(7.0 + step / 10, 4.0, mark="?") for step in range(9)]
    usual = build_baseline([*statements, *questions])
    assert find_outliers(metrics_of(7.3, 4.0, mark="?"), usual) == ()
    assert [one.kind for one in find_outliers(metrics_of(7.3, 4.0), usual)] == ["pitch"]
    short = [metrics_of(6.0 + step / 10, 1.0) for step in range(9)]
    usual = build_baseline([*statements, *short])
    assert find_outliers(metrics_of(6.4, 1.0), usual) == ()
    assert [one.kind for one in find_outliers(metrics_of(6.4, 4.0), usual)] == ["pitch"]


def test_the_last_sign_of_a_text_is_what_its_melody_may_follow():
    clip = Clip(hum(120.0, 2.0))
    for text, mark in (("What? No.", ""), ("No. What?", "?"), ("Stop!”", "!"), ("Well…", "")):
        assert check_take(clip, ExpectedSpeech(text)).metrics.mark == mark


def hum(hz: float, seconds: float) -> np.ndarray:
    t = np.arange(round(seconds * STUDIO_RATE_HZ)) / STUDIO_RATE_HZ
    wave = sum(np.sin(2 * np.pi * hz * k * t) / k for k in range(1, 12))
    return (0.1 * wave * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * t))).astype(np.float32)


def test_the_pitch_of_a_take_is_the_mean_of_its_melody_without_mistaken_octaves():
    clip = Clip(np.concatenate([hum(100.0, 1.0), hum(100.0 * 2 ** (4 / 12), 1.0), hum(350.0, 0.2)]))
    said = ExpectedSpeech("The children were hiding.")
    assert check_take(clip, said).metrics.mean_pitch == pytest.approx(2.0, abs=0.3)


def test_lines_with_tags_and_short_ones_say_nothing_of_the_voice():
    long, short = Clip(hum(120.0, 2.0)), Clip(hum(120.0, 0.8))
    assert check_take(long, ExpectedSpeech("The children.")).metrics.mean_pitch is not None
    assert check_take(long, ExpectedSpeech("[laugh] The children.")).metrics.mean_pitch is None
    assert check_take(short, ExpectedSpeech("Yes.")).metrics.mean_pitch is None


def test_figures_of_imported_records_break_nothing():
    usual = build_baseline([metrics_of() for _ in range(9)])
    for strange in (math.nan, math.inf, -math.inf, 1e308):
        for odd in (
            metrics_of(strange, usual_s=strange, sample_mean_pitch=strange),
            metrics_of(9.0, speech_s=strange),
        ):
            find_outliers(odd, usual)
            describe_distance(odd, usual)
            assert build_baseline([odd] * 9 + [metrics_of()] * 9) is not None
