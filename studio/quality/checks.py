"""Quality checks of a take: issues in its samples, and outliers among one voice's takes.

Nothing here understands speech. It measures lengths, silences, levels and likenesses, and tells
only what no careful reading of the text would sound like.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from studio.audio.clip import Clip
from studio.quality.expected_duration import ExpectedSpeech, estimate_duration, repeats_itself
from studio.quality.sound_frames import FEATURE_STEP_S, SoundFrames

_MIN_PERIOD_S, _MAX_PERIOD_S = 0.3, 20.0
_MIN_REPEATED_S = 1.2
_MIN_SPEECH_SHARE = 0.5

# How alike a stretch and its repetition are. Different speech comes to 0.76 over 1.2 s, 0.56 over
# 1.5 s and 0.45 from 2 s on, the same speech half a frame apart to 0.7 and more.
_SIMILARITY_SHORT, _SIMILARITY_LONG, _SIMILARITY_LOSS_PER_S = 0.85, 0.6, 0.3


def find_repetition(frames: SoundFrames) -> tuple[float, int] | None:
    """Find a stretch that is heard again right after itself.

    What is repeated, all repetitions together, lasts 1.2 s at least; a stretch is between 0.3 s
    and 20 s long.

    Returns:
        Its length in seconds and how many times it is heard, 2 at least; None where none is.
    """
    colours, speech = frames.compute_bands()
    found: tuple[float, int] | None = None
    highest = 0.0  # above what is asked for
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
    """How alike two stretches of a length must be."""
    return max(
        _SIMILARITY_LONG,
        _SIMILARITY_SHORT - _SIMILARITY_LOSS_PER_S * (repeated_s - _MIN_REPEATED_S),
    )


def _compute_similarity(alike: np.ndarray, spoken: np.ndarray, width: int) -> np.ndarray:
    """Mean likeness over each window that is spoken for the most part; sums are running ones."""
    alike, spoken = (np.concatenate([[0.0], sums]) for sums in (alike, spoken))
    voiced = spoken[width:] - spoken[:-width]
    mean = (alike[width:] - alike[:-width]) / np.maximum(voiced, 1.0)
    return np.where(voiced >= _MIN_SPEECH_SHARE * width, mean, 0.0)


_LONG_FACTOR, _LONG_MARGIN_S = 1.8, 1.5
_SHORT_FACTOR, _SHORT_MARGIN_S = 0.5, 0.2
_GAP_S, _GAP_AT_DOTS_S = 1.2, 1.0
_TAIL_S = 0.8
_EDGE_BELOW_SPEECH_DB = 12.0
_CLIPPED_LEVEL = 0.999
_CLIPPED_SHARE = 0.001
_QUIET_DB = -50.0
_STEADY_S = 1.2
_MIN_WORD_S = 0.1
_TAG_S = 4.0

_MIN_BASELINE_TAKES = 8
_MAX_LEVEL_DIFFERENCE_DB = 9.0
_MAX_PACE_DIFFERENCE = math.log(1.6)
_PACE_SPREADS = 4.0
_MIN_PACE_TEXT_S = 1.0  # a shorter text says too little about how fast somebody speaks


class IssueKind(StrEnum):
    """What it is that is doubtful."""

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


_ISSUE_SCORES: Mapping[str, float] = {
    IssueKind.SILENT: 5.0,
    **dict.fromkeys((IssueKind.LONG, IssueKind.SHORT, IssueKind.LOOP, IssueKind.NOISE), 3.0),
    **dict.fromkeys((IssueKind.GAP, IssueKind.END), 2.0),
}


@dataclass(frozen=True, slots=True)
class QualityIssue:
    """One thing about a take that may not be meant.

    Attributes:
        kind: A `IssueKind`; a record may come from a studio that knows others.
        figure: What was measured: seconds, decibels, a share or a ratio, as the kind has it.
        message: A sentence with the figure.
    """

    kind: str
    figure: float
    message: str


@dataclass(frozen=True, slots=True)
class TakeMetrics:
    """What of a take is compared with others of the same voice.

    Attributes:
        speech_s: Without silences longer than 0.3 s.
        level_db: Of its speech, dB of full scale.
        usual_s: How long such a text usually takes, 0 when it says nothing about that.
    """

    speech_s: float
    level_db: float
    usual_s: float

    @property
    def pace(self) -> float | None:
        """Times as long as usual, as a logarithm; None for texts too short to tell.

        Records come from anywhere: figures that no sound has say nothing either.
        """
        if not self.usual_s >= _MIN_PACE_TEXT_S:
            return None
        times = self.speech_s / self.usual_s
        return math.log(times) if 0.001 < times < 1000 else None


@dataclass(frozen=True, slots=True)
class QualityReport:
    """A take's figures, and what is doubtful about it by itself."""

    metrics: TakeMetrics
    issues: tuple[QualityIssue, ...]


@dataclass(frozen=True, slots=True)
class VoiceBaseline:
    """What the takes of one voice have in common: medians, and how far they spread."""

    level_db: float
    pace: float | None
    pace_spread: float


