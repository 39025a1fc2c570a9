"""Faults that are planted into good takes, to measure which of them the checks find."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import soxr

from studio.audio.clip import Clip, Samples
from studio.audio.encode import change_tempo
from studio.quality.checks import ExpectedSpeech, TakeMetrics

_FADE_S = 0.005
_SEMITONES = 2.0
_TEMPO = 1.12
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


class WordSpan(Protocol):
    """When a word is said in a take."""

    @property
    def start_s(self) -> float:
        """Seconds of the take."""

    @property
    def end_s(self) -> float:
        """Seconds of the take."""


@dataclass(frozen=True, slots=True, eq=False)
class PlantableTake:
    """A good take, into which faults are planted.

    Attributes:
        clip: At the studio's rate.
        said: What is said in it.
        voice: The voice's name.
        language: BCP-47 code; None if unknown.
        metrics: As its record has them.
        words: When its words are said, in order; empty where nobody knows.
        group: Takes of one group should sound alike.
    """

    clip: Clip
    said: ExpectedSpeech
    voice: str
    language: str | None
    metrics: TakeMetrics
    words: Sequence[WordSpan] = ()
    group: object = None


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
    return _PLANTERS[fault](take, [one for one in others if one is not take], rng)


Planter = Callable[[PlantableTake, Sequence[PlantableTake], random.Random], Clip | None]


def _cut_word(
    take: PlantableTake, others: Sequence[PlantableTake], rng: random.Random
) -> Clip | None:
    word = _choose_word(take, rng)
    return None if word is None else _splice(take.clip, word, np.zeros(0, dtype=np.float32))


def _double_word(
    take: PlantableTake, others: Sequence[PlantableTake], rng: random.Random
) -> Clip | None:
    word = _choose_word(take, rng)
    if word is None:
        return None
    said = _cut_span(take.clip, word)
    return _splice(take.clip, word, np.concatenate([said, said]))


def _exchange_word(
    take: PlantableTake, others: Sequence[PlantableTake], rng: random.Random
) -> Clip | None:
    word, lender = _choose_word(take, rng), _choose_other(take, others, rng, same_voice=True)
    lent = None if lender is None else _choose_word(lender, rng)
    if word is None or lender is None or lent is None:
        return None
    return _splice(take.clip, word, _cut_span(lender.clip, lent))


def _cut_end(
    take: PlantableTake, others: Sequence[PlantableTake], rng: random.Random
) -> Clip | None:
    if len(take.words) < 2:
        return None
    last = take.words[-1]
    end_s = last.start_s + rng.uniform(*_KEPT_OF_LAST_WORD) * (last.end_s - last.start_s)
    return Clip(take.clip.samples[: round(end_s * take.clip.rate_hz)], take.clip.rate_hz)


def _add_tail(
    take: PlantableTake, others: Sequence[PlantableTake], rng: random.Random
) -> Clip | None:
    lender = _choose_other(take, others, rng, same_voice=True)
    if lender is None:
        return None
    rate_hz = take.clip.rate_hz
    length = min(len(lender.clip), round(rng.uniform(*_TAIL_S) * rate_hz))
    start = rng.randint(0, len(lender.clip) - length)
    tail = _fade(lender.clip.samples[start : start + length].copy(), rate_hz)
    return Clip(np.concatenate([take.clip.samples, tail]), rate_hz)


def _take_other_speaker(
    take: PlantableTake, others: Sequence[PlantableTake], rng: random.Random
) -> Clip | None:
    lender = _choose_other(take, others, rng, same_voice=False)
    return None if lender is None else lender.clip


def _move_pitch(
    take: PlantableTake, others: Sequence[PlantableTake], rng: random.Random
) -> Clip | None:
    ratio = 2 ** (rng.choice((-1, 1)) * _SEMITONES / 12)
    rate_hz = take.clip.rate_hz
    moved = soxr.resample(take.clip.samples, rate_hz * ratio, rate_hz)
    return _change_tempo(Clip(moved.astype(np.float32), rate_hz), 1 / ratio)


def _move_tempo(
    take: PlantableTake, others: Sequence[PlantableTake], rng: random.Random
) -> Clip | None:
    return _change_tempo(take.clip, _TEMPO ** rng.choice((-1, 1)))


_PLANTERS: dict[Fault, Planter] = {
    Fault.WORD_CUT: _cut_word,
    Fault.WORD_DOUBLED: _double_word,
    Fault.WORD_EXCHANGED: _exchange_word,
    Fault.END_CUT: _cut_end,
    Fault.TAIL: _add_tail,
    Fault.OTHER_SPEAKER: _take_other_speaker,
    Fault.PITCH: _move_pitch,
    Fault.TEMPO: _move_tempo,
}


def _change_tempo(clip: Clip, speed: float) -> Clip:
    return Clip(np.concatenate(list(change_tempo(iter([clip.samples]), speed))), clip.rate_hz)


def _choose_word(take: PlantableTake, rng: random.Random) -> WordSpan | None:
    """A word of a take; the first and the last one only where there is no other."""
    words = take.words[1:-1] or take.words
    return rng.choice(words) if len(take.words) > 1 else None


def _choose_other(
    take: PlantableTake,
    others: Sequence[PlantableTake],
    rng: random.Random,
    *,
    same_voice: bool,
) -> PlantableTake | None:
    fits = [one for one in others if (one.voice == take.voice) is same_voice]
    return rng.choice(fits) if fits else None


def _cut_span(clip: Clip, word: WordSpan) -> Samples:
    return clip.samples[round(word.start_s * clip.rate_hz) : round(word.end_s * clip.rate_hz)]


def _splice(clip: Clip, word: WordSpan, instead: Samples) -> Clip:
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
