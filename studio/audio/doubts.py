"""What is doubtful about a take: told from its samples and from what was to be said.

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
from studio.audio.loops import repetition
from studio.audio.sound_frames import SoundFrames
from studio.audio.spoken_length import Said, repeats_itself, usual_length

_LONG_TIMES, _LONG_MORE_S = 1.8, 1.5
_SHORT_TIMES, _SHORT_LESS_S = 0.5, 0.2
_GAP_S, _GAP_AT_DOTS_S = 1.2, 1.0
_TAIL_S = 0.8
_EDGE_BELOW_SPEECH_DB = 12.0
_CLIPPED = 0.999
_CLIPPED_SHARE = 0.001
_QUIET_DB = -50.0
_STEADY_S = 1.2
_LEAST_WORD_S = 0.1
_TAG_S = 4.0

_FEWEST_OTHERS = 8
_LEVEL_APART_DB = 9.0
_PACE_APART = math.log(1.6)
_PACE_SPREADS = 4.0
_SURE_S = 1.0  # a shorter text says too little about how fast somebody speaks


class DoubtKind(StrEnum):
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


_WEIGHTS: Mapping[str, float] = {
    DoubtKind.SILENT: 5.0,
    **dict.fromkeys((DoubtKind.LONG, DoubtKind.SHORT, DoubtKind.LOOP, DoubtKind.NOISE), 3.0),
    **dict.fromkeys((DoubtKind.GAP, DoubtKind.END), 2.0),
}


@dataclass(frozen=True, slots=True)
class Doubt:
    """One thing about a take that may not be meant.

    Attributes:
        kind: A `DoubtKind`; a record may come from a studio that knows others.
        figure: What was measured: seconds, decibels, a share or a ratio, as the kind has it.
        message: A sentence with the figure.
    """

    kind: str
    figure: float
    message: str


@dataclass(frozen=True, slots=True)
class Figures:
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
        if not self.usual_s >= _SURE_S:
            return None
        times = self.speech_s / self.usual_s
        return math.log(times) if 0.001 < times < 1000 else None


@dataclass(frozen=True, slots=True)
class Checked:
    """A take's figures, and what is doubtful about it by itself."""

    figures: Figures
    doubts: tuple[Doubt, ...]


@dataclass(frozen=True, slots=True)
class Usual:
    """What the takes of one voice have in common: medians, and how far they spread."""

    level_db: float
    pace: float | None
    pace_spread: float


def check(clip: Clip, said: Said) -> Checked:
    """Look a take over; about a thousandth of the time that it takes to hear it."""
    frames = SoundFrames.of(clip)
    length = usual_length(said)
    figures = Figures(
        round(frames.speech_s, 3), round(frames.speech_db, 2), round(length.middle_s, 3)
    )
    if frames.speech_db < _QUIET_DB:
        return Checked(figures, (_silent(frames),))
    return Checked(figures, tuple(_doubts(clip, said, frames)))


def weight(doubts: Sequence[Doubt]) -> float:
    """How doubtful a take is, to choose among several: 0 when there is nothing."""
    return sum(_WEIGHTS.get(doubt.kind, 1.0) for doubt in doubts)


def together(parts: Sequence[Checked]) -> Checked:
    """What the pieces of one take tell, one or more of them; the same is said once."""
    speech_s = sum(part.figures.speech_s for part in parts)
    power = sum(part.figures.speech_s * 10 ** (part.figures.level_db / 10) for part in parts)
    level_db = 10 * math.log10(max(power / max(speech_s, 1e-3), 1e-12))
    usual_s = sum(part.figures.usual_s for part in parts)
    doubts = dict.fromkeys(doubt for part in parts for doubt in part.doubts)
    return Checked(Figures(speech_s, level_db, usual_s), tuple(doubts))


def usual_of(others: Sequence[Figures]) -> Usual | None:
    """What takes of one voice have in common; None when there are fewer than 8."""
    if len(others) < _FEWEST_OTHERS:
        return None
    level_db = float(np.median([one.level_db for one in others]))
    paces = [pace for one in others if (pace := one.pace) is not None]
    if len(paces) < _FEWEST_OTHERS:
        return Usual(level_db, None, 0.0)
    middle = float(np.median(paces))
    spread = 1.4826 * float(np.median(np.abs(np.asarray(paces) - middle)))
    return Usual(level_db, middle, spread)


