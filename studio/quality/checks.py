"""Quality checks of a take: issues in its samples, and what other takes are compared by.

Nothing here recognises speech. The checks measure durations, silences, levels and similarity, and
report only what no careful reading of the text would sound like. `tests/quality` measures how many
lines that are spoilt on purpose are found, and how many good ones of trained voices are marked.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from studio.audio.analysis import (
    FEATURE_STEP_S,
    SoundFrames,
    measure_clipped_share,
    track_pitch_hz,
)
from studio.audio.clip import Clip
from studio.dialog.model import ParamValue
from studio.dialog.planning import MAX_DURATION, Segment, SpeechSegment
from studio.dialog.tags import TAG

_S_PER_UNIT = 0.068  # a letter, at the pace of somebody who reads aloud
_START_S = 0.2
_PUNCTUATION_S = 0.35

_LONG_PAUSE = re.compile(r"\.\.\.|…|—|–|\n")
_ACRONYM = re.compile(r"\b(?:[^\W\d_a-zà-öø-ÿ]\.?){2,}\b")
_REPEATED_UNITS = 9
_REPEATED_SHARE = 0.6
_MAX_DIGITS = 3


@dataclass(frozen=True, slots=True)
class ExpectedSpeech:
    """The text of a take, and the speed that was asked for.

    Attributes:
        text: As the backend got it, without pauses.
        speed: 2 is twice as fast as usual.
        language: BCP-47 code; None if nobody named one.
    """

    text: str
    speed: float = 1.0
    language: str | None = None

    @property
    def slowness(self) -> float:
        """Divisor of margins in seconds, which grow for slow speech and don't shrink for fast."""
        return min(1.0, self.speed)

    @property
    def tags(self) -> int:
        """The number of sound tags, such as `[laugh]`."""
        return len(TAG.findall(self.text))

    @property
    def has_long_pause(self) -> bool:
        """Whether its punctuation calls for a long pause inside."""
        return _LONG_PAUSE.search(self.text.strip(" .…—–\n")) is not None

    @property
    def amount(self) -> str:
        """Its words, or characters in a script without spaces, with their verb, for messages."""
        wide = sum(_is_wide(char) for char in self.text)
        if wide > len(self.text) / 3:
            return f"{wide} characters; they take" if wide > 1 else "one character; it takes"
        words = len(TAG.sub(" ", self.text).split())
        return f"{words} words; they take" if words > 1 else "one word; it takes"


@dataclass(frozen=True, slots=True)
class ExpectedDuration:
    """The duration of a text for a quick and a slow reader of numbers, signs and acronyms."""

    min_s: float
    max_s: float

    @property
    def typical_s(self) -> float:
        """The mean of both."""
        return (self.min_s + self.max_s) / 2


def estimate_duration(said: ExpectedSpeech) -> ExpectedDuration:
    """Estimate how long a text takes; both bounds are equal if it has letters only."""
    text = TAG.sub(" ", unicodedata.normalize("NFC", said.text))
    least, most = _count_units(text)
    marks = sum(char in ".!?;:,。！？、，؟" for char in text.rstrip(" .!?。！？"))
    least_s = _START_S + _S_PER_UNIT * least
    most_s = _START_S + _S_PER_UNIT * most + _PUNCTUATION_S * marks
    return ExpectedDuration(least_s / said.speed, most_s / said.speed)


