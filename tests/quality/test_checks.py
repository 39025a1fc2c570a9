"""What listens to takes: nothing is doubtful about the draft voice, and made faults are found.

Rates are of the texts of `spoken_corpus`, in 31 languages; `-s` prints them. No recording of a
person and no neural voice was at hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from spoken_corpus import HARD, KANJI, SENTENCES, Line, Reader, at

from studio.audio.analysis import measure_levels
from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.espeak.backend import DraftBackend
from studio.quality.checks import (
    ExpectedSpeech,
    IssueKind,
    QualityIssue,
    QualityReport,
    TakeMetrics,
    check_take,
    estimate_duration,
    merge_reports,
    repeats_itself,
    score_issues,
)
from studio.quality.voice_drift import build_baseline, find_outliers

RATE = STUDIO_RATE_HZ

SPELLING = frozenset(
    [
        *("ba", "cv", "hyw", "ja", "kok", "ky", "mi", "my", "nog", "qdb", "shn", "ti"),
        "yue-Latn-jyutping",
    ]
)
"""Languages in which the draft voice says Latin letters one by one."""


@pytest.fixture(scope="module")
def reader():
    backend = DraftBackend(workers=1)
    backend.load(lambda _: None)
    try:
        yield Reader(backend)
    finally:
        backend.unload()


def kinds(clip: Clip, said: ExpectedSpeech) -> set[str]:
    return {doubt.kind for doubt in check_take(clip, said).issues}


def alarms(lines):
    told = [
        (line, check_take(line.clip, ExpectedSpeech(line.text, line.speed)).issues)
        for line in lines
    ]
    return [(one.language, one.speed, one.text[:40], doubts) for one, doubts in told if doubts]


@pytest.mark.slow
def test_nothing_is_doubtful_about_the_draft_voice_at_any_speed(reader):
    assert alarms(reader.lines((0.5, 1.0, 2.0))) == []


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_nothing_is_doubtful_about_other_voices(reader):
    names = tuple(f"Voice {n}" for n in range(10))
    assert alarms(reader.lines((0.6, 1.4), names)) == []


@pytest.mark.campaign
@pytest.mark.timeout(1800)
def test_an_english_sentence_is_doubtful_only_in_languages_that_spell_it(reader):
    languages = sorted(DraftBackend(workers=1).capabilities.languages)
    assert len(languages) > 100
    spoken = (
        reader.line(text, language, speed)
        for language in languages
        for text in (SENTENCES["en"][1], HARD[0])
        for speed in (0.5, 1.0, 2.0)
    )
    assert {language for language, *_ in alarms(spoken)} <= SPELLING


def noise(seconds: float, level_db: float, colour: str = "white") -> np.ndarray:
    """Hiss, or a rumble that falls by 6 dB an octave, or a hum."""
    rng = np.random.default_rng(round(seconds * 1000))
    n = round(seconds * RATE)
    if colour == "hum":
        made = np.sin(2 * np.pi * 120 * np.arange(n) / RATE) + 0.3 * rng.standard_normal(n) * 0.01
    else:
        made = rng.standard_normal(n)
        if colour == "brown":
            made = np.fft.irfft(np.fft.rfft(made) / np.maximum(1, np.arange(n // 2 + 1)), n)
    return made * 10 ** (level_db / 20) / np.sqrt(np.mean(made**2))


def spoken(samples: np.ndarray) -> np.ndarray:
    """Without the silence that the draft voice puts around."""
    loud = np.flatnonzero(np.abs(samples) > 0.003)
    return samples[loud[0] : loud[-1] + 1]


def middle(samples: np.ndarray) -> int:
    """The quietest place about the middle, where a pause would be."""
    third = len(samples) // 3
    power = np.convolve(samples[third : 2 * third] ** 2, np.ones(480), "same")
    return third + int(np.argmin(power))


def silence_inside(line: Line) -> np.ndarray:
    samples, place = line.clip.samples, middle(line.clip.samples)
    pause = np.zeros(round(2.5 / min(1, line.speed) * RATE))
    return np.concatenate([samples[:place], pause, samples[place:]])


def silence_after(line: Line) -> np.ndarray:
    return np.concatenate([line.clip.samples, np.zeros(2 * RATE)])


def noise_after(colour: str, below_db: float) -> Callable[[Line], np.ndarray]:
    return lambda line: np.concatenate([line.clip.samples, noise(2.0, -22 - below_db, colour)])


def doubled(line: Line) -> np.ndarray:
    return np.concatenate([line.clip.samples, line.clip.samples])


def looped(line: Line) -> np.ndarray:
    """The last half second again and again, three seconds long."""
    samples = spoken(line.clip.samples)
    piece = samples[-round(0.5 * RATE) :]
    return np.concatenate([samples, *[piece] * 6])


def cut_in_the_middle(line: Line) -> np.ndarray:
    return line.clip.samples[: round(0.5 * len(line.clip))]


def cut_at_a_quarter(line: Line) -> np.ndarray:
    return line.clip.samples[: round(0.25 * len(line.clip))]


def begun_in_the_middle(line: Line) -> np.ndarray:
    return line.clip.samples[round(0.5 * len(line.clip)) :]


def very_quiet(line: Line) -> np.ndarray:
    return line.clip.samples * 10 ** (-40 / 20)


def clipped(line: Line) -> np.ndarray:
    return np.clip(line.clip.samples * 10 ** (20 / 20), -1, 1)


def only_noise(line: Line) -> np.ndarray:
    return noise(max(1.5, line.clip.duration_s), -22)


def only_a_tone(line: Line) -> np.ndarray:
    return noise(max(1.5, line.clip.duration_s), -22, "hum")


FAULTS = (
    (silence_inside, {"gap"}, 0.95),
    (silence_after, {"tail"}, 1.0),
    (noise_after("white", 10), {"tail", "noise"}, 0.95),
    (noise_after("white", 25), {"tail", "noise"}, 0.95),
    (noise_after("brown", 20), {"tail", "noise"}, 0.95),
    (noise_after("hum", 20), {"tail", "noise"}, 0.95),
    (doubled, {"loop", "long"}, 0.9),
    (looped, {"loop", "long"}, 0.95),
    (cut_in_the_middle, {"end", "short"}, 0.7),
    (cut_at_a_quarter, {"end", "short"}, 0.8),
    (begun_in_the_middle, {"begin", "short"}, 0.7),
    (very_quiet, {"silent"}, 1.0),
    (clipped, {"clipped"}, 1.0),
    (only_noise, {"noise"}, 1.0),
    (only_a_tone, {"noise"}, 1.0),
)
NAMES = (
    *("a silence of 2.5 s inside", "a silence of 2 s after it"),
    *("hiss after it, 10 dB below", "hiss after it, 25 dB below"),
    *("a rumble after it, 20 dB below", "a hum after it, 20 dB below"),
    *("said twice", "its last half second six times more", "cut in the middle"),
    *(
        "cut at a quarter",
        "begun in the middle",
        "40 dB quieter",
        "20 dB too loud",
        "only hiss",
        "only a hum",
    ),
)


@pytest.fixture(scope="module")
def sentences(reader):
    """One sentence of each language and the hard texts, that last a second at least."""
    lines = [reader.line(text, language) for language, (_, text) in SENTENCES.items()]
    lines += [reader.line(text, "en") for text in HARD if not repeats_itself(text)]
    return [line for line in lines if line.clip.duration_s > 1.5]


@pytest.mark.parametrize(("fault", "wanted", "least"), FAULTS, ids=NAMES)
def test_made_faults_are_found(sentences, fault, wanted, least, request):
    found = [
        bool(kinds(at(fault(line)), ExpectedSpeech(line.text, line.speed)) & wanted)
        for line in sentences
    ]
    share = sum(found) / len(found)
    print(f"{request.node.callspec.id}: {share:.0%} of {len(found)}")
    missed = [line.text[:40] for line, one in zip(sentences, found, strict=True) if not one]
    assert share >= least, missed


def in_a_room(samples: np.ndarray, below_db: float) -> Clip:
    """With hiss so far below the speech, as a voice cloned from such a recording has."""
    speech_db = measure_levels(at(samples), may_be_noisy=False).speech_db
    return at(samples + noise(len(samples) / RATE, speech_db - below_db))


@pytest.mark.parametrize("below_db", [14, 20, 30])
def test_a_silence_is_found_in_a_noisy_take(sentences, below_db):
    found = [
        bool(kinds(in_a_room(silence_inside(line), below_db), ExpectedSpeech(line.text)) & {"gap"})
        for line in sentences
    ]
    print(f"{below_db} dB: {sum(found)} of {len(found)}")
    assert sum(found) / len(found) >= 0.95


@pytest.mark.parametrize("below_db", [20, 30])
def test_noise_alone_is_no_issue(sentences, below_db):
    marked = [
        line.text
        for line in sentences
        if kinds(in_a_room(line.clip.samples, below_db), ExpectedSpeech(line.text))
    ]
    assert marked == []


def test_one_word_that_goes_on_for_seconds_is_found(reader):
    others = reader.line(HARD[-1], "en").clip.samples
    for language, (word, _) in SENTENCES.items():
        said = ExpectedSpeech(word)
        long = at(np.concatenate([reader.line(word, language).clip.samples, others])[: 9 * RATE])
        assert "long" in kinds(long, said), language
        message = check_take(long, said).issues[0].message
        assert "for one word; it takes usually about" in message or "character" in message


def test_a_voice_that_cannot_read_a_script_and_says_the_same_for_each_character(reader):
    line = reader.line(KANJI, "ja")
    assert "loop" in kinds(line.clip, ExpectedSpeech(line.text))


def test_a_take_that_sounds_unlike_the_others_of_its_voice_stands_out(reader):
    texts = [text for text in HARD if len(text) > 25 and not any(map(str.isdigit, text))]
    lines = [reader.line(text, "en") for text in (*texts, SENTENCES["en"][1])]
    figures = [check_take(line.clip, ExpectedSpeech(line.text)).metrics for line in lines]
    usual = build_baseline(figures)
    assert usual is not None
    assert [find_outliers(one, usual) for one in figures] == [()] * len(figures)
    quiet = check_take(
        at(lines[-1].clip.samples * 10 ** (-12 / 20)), ExpectedSpeech(lines[-1].text)
    ).metrics
    [doubt] = find_outliers(quiet, usual)
    assert doubt.kind == IssueKind.LEVEL
    assert doubt.message == "12 dB quieter than this voice’s other lines."


def test_of_several_takes_a_silent_one_is_the_last_to_be_chosen():
    silent = check_take(Clip.silence(1.0), ExpectedSpeech("Yes.")).issues
    assert [issue.kind for issue in silent] == ["silent"]
    for kind in ("long", "short", "gap", "tail", "begin", "end", "clipped", "loop", "noise"):
        assert 0 < score_issues([QualityIssue(kind, 1.0, "")]) < score_issues(silent), kind
    hum_and_cut = [QualityIssue("long", 9.0, ""), QualityIssue("tail", 1.0, "")]
    assert score_issues(hum_and_cut) < score_issues(silent)


@pytest.mark.parametrize(("tags", "long_from_s"), [(0, 3.0), (1, 7.0), (2, 11.0)])
def test_each_tag_may_take_four_seconds_more(tags, long_from_s):
    said = ExpectedSpeech("[laugh] " * tags + "Yes.")
    for seconds, wanted in ((long_from_s - 1.0, False), (long_from_s + 1.0, True)):
        words = noise(seconds, -20.0)
        words[np.arange(len(words)) % (RATE // 2) > 0.3 * RATE] = 0.0  # as words have gaps
        assert ("long" in kinds(at(words), said)) is wanted, seconds


def test_fewer_than_eight_others_say_nothing():
    figures = [TakeMetrics(3.0, -20.0, 3.0)] * 7
    assert build_baseline(figures) is None
    assert find_outliers(TakeMetrics(30.0, -60.0, 3.0), None) == ()


@pytest.mark.parametrize("figure", [0.0, -1.0, 1e-300, 1e308, math.inf, -math.inf, math.nan])
def test_figures_that_no_sound_has_break_nothing(figure):
    others = [TakeMetrics(3.0, -20.0, 3.0)] * 9
    for strange in (TakeMetrics(figure, -20.0, 3.0), TakeMetrics(3.0, -20.0, figure)):
        assert find_outliers(strange, build_baseline(others)) == ()
        assert build_baseline([*others, strange]) is not None
        assert build_baseline([strange] * 9) is not None


def test_pieces_of_one_take_are_judged_together():
    doubt = check_take(Clip.silence(1.0), ExpectedSpeech("Yes.")).issues[0]
    parts = [
        QualityReport(TakeMetrics(1.0, -20.0, 1.5), (doubt,)),
        QualityReport(TakeMetrics(3.0, -20.0, 2.5), (doubt,)),
    ]
    whole = merge_reports(parts)
    assert whole.issues == (doubt,)
    assert (whole.metrics.speech_s, whole.metrics.usual_s) == (4.0, 4.0)
    assert math.isclose(whole.metrics.level_db, -20.0)


def test_a_clip_may_be_of_a_low_rate():
    assert kinds(Clip(np.zeros(4_000, dtype=np.float32), 4_000), ExpectedSpeech("Yes.")) == {
        "silent"
    }


@pytest.mark.parametrize("samples", [0, 1, 100, 480, 5_000])
def test_a_clip_may_be_as_short_as_it_likes(samples):
    assert kinds(Clip(np.zeros(samples, dtype=np.float32)), ExpectedSpeech("Yes.")) == {"silent"}
    loud = Clip(np.full(samples, 0.5, dtype=np.float32))
    assert all(
        math.isfinite(doubt.figure) for doubt in check_take(loud, ExpectedSpeech("Yes.")).issues
    )


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("Yes.", "one word; it takes"),
        ("[laugh] Oh no.", "2 words; they take"),
        ("是。", "one character; it takes"),
        ("灯还亮着。", "4 characters; they take"),
        ("نعم يا سيدي", "3 words; they take"),
    ],
)
def test_what_was_to_be_said_is_counted_in_words_or_characters(text, amount):
    assert ExpectedSpeech(text).amount == amount


def test_a_text_that_repeats_itself_is_told_from_one_that_does_not():
    for text in (
        "Ha ha ha ha ha!",
        "I know it. I know it, I know it.",
        "哈哈哈哈哈哈",
        "Call 0176 5550.",
    ):
        assert repeats_itself(text), text
    for text in (SENTENCES["en"][1], "Banana.", SENTENCES["zh"][1], "", "Yes."):
        assert not repeats_itself(text), text


def test_numbers_may_take_long_or_not():
    words, numbers = (
        estimate_duration(ExpectedSpeech("Nineteen.")),
        estimate_duration(ExpectedSpeech("1919191.")),
    )
    assert words.min_s == words.max_s
    assert numbers.max_s > 3 * numbers.min_s
    assert estimate_duration(ExpectedSpeech("Nineteen.", 2.0)).max_s == words.max_s / 2


def test_slow_speech_has_wider_margins_and_fast_speech_no_narrower_ones() -> None:
    slowness = [ExpectedSpeech("Well.", speed).slowness for speed in (0.5, 1.0, 2.0)]
    assert slowness == [0.5, 1.0, 1.0]


def test_each_wrong_word_counts() -> None:
    wrong = QualityIssue(IssueKind.MISSING, 1.0, "“lamp” is missing.")
    assert [score_issues([wrong] * count) for count in (0, 1, 5)] == [0, 3, 15]


@pytest.mark.parametrize(("in_a_thousand", "found"), [(0.5, False), (2, True)])
def test_two_samples_in_a_thousand_at_full_scale_are_heard(in_a_thousand, found) -> None:
    rng = np.random.default_rng(5)
    samples = (0.1 * rng.standard_normal(2 * RATE)).clip(-0.5, 0.5).astype(np.float32)
    samples[:: round(1_000 / in_a_thousand)] = 1.0
    assert ("clipped" in kinds(Clip(samples), ExpectedSpeech("This is the lamp."))) is found