def stands_out(figures: Figures, usual: Usual | None) -> tuple[Doubt, ...]:
    """What tells a take from the others of its voice."""
    if usual is None:
        return ()
    found = []
    apart_db = figures.level_db - usual.level_db
    if abs(apart_db) > _LEVEL_APART_DB and figures.level_db >= _QUIET_DB:
        how = "louder" if apart_db > 0 else "quieter"
        message = f"{abs(apart_db):.0f} dB {how} than this voice’s other takes."
        found.append(Doubt(DoubtKind.LEVEL, round(apart_db, 1), message))
    pace = figures.pace
    if pace is not None and usual.pace is not None:
        apart = pace - usual.pace
        if abs(apart) > max(_PACE_APART, _PACE_SPREADS * usual.pace_spread):
            times = math.exp(abs(apart))
            how = "slow" if apart > 0 else "fast"
            message = f"{times:.1f} times as {how} as this voice’s other takes."
            found.append(Doubt(DoubtKind.PACE, round(math.exp(apart), 2), message))
    return tuple(found)


def _doubts(clip: Clip, said: Said, frames: SoundFrames) -> Iterator[Doubt]:
    yield from _length(said, frames)
    yield from _gap(said, frames)
    steady_s, is_last = frames.steady_s(_STEADY_S)
    yield from _not_speech(frames, steady_s, is_last=is_last)
    yield from _edges(clip, frames)
    yield from _clipped(clip)
    if not steady_s:  # which is like itself at every moment
        yield from _loop(said, frames)


def _silent(frames: SoundFrames) -> Doubt:
    level_db = frames.speech_db
    return Doubt(DoubtKind.SILENT, round(level_db, 1), f"Nearly silent, at {level_db:.0f} dB.")


def _length(said: Said, frames: SoundFrames) -> Iterator[Doubt]:
    usual, spoken_s = usual_length(said), frames.speech_s
    longest_s = _LONG_TIMES * usual.most_s + (_LONG_MORE_S + _TAG_S * said.tags) / said.slowness
    shortest_s = _SHORT_TIMES * usual.least_s - _SHORT_LESS_S
    told = f"{spoken_s:.1f} s for {said.amount}; {said.they} usually about {usual.middle_s:.1f} s."
    if spoken_s > longest_s:
        yield Doubt(DoubtKind.LONG, round(spoken_s, 2), told)
    elif spoken_s < shortest_s:
        yield Doubt(DoubtKind.SHORT, round(spoken_s, 2), f"{told} Words may be missing.")


def _gap(said: Said, frames: SoundFrames) -> Iterator[Doubt]:
    gap_s = frames.longest_gap_s()
    if gap_s > (_GAP_S + _GAP_AT_DOTS_S * said.has_dots) / said.slowness:
        message = f"{gap_s:.1f} s of silence inside."
        yield Doubt(DoubtKind.GAP, round(gap_s, 2), message)


def _not_speech(frames: SoundFrames, steady_s: float, *, is_last: bool) -> Iterator[Doubt]:
    """Steady sound anywhere, and whatever goes on after the last word."""
    tail_s = max(frames.tail_s(), steady_s if is_last else 0.0)
    if steady_s and not (is_last and frames.speech_s > steady_s + _LEAST_WORD_S):
        message = f"{steady_s:.1f} s of a steady sound instead of speech."
        yield Doubt(DoubtKind.NOISE, round(steady_s, 2), message)
    elif tail_s > _TAIL_S:
        message = f"It goes on for {tail_s:.1f} s after the last word."
        yield Doubt(DoubtKind.TAIL, round(tail_s, 2), message)


def _edges(clip: Clip, frames: SoundFrames) -> Iterator[Doubt]:
    edge = max(1, round(0.005 * clip.rate_hz))
    for kind, piece, verb in (
        (DoubtKind.BEGIN, clip.samples[:edge], "begins"),
        (DoubtKind.END, clip.samples[-edge:], "ends"),
    ):
        power = float(np.square(piece, dtype=np.float64).mean())
        below_db = frames.speech_db - 10 * math.log10(max(power, 1e-12))
        if below_db < _EDGE_BELOW_SPEECH_DB:
            message = f"It {verb} in the middle of a sound."
            yield Doubt(kind, round(below_db, 1), message)


def _clipped(clip: Clip) -> Iterator[Doubt]:
    share = float((np.abs(clip.samples) >= _CLIPPED).mean())
    if share > _CLIPPED_SHARE:
        message = f"Distorted: {share:.1%} of it is at full scale."
        yield Doubt(DoubtKind.CLIPPED, round(share, 4), message)


def _loop(said: Said, frames: SoundFrames) -> Iterator[Doubt]:
    found = repetition(frames)
    if found is None or repeats_itself(said.text):
        return
    period_s, times = found
    again = f"{times} times" if times > 2 else "twice"
    message = f"The same {period_s:.1f} s are heard {again}, one after the other."
    yield Doubt(DoubtKind.LOOP, round(period_s, 2), message)