def check_take(clip: Clip, said: ExpectedSpeech) -> QualityReport:
    """Look a take over; about a thousandth of the time that it takes to hear it."""
    frames = SoundFrames.from_clip(clip)
    length = estimate_duration(said)
    figures = TakeMetrics(
        round(frames.speech_s, 3), round(frames.speech_db, 2), round(length.typical_s, 3)
    )
    if frames.speech_db < _QUIET_DB:
        return QualityReport(figures, (_build_silence_issue(frames),))
    return QualityReport(figures, tuple(_find_issues(clip, said, frames)))


def score_issues(doubts: Sequence[QualityIssue]) -> float:
    """How doubtful a take is, to choose among several: 0 when there is nothing."""
    return sum(_ISSUE_SCORES.get(doubt.kind, 1.0) for doubt in doubts)


def merge_reports(parts: Sequence[QualityReport]) -> QualityReport:
    """What the pieces of one take tell, one or more of them; the same is said once."""
    speech_s = sum(part.metrics.speech_s for part in parts)
    power = sum(part.metrics.speech_s * 10 ** (part.metrics.level_db / 10) for part in parts)
    level_db = 10 * math.log10(max(power / max(speech_s, 1e-3), 1e-12))
    usual_s = sum(part.metrics.usual_s for part in parts)
    doubts = dict.fromkeys(doubt for part in parts for doubt in part.issues)
    return QualityReport(TakeMetrics(speech_s, level_db, usual_s), tuple(doubts))


def build_baseline(others: Sequence[TakeMetrics]) -> VoiceBaseline | None:
    """What takes of one voice have in common; None when there are fewer than 8."""
    if len(others) < _MIN_BASELINE_TAKES:
        return None
    level_db = float(np.median([one.level_db for one in others]))
    paces = [pace for one in others if (pace := one.pace) is not None]
    if len(paces) < _MIN_BASELINE_TAKES:
        return VoiceBaseline(level_db, None, 0.0)
    middle = float(np.median(paces))
    spread = 1.4826 * float(np.median(np.abs(np.asarray(paces) - middle)))
    return VoiceBaseline(level_db, middle, spread)


def find_outliers(figures: TakeMetrics, usual: VoiceBaseline | None) -> tuple[QualityIssue, ...]:
    """What tells a take from the others of its voice."""
    if usual is None:
        return ()
    found = []
    apart_db = figures.level_db - usual.level_db
    if abs(apart_db) > _MAX_LEVEL_DIFFERENCE_DB and figures.level_db >= _QUIET_DB:
        how = "louder" if apart_db > 0 else "quieter"
        message = f"{abs(apart_db):.0f} dB {how} than this voice’s other takes."
        found.append(QualityIssue(IssueKind.LEVEL, round(apart_db, 1), message))
    pace = figures.pace
    if pace is not None and usual.pace is not None:
        apart = pace - usual.pace
        if abs(apart) > max(_MAX_PACE_DIFFERENCE, _PACE_SPREADS * usual.pace_spread):
            times = math.exp(abs(apart))
            how = "slow" if apart > 0 else "fast"
            message = f"{times:.1f} times as {how} as this voice’s other takes."
            found.append(QualityIssue(IssueKind.PACE, round(math.exp(apart), 2), message))
    return tuple(found)


def _find_issues(clip: Clip, said: ExpectedSpeech, frames: SoundFrames) -> Iterator[QualityIssue]:
    yield from _check_length(said, frames)
    yield from _check_gap(said, frames)
    steady_s, is_last = frames.steady_s(_STEADY_S)
    yield from _check_noise_and_tail(frames, steady_s, is_last=is_last)
    yield from _check_edges(clip, frames)
    yield from _check_clipping(clip)
    if not steady_s:  # which is like itself at every moment
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
    summary = (
        f"{spoken_s:.1f} s for {said.amount}; {said.verb_phrase} usually about "
        f"{usual.typical_s:.1f} s."
    )
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
    """Steady sound anywhere, and whatever goes on after the last word."""
    tail_s = max(frames.tail_s(), steady_s if is_last else 0.0)
    if steady_s and not (is_last and frames.speech_s > steady_s + _MIN_WORD_S):
        message = f"{steady_s:.1f} s of a steady sound instead of speech."
        yield QualityIssue(IssueKind.NOISE, round(steady_s, 2), message)
    elif tail_s > _TAIL_S:
        message = f"It goes on for {tail_s:.1f} s after the last word."
        yield QualityIssue(IssueKind.TAIL, round(tail_s, 2), message)


def _check_edges(clip: Clip, frames: SoundFrames) -> Iterator[QualityIssue]:
    edge = max(1, round(0.005 * clip.rate_hz))
    for kind, piece, verb in (
        (IssueKind.BEGIN, clip.samples[:edge], "begins"),
        (IssueKind.END, clip.samples[-edge:], "ends"),
    ):
        power = float(np.square(piece, dtype=np.float64).mean())
        below_db = frames.speech_db - 10 * math.log10(max(power, 1e-12))
        if below_db < _EDGE_BELOW_SPEECH_DB:
            message = f"It {verb} in the middle of a sound."
            yield QualityIssue(kind, round(below_db, 1), message)


def _check_clipping(clip: Clip) -> Iterator[QualityIssue]:
    share = float((np.abs(clip.samples) >= _CLIPPED_LEVEL).mean())
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
