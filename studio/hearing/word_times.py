"""When each word of a take is said, by alignment to the draft voice's reading of its text."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

from studio.audio.clip import Clip, Pcm16, Samples
from studio.hearing.cepstra import STEP_S, compute_cepstra, measure_mel_power, measure_noise
from studio.hearing.draft_reading import DraftReader, DraftReading
from studio.hearing.time_warp import Path, warp_at_any_pace


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

    def moved(self, by_s: float, *, pace: float = 1.0) -> Alignment:
        """The same, spoken `pace` times as fast and then moved; times to the millisecond."""

        def place(at_s: float) -> float:
            return round(at_s / pace + by_s, 3)

        return Alignment(
            tuple(
                replace(one, start_s=place(one.start_s), end_s=place(one.end_s))
                for one in self.words
            ),
            tuple(
                replace(one, start_s=place(one.start_s), end_s=place(one.end_s))
                for one in self.phonemes
            ),
        )


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
    return align_samples(clip.samples, clip.rate_hz, text, reading)


def align_samples(
    samples: Samples | Pcm16, rate_hz: int, text: str, reading: DraftReading
) -> Alignment:
    """As `align`, of samples that may be mapped from a file: [samples], mono."""
    if not len(samples) or not reading.words:
        return Alignment()
    power = measure_mel_power(samples, rate_hz)
    read = compute_cepstra(reading.power, noise=measure_noise(power))
    path = warp_at_any_pace(compute_cepstra(power), read, reading.pauses)
    times = _Times(path, len(samples) / rate_hz)
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
        frames, rows = np.unique(path, return_index=True)
        # Floats, or `np.interp` makes them of all at each call.
        self._frames, self._rows = frames, rows.astype(np.float64)
        self._duration_s = duration_s

    def at(self, frame: float) -> float:
        """Seconds from the take's start, to the millisecond."""
        row = float(np.interp(frame, self._frames, self._rows))
        return round(min(self._duration_s, row * STEP_S), 3)


WordRow = tuple[int, int, int, int]
"""A word's offsets in the text, and its milliseconds."""


class PackedWords:
    """Words as takes keep them, at 16 bytes each: as tuples, a novel's would be 200 MB."""

    __slots__ = ("_numbers",)

    def __init__(self, rows: Iterable[WordRow]) -> None:
        """Pack rows.

        Raises:
            ValueError: A number has more than 32 bits.
        """
        try:
            self._numbers = array("i", chain.from_iterable(rows))
        except OverflowError as error:
            raise ValueError("a word's place is out of any text and take") from error

    def __iter__(self) -> Iterator[WordRow]:
        numbers = iter(self._numbers)
        return zip(numbers, numbers, numbers, numbers, strict=True)

    def __len__(self) -> int:
        return len(self._numbers) // 4

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PackedWords) and self._numbers == other._numbers

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        rows = handler(tuple[WordRow, ...])
        listed = core_schema.plain_serializer_function_ser_schema(list)
        return core_schema.no_info_after_validator_function(cls, rows, serialization=listed)


def pack_words(words: Iterable[WordTime]) -> PackedWords:
    """Words as takes keep them."""
    return PackedWords(
        (one.start, one.end, _to_ms(one.start_s), _to_ms(one.end_s)) for one in words
    )


def pack_phonemes(phonemes: Sequence[PhonemeTime]) -> str:
    """Phonemes as takes keep them: "h 100 162;ə 162 209", in milliseconds."""
    return ";".join(f"{one.ipa} {_to_ms(one.start_s)} {_to_ms(one.end_s)}" for one in phonemes)


def unpack(text: str, words: Iterable[WordRow], phonemes: str) -> Alignment:
    """Words of a text and its phonemes from their packed forms."""
    parts = (one.rsplit(" ", 2) for one in phonemes.split(";") if one)
    return Alignment(
        tuple(
            WordTime(text[a:b], a, b, from_ms / 1000, to_ms / 1000)
            for a, b, from_ms, to_ms in words
        ),
        tuple(PhonemeTime(ipa, int(a) / 1000, int(b) / 1000) for ipa, a, b in parts),
    )


def _to_ms(at_s: float) -> int:
    return round(1000 * at_s)
