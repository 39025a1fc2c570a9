"""When each word of a take is said: the take is aligned to the draft voice's reading of its text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from studio.audio.clip import Clip
from studio.hearing.cepstra import STEP_S, compute_cepstra, measure_mel_power, measure_noise
from studio.hearing.draft_reading import DraftReader, DraftReading
from studio.hearing.time_warp import Path, warp


@dataclass(frozen=True, slots=True)
class WordTime:
    """When a word is said.

    Attributes:
        word: As it stands in the text, without punctuation around it.
        start: Offset of its first character in the text.
        end: Offset of the character after its last.
        start_s: When it begins, in seconds of the take.
        end_s: When it ends; before the next word where a pause follows.
    """

    word: str
    start: int
    end: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class PhonemeTime:
    """When a phoneme is said: `ipa` may have stress marks; times are seconds of the take."""

    ipa: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Alignment:
    """The words and phonemes of a take, in order."""

    words: tuple[WordTime, ...] = ()
    phonemes: tuple[PhonemeTime, ...] = ()


def align_words(
    clip: Clip, text: str, language: str | None = None, *, reader: DraftReader
) -> tuple[WordTime, ...]:
    """When each word of a text is said in a clip, in this process.

    As `align`, without the phonemes.
    """
    return align(clip, text, reader.read(text, language)).words


def align(clip: Clip, text: str, reading: DraftReading) -> Alignment:
    """Align a clip to a reading of its text.

    It never fails: of a clip in which the text isn't said, the times are of no use. Nothing is
    aligned to an empty clip, or where nothing is to be said.

    Args:
        clip: Speech; of any length, rate and level.
        text: What is said in it, as it was given to the voice.
        reading: `DraftReader.read` of this text.

    Returns:
        Words and phonemes in order, with times that never fall, within the clip.
    """
    if not len(clip) or not reading.words:
        return Alignment()
    power = measure_mel_power(clip.samples, clip.rate_hz)
    path = warp(
        compute_cepstra(power),
        compute_cepstra(reading.power, noise=measure_noise(power)),
        reading.pauses,
    )
    times = _Times(path, clip.duration_s)
    return Alignment(
        tuple(
            WordTime(
                text[word.start : word.end],
                word.start,
                word.end,
                times.at(word.first_frame),
                times.at(word.end_frame),
            )
            for word in reading.words
        ),
        tuple(
            PhonemeTime(one.ipa, times.at(one.first_frame), times.at(one.end_frame))
            for one in reading.phonemes
        ),
    )


class _Times:
    """The times of the take at which frames of the reading are reached."""

    def __init__(self, path: Path, duration_s: float) -> None:
        # The first row of each frame that is said; between two of them time runs evenly.
        self._frames, self._rows = np.unique(path, return_index=True)
        self._duration_s = duration_s

    def at(self, frame: float) -> float:
        """Seconds from the take's start, to the millisecond."""
        row = float(np.interp(frame, self._frames, self._rows))
        return round(min(self._duration_s, row * STEP_S), 3)
