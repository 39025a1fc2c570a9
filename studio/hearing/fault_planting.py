"""Faults that are planted into good takes, to measure which of them the checks find."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import soxr

from studio.audio.clip import Clip, Samples
from studio.audio.encode import change_tempo
from studio.hearing.word_times import WordTime
from studio.quality.checks import ExpectedSpeech

_FADE_S = 0.005
_SEMITONES = 2.0
_TAIL_S = (0.8, 2.0)
_KEPT_OF_LAST_WORD = (0.2, 0.6)


class Fault(StrEnum):
    """The kinds of planted faults; reports have these values."""

    WORD_CUT = "word_cut"
    WORD_DOUBLED = "word_doubled"
    WORD_EXCHANGED = "word_exchanged"
    END_CUT = "end_cut"
    TAIL = "tail"
    OTHER_SPEAKER = "other_speaker"
    PITCH = "pitch"
    TEMPO = "tempo"
    """In judgements of older studios: of trained voices the length tells too little."""

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = {
    Fault.WORD_CUT: "a word left out",
    Fault.WORD_DOUBLED: "a word said twice",
    Fault.WORD_EXCHANGED: "a word of another line",
    Fault.END_CUT: "cut off in its last word",
    Fault.TAIL: "babble of another line after its end",
    Fault.OTHER_SPEAKER: "another speaker",
    Fault.PITCH: f"{_SEMITONES:.0f} semitones higher or lower",
    Fault.TEMPO: "faster or slower",
}


@dataclass(frozen=True, slots=True, eq=False)
class PlantableTake:
    """A good take, into which faults are planted.

    Attributes:
        load: Reads its sound, at the studio's rate; all takes of a project may not fit in memory.
        said: What is said in it.
        voice: The voice's name.
        language: BCP-47 code as the take has it; None where its line names none.
        group: Takes of one group should sound alike.
        words: When its words are said, in order; empty where nobody knows.
    """

    load: Callable[[], Clip]
    said: ExpectedSpeech
    voice: str
    language: str | None = None
    group: Hashable = None
    words: Sequence[WordTime] = ()


def plant_fault(
    fault: Fault, take: PlantableTake, others: Sequence[PlantableTake], rng: random.Random
) -> Clip | None:
    """A take with a fault.

    Args:
        fault: What is planted.
        take: It isn't changed.
        others: Further takes, which lend words, lines and tails; this one may be among them.
        rng: Chooses the place and what is lent.

    Returns:
        At the take's rate; None where the fault can't be planted: without word times, or without
        another line or voice to take it from.
    """
    return _PLANTERS[fault](_Plot(take, take.load(), others, rng))


@dataclass(frozen=True, slots=True)
class _Plot:
    """What a fault is planted into, and what it may take."""

    take: PlantableTake
    clip: Clip
    others: Sequence[PlantableTake]
    rng: random.Random

    def choose_other(self, *, same_voice: bool) -> PlantableTake | None:
        fits = [
            one
            for one in self.others
            if one is not self.take and (one.voice == self.take.voice) is same_voice
        ]
        return self.rng.choice(fits) if fits else None


def _cut_word(plot: _Plot) -> Clip | None:
    word = _choose_word(plot.take, plot.rng)
    return None if word is None else _splice(plot.clip, word, np.zeros(0, dtype=np.float32))


def _double_word(plot: _Plot) -> Clip | None:
    word = _choose_word(plot.take, plot.rng)
    if word is None:
        return None
    said = _cut_span(plot.clip, word)
    return _splice(plot.clip, word, np.concatenate([said, said]))


def _exchange_word(plot: _Plot) -> Clip | None:
    word, lender = _choose_word(plot.take, plot.rng), plot.choose_other(same_voice=True)
    lent = None if lender is None else _choose_word(lender, plot.rng)
    if word is None or lender is None or lent is None:
        return None
    return _splice(plot.clip, word, _cut_span(lender.load(), lent))


def _cut_end(plot: _Plot) -> Clip | None:
    if len(plot.take.words) < 2:
        return None
    last = plot.take.words[-1]
    end_s = last.start_s + plot.rng.uniform(*_KEPT_OF_LAST_WORD) * (last.end_s - last.start_s)
    return Clip(plot.clip.samples[: round(end_s * plot.clip.rate_hz)], plot.clip.rate_hz)


def _add_tail(plot: _Plot) -> Clip | None:
    lender = plot.choose_other(same_voice=True)
    if lender is None:
        return None
    lent, rate_hz = lender.load(), plot.clip.rate_hz
    length = min(len(lent), round(plot.rng.uniform(*_TAIL_S) * rate_hz))
    start = plot.rng.randint(0, len(lent) - length)
    tail = _fade(lent.samples[start : start + length].copy(), rate_hz)
    return Clip(np.concatenate([plot.clip.samples, tail]), rate_hz)


def _take_other_speaker(plot: _Plot) -> Clip | None:
    lender = plot.choose_other(same_voice=False)
    return None if lender is None else lender.load()


def _move_pitch(plot: _Plot) -> Clip | None:
    ratio = 2 ** (plot.rng.choice((-1, 1)) * _SEMITONES / 12)
    rate_hz = plot.clip.rate_hz
    moved = soxr.resample(plot.clip.samples, rate_hz * ratio, rate_hz).astype(np.float32)
    return Clip(np.concatenate(list(change_tempo(iter([moved]), 1 / ratio))), rate_hz)


_PLANTERS: dict[Fault, Callable[[_Plot], Clip | None]] = {
    Fault.WORD_CUT: _cut_word,
    Fault.WORD_DOUBLED: _double_word,
    Fault.WORD_EXCHANGED: _exchange_word,
    Fault.END_CUT: _cut_end,
    Fault.TAIL: _add_tail,
    Fault.OTHER_SPEAKER: _take_other_speaker,
    Fault.PITCH: _move_pitch,
}


def _choose_word(take: PlantableTake, rng: random.Random) -> WordTime | None:
    """A word of a take; the first and the last one only where there is no other."""
    words = take.words[1:-1] or take.words
    return rng.choice(words) if len(take.words) > 1 else None


def _cut_span(clip: Clip, word: WordTime) -> Samples:
    return clip.samples[round(word.start_s * clip.rate_hz) : round(word.end_s * clip.rate_hz)]


def _splice(clip: Clip, word: WordTime, instead: Samples) -> Clip:
    """A clip with something else in a word's place, faded at the seams."""
    first, end = round(word.start_s * clip.rate_hz), round(word.end_s * clip.rate_hz)
    pieces = (clip.samples[:first], instead, clip.samples[end:])
    faded = [_fade(piece.copy(), clip.rate_hz) for piece in pieces if len(piece)]
    return Clip(np.concatenate(faded), clip.rate_hz)


def _fade(samples: Samples, rate_hz: int) -> Samples:
    n = min(round(_FADE_S * rate_hz), len(samples) // 2)
    ramp = np.linspace(0.0, 1.0, n, dtype=np.float32)
    samples[:n] *= ramp
    samples[len(samples) - n :] *= ramp[::-1]
    return samples