def repeats_itself(text: str) -> bool:
    """Whether a text says nearly the same twice in a row, so that its audio repeats itself, too.

    Longer numbers count as repeating: how they are read isn't known here.
    """
    if sum(char.isdigit() for char in text) > _MAX_DIGITS:
        return True
    letters = [char for char in text.casefold() if char.isalnum()]
    codes = np.array([ord(char) for char in letters], dtype=np.int32)
    units = np.array([_weigh_char(char)[0] for char in letters])
    for lag in range(1, len(codes) // 2 + 1):
        same = np.cumsum((codes[lag:] == codes[:-lag]) * units[lag:])
        width = max(lag, round(_REPEATED_UNITS / max(1.0, float(units.mean()))))
        if width > len(same):
            width = len(same)
        alike = np.concatenate([same[width - 1 : width], same[width:] - same[:-width]])
        if float(alike.max(initial=0.0)) >= max(_REPEATED_UNITS, lag) * _REPEATED_SHARE:
            return True
    return False


def _count_units(text: str) -> tuple[float, float]:
    weights = [_weigh_char(char) for char in text]
    spelt = sum(len(match[0].replace(".", "")) for match in _ACRONYM.finditer(text))
    least = sum(weight[0] for weight in weights)
    return least, sum(weight[1] for weight in weights) + 3.0 * spelt


def _weigh_char(char: str) -> tuple[float, float]:
    """How many letters a character counts for when it is spoken, at least and at most.

    A digit may be one sound or a long word, a sign is silent or spelt out, a vowel mark belongs to
    its letter, kana are a syllable, and a Chinese character is a syllable of up to five letters.
    """
    category = unicodedata.category(char)
    if char.isdigit() or category.startswith("N"):
        return (1.0, 10.0)
    if category in ("Sm", "Sc", "So") or char in "%&@#/*":
        return (0.0, 14.0)
    if category.startswith("M"):
        return (0.2, 0.8)
    if not category.startswith("L"):
        return (0.0, 0.4 if char.isspace() else 0.0)
    if not _is_wide(char):
        return (0.8, 1.4) if category == "Lo" else (1.0, 1.0)
    return (1.5, 2.5) if "KANA" in unicodedata.name(char, "") else (2.0, 5.0)


def _is_wide(char: str) -> bool:
    return char.isalpha() and unicodedata.east_asian_width(char) in ("W", "F", "H")


def build_expected_speech(segment: Segment) -> ExpectedSpeech:
    """The expected speech of a segment."""
    assert isinstance(segment, SpeechSegment)
    speed = segment.params.get("speed", 1.0)
    is_number = isinstance(speed, int | float) and not isinstance(speed, bool) and speed > 0
    return ExpectedSpeech(segment.text, float(speed) if is_number else 1.0, segment.language)


_MIN_PERIOD_S, _MAX_PERIOD_S = 0.3, 20.0
_MIN_REPEATED_S = 1.2
_MIN_SPEECH_SHARE = 0.5

# Measured similarity of two stretches: different speech reaches 0.76 over 1.2 s, 0.56 over 1.5 s
# and 0.45 from 2 s on; the same speech, half a frame off, 0.7 and more. So a longer one needs less.
_SIMILARITY_SHORT, _SIMILARITY_LONG, _SIMILARITY_LOSS_PER_S = 0.85, 0.6, 0.3


def find_repetition(frames: SoundFrames) -> tuple[float, int] | None:
    """Find a stretch of speech that is directly repeated.

    A stretch is 0.3 s to 20 s long; its repetitions last 1.2 s or more in all, because shorter ones
    occur in ordinary speech.

    Returns:
        The stretch's length in seconds and how often it occurs, 2 or more; None if there is none.
    """
    colours, speech = frames.compute_bands()
    found: tuple[float, int] | None = None
    highest = 0.0  # above the required similarity
    for lag in range(
        round(_MIN_PERIOD_S / FEATURE_STEP_S), round(_MAX_PERIOD_S / FEATURE_STEP_S) + 1
    ):
        width = max(lag, round(_MIN_REPEATED_S / FEATURE_STEP_S))
        if len(speech) - lag < width:
            break
        alike = np.cumsum(np.einsum("mb,mb->m", colours[lag:], colours[:-lag]))
        spoken = np.cumsum((speech[lag:] + speech[:-lag]) / 2)
        above = _compute_similarity(alike, spoken, width) - _require_similarity(
            width * FEATURE_STEP_S
        )
        if float(above.max(initial=0.0)) > highest:
            highest = float(above.max())
            times = 1 + round((int((above > 0).sum()) + width - 1) / lag)
            found = lag * FEATURE_STEP_S, max(2, times)
    return found


def _require_similarity(repeated_s: float) -> float:
    """The least similarity at which two stretches of this length count as the same."""
    return max(
        _SIMILARITY_LONG,
        _SIMILARITY_SHORT - _SIMILARITY_LOSS_PER_S * (repeated_s - _MIN_REPEATED_S),
    )


def _compute_similarity(alike: np.ndarray, spoken: np.ndarray, width: int) -> np.ndarray:
    """Mean similarity of each window that is mostly speech, from running sums."""
    alike, spoken = (np.concatenate([[0.0], sums]) for sums in (alike, spoken))
    voiced = spoken[width:] - spoken[:-width]
    mean = (alike[width:] - alike[:-width]) / np.maximum(voiced, 1.0)
    return np.where(voiced >= _MIN_SPEECH_SHARE * width, mean, 0.0)


# Beyond a slow and below a quick reader's time, since voices differ in pace. The margins are for
# short texts, where a breath or a drawn-out word doubles the duration.
_LONG_FACTOR, _LONG_MARGIN_S = 1.8, 1.5
_SHORT_FACTOR, _SHORT_MARGIN_S = 0.5, 0.2
_TAG_S = 4.0  # a laugh or a sigh may take that long
# Readers pause for up to a second between sentences, and longer at an ellipsis or a dash.
_GAP_S, _GAP_AT_DOTS_S = 1.2, 1.0
_TAIL_S = 0.8  # a word's decay and a breath are shorter
# Speech fades in and out. A clip that starts or ends within 12 dB of its speech level was cut.
_EDGE_BELOW_SPEECH_DB = 12.0
# A few samples at full scale are peaks of a loud voice; one in a thousand is audible distortion.
_CLIPPED_SHARE = 0.001
QUIET_DB = -50.0  # 30 dB below speech at a usual level, where only noise is left
_STEADY_S = 1.2  # speech changes its level several times a second; a hum or a hiss doesn't
_MIN_WORD_S = 0.1

MIN_VOICE_S = 1.0
"""Of less speech, the pitch and the embedding say too little of a voice."""
_MIN_PITCH_FRAMES = 25  # half a second of voice
_MELODY_SEMITONES = 9.0  # to either side; what is further from the middle is a mistaken octave
_REFERENCE_HZ = 100.0


class IssueKind(StrEnum):
    """The kinds of quality issues; take records and the APIs have these values."""

    LONG = "long"
    SHORT = "short"
    GAP = "gap"
    TAIL = "tail"
    BEGIN = "begin"
    END = "end"
    CLIPPED = "clipped"
    SILENT = "silent"
    LOOP = "loop"
    NOISE = "noise"
    LEVEL = "level"
    PACE = "pace"
    PITCH = "pitch"
    TIMBRE = "timbre"
    MISSING = "missing"
    EXTRA = "extra"
    REPEATED = "repeated"
    REPLACED = "replaced"
    UNLIKE = "unlike"
    OVER = "over"


_ISSUE_SCORES: Mapping[str, float] = {
    **dict.fromkeys((IssueKind.SILENT, IssueKind.UNLIKE), 5.0),
    **dict.fromkeys((IssueKind.LONG, IssueKind.SHORT, IssueKind.LOOP, IssueKind.NOISE), 3.0),
    **dict.fromkeys((IssueKind.MISSING, IssueKind.EXTRA, IssueKind.OVER), 3.0),
    **dict.fromkeys((IssueKind.REPEATED, IssueKind.REPLACED), 3.0),
    **dict.fromkeys((IssueKind.PITCH, IssueKind.TIMBRE), 2.0),
    **dict.fromkeys((IssueKind.GAP, IssueKind.END), 2.0),
}
"""Of words, voice, ends, silence and loudness; what isn't here counts 1."""


@dataclass(frozen=True, slots=True)
class QualityIssue:
    """A probable defect of a take.

    Attributes:
        kind: An `IssueKind`; a record from another version of the studio may have others.
        figure: The measured value: seconds, decibels, a share or a ratio, depending on the kind.
        message: A sentence with the value.
        start: Where in the line's text it is, in characters; None where it is no words.
        end: The character behind it.
    """

    kind: str
    figure: float
    message: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class TakeMetrics:
    """The measurements of a take that are compared with other takes of the same voice.

    Attributes:
        speech_s: Duration of its speech, without silences longer than 0.3 s.
        level_db: Level of its speech, dB of full scale.
        usual_s: How long such a text usually takes; 0 if unknown.
        mean_pitch: Mean of its melody, semitones above 100 Hz; None if hardly voiced.
        voiceprint: Its speaker embedding, as `VoiceEmbedder` packs it; only takes of one model are
            compared.
        sample_mean_pitch: That of the sample that the voice is cloned from.
        mark: The text's last sign where that is "!" or "?", to which a melody rises.

    What is None wasn't measured, or says nothing: records of older studios, sound tags. Those have
    other measurements, too, which nothing reads any more.
    """

    speech_s: float
    level_db: float
    usual_s: float
    mean_pitch: float | None = None
    voiceprint: str | None = None
    sample_mean_pitch: float | None = None
    mark: str = ""


@dataclass(frozen=True, slots=True)
class QualityReport:
    """A take's measurements, and the issues found in it without comparing it to others."""

    metrics: TakeMetrics
    issues: tuple[QualityIssue, ...]


def check_take(
    clip: Clip, said: ExpectedSpeech, embed: Callable[[Clip], str | None] = lambda clip: None
) -> QualityReport:
    """Check a take; takes about three thousandths of its duration, and what `embed` takes.

    Args:
        clip: The take.
        said: What was to be said.
        embed: A take's speaker embedding; None where there is no model of it.
    """
    frames = SoundFrames.from_clip(clip)
    metrics = _measure(clip, frames, said, embed)
    if frames.speech_db < QUIET_DB:
        return QualityReport(metrics, (_build_silence_issue(frames),))
    return QualityReport(metrics, tuple(_find_issues(clip, said, frames)))


def check_max_duration(
    duration_s: float, params: Mapping[str, ParamValue]
) -> tuple[QualityIssue, ...]:
    """The issue of a line that lasts longer than it says it may; none of others."""
    allowed_s, lasts_s = params.get(MAX_DURATION), round(duration_s, 2)
    if not isinstance(allowed_s, int | float) or lasts_s <= allowed_s:
        return ()
    return (QualityIssue(IssueKind.OVER, lasts_s, f"{lasts_s:g} s, {allowed_s:g} allowed."),)


def build_late_issue(late_s: float) -> QualityIssue:
    """The issue of a line that ends after the next one should begin, however fast it is spoken."""
    late_s = round(late_s, 2)
    return QualityIssue(IssueKind.OVER, late_s, f"{late_s:g} s too long for its time.")


CheckTake = Callable[[Clip, ExpectedSpeech], QualityReport]
"""Checks a take, as `check_take` does, perhaps with more to compare it with."""

FindWordIssues = Callable[[Clip, ExpectedSpeech], tuple[QualityIssue, ...]]
"""Compares the words of a take with its text."""


def _measure(
    clip: Clip, frames: SoundFrames, said: ExpectedSpeech, embed: Callable[[Clip], str | None]
) -> TakeMetrics:
    usual_s = estimate_duration(said).typical_s
    metrics = TakeMetrics(round(frames.speech_s, 3), round(frames.speech_db, 2), round(usual_s, 3))
    # A laugh has another pitch than the voice; a word or two say too little of it.
    if said.tags or frames.speech_s < MIN_VOICE_S or frames.speech_db < QUIET_DB:
        return metrics
    mark = next((one for one in reversed(said.text) if one in "!?.…"), "")
    pitch = _measure_mean_pitch(clip)
    return replace(metrics, mean_pitch=pitch, voiceprint=embed(clip), mark=mark.strip(".…"))


def _measure_mean_pitch(clip: Clip) -> float | None:
    pitches = 12 * np.log2(track_pitch_hz(clip) / _REFERENCE_HZ)
    if len(pitches) < _MIN_PITCH_FRAMES:
        return None
    kept = pitches[np.abs(pitches - np.median(pitches)) <= _MELODY_SEMITONES]
    return round(float(kept.mean()), 2)


def score_issues(issues: Sequence[QualityIssue]) -> float:
    """Sum the weights of a take's issues, to choose the best of several takes; 0 is without any.

    Each wrong word is an issue, so that a take with one is better than a take with five.
    """
    return sum(_ISSUE_SCORES.get(issue.kind, 1.0) for issue in issues)


def merge_reports(parts: Sequence[QualityReport]) -> QualityReport:
    """Merge the reports of a take's pieces; an issue that occurs in several is listed once."""
    metrics = [part.metrics for part in parts]
    speech_s = sum(one.speech_s for one in metrics)
    power = sum(one.speech_s * 10 ** (one.level_db / 10) for one in metrics)
    pitches = [(one.speech_s, one.mean_pitch) for one in metrics if one.mean_pitch is not None]
    voiced_s = sum(seconds for seconds, _ in pitches)
    merged = TakeMetrics(
        speech_s,
        10 * math.log10(max(power / max(speech_s, 1e-3), 1e-12)),
        sum(one.usual_s for one in metrics),
        mean_pitch=sum(s * pitch for s, pitch in pitches) / voiced_s if voiced_s else None,
        voiceprint=max(metrics, key=lambda one: one.speech_s).voiceprint,
        sample_mean_pitch=metrics[0].sample_mean_pitch,
        mark=metrics[-1].mark,
    )
    return QualityReport(merged, tuple(dict.fromkeys(one for part in parts for one in part.issues)))


def _find_issues(clip: Clip, said: ExpectedSpeech, frames: SoundFrames) -> Iterator[QualityIssue]:
    yield from _check_length(said, frames)
    yield from _check_gap(said, frames)
    steady_s, is_last = frames.steady_s(_STEADY_S)
    yield from _check_noise_and_tail(frames, steady_s, is_last=is_last)
    yield from _check_edges(clip, frames)
    yield from _check_clipping(clip)
    if not steady_s:  # a steady sound always resembles itself
        yield from _check_repetition(said, frames)


def _build_silence_issue(frames: SoundFrames) -> QualityIssue:
    level_db = frames.speech_db
    return QualityIssue(
        IssueKind.SILENT, round(level_db, 1), f"Nearly silent, at {level_db:.0f} dB."
    )


def _check_length(said: ExpectedSpeech, frames: SoundFrames) -> Iterator[QualityIssue]:
    usual, spoken_s = estimate_duration(said), frames.speech_s
    longest_s = _LONG_FACTOR * usual.max_s + (_LONG_MARGIN_S + _TAG_S * said.tags) / said.slowness
    shortest_s = _SHORT_FACTOR * usual.min_s - _SHORT_MARGIN_S
    summary = f"{spoken_s:.1f} s for {said.amount} usually about {usual.typical_s:.1f} s."
    if spoken_s > longest_s:
        yield QualityIssue(IssueKind.LONG, round(spoken_s, 2), summary)
    elif spoken_s < shortest_s:
        yield QualityIssue(IssueKind.SHORT, round(spoken_s, 2), f"{summary} Words may be missing.")


def _check_gap(said: ExpectedSpeech, frames: SoundFrames) -> Iterator[QualityIssue]:
    gap_s = frames.longest_gap_s()
    if gap_s > (_GAP_S + _GAP_AT_DOTS_S * said.has_long_pause) / said.slowness:
        message = f"{gap_s:.1f} s of silence inside."
        yield QualityIssue(IssueKind.GAP, round(gap_s, 2), message)


def _check_noise_and_tail(
    frames: SoundFrames, steady_s: float, *, is_last: bool
) -> Iterator[QualityIssue]:
    """Check for a steady sound anywhere, and for any sound or silence after the last word."""
    tail_s = max(frames.tail_s(), steady_s if is_last else 0.0)
    # A steady sound at the end counts as speech, unless it is taken for the noise of the room.
    counted_s = 0.0 if frames.silent_end_s() > steady_s / 2 else steady_s
    if steady_s and not (is_last and frames.speech_s > counted_s + _MIN_WORD_S):
        message = f"{steady_s:.1f} s of a steady sound instead of speech."
        yield QualityIssue(IssueKind.NOISE, round(steady_s, 2), message)
    elif tail_s > _TAIL_S:
        message = f"It goes on for {tail_s:.1f} s after the last word."
        yield QualityIssue(IssueKind.TAIL, round(tail_s, 2), message)


def _check_edges(clip: Clip, frames: SoundFrames) -> Iterator[QualityIssue]:
    edge = max(1, round(0.005 * clip.rate_hz))
    for kind, piece, message in (
        (IssueKind.BEGIN, clip.samples[:edge], "It begins in the middle of a sound."),
        (IssueKind.END, clip.samples[-edge:], "It ends in the middle of a sound."),
    ):
        power = float(np.square(piece, dtype=np.float64).mean())
        below_db = frames.speech_db - 10 * math.log10(max(power, 1e-12))
        if below_db < _EDGE_BELOW_SPEECH_DB:
            yield QualityIssue(kind, round(below_db, 1), message)


def _check_clipping(clip: Clip) -> Iterator[QualityIssue]:
    share = measure_clipped_share(clip.samples)
    if share > _CLIPPED_SHARE:
        message = f"Distorted: {share:.1%} of it is at full scale."
        yield QualityIssue(IssueKind.CLIPPED, round(share, 4), message)


def _check_repetition(said: ExpectedSpeech, frames: SoundFrames) -> Iterator[QualityIssue]:
    found = find_repetition(frames)
    if found is None or repeats_itself(said.text):
        return
    period_s, times = found
    again = f"{times} times" if times > 2 else "twice"
    message = f"The same {period_s:.1f} s are heard {again}, one after the other."
    yield QualityIssue(IssueKind.LOOP, round(period_s, 2), message)
