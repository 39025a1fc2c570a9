"""The draft voice's reading of a text, with the exact time of each word and phoneme."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import regex

from studio.audio.clip import from_pcm16
from studio.backends.espeak.backend import plain_text
from studio.backends.espeak.espeak_voices import Languages, find_package, language_of_text
from studio.backends.espeak.worker_pool import EspeakWorker, TimedSpeech, Utterance, WorkerPool
from studio.dialog.planning import split_text
from studio.dialog.tags import hide_tags, strip_tags
from studio.errors import ScriptError, SpeechFailed
from studio.hearing.cepstra import N_BANDS, STEP_S, Frames, measure_mel_power

MAX_CHARS = 600  # of a piece that is read at once; half a minute
_PATIENCE_S = 20.0
_VARIANT = "m3"
_PAUSE_S = 0.06  # a pause is as long as this in a reading; the take's own may last
_GLIDE_S = 0.04
"""Within a phrase eSpeak NG's events lie where its sound begins to glide to the next phoneme, so
much before it is there: against a trained Piper's own durations 50 ms for voiceless consonants, 40
for others; after a pause, where nothing glides, 10 and less."""

_WORD = regex.compile(r"\S+")
_EDGE = regex.compile(r"^[\p{P}\p{C}]+|[\p{P}\p{C}]+$")
_LETTER = regex.compile(r"[\p{L}\p{N}]")
_SYMBOL = regex.compile(r"[\p{So}\p{Sk}\p{Cn}\p{Co}\p{Cs}\uFE0F\u200D]")
_SIGN_BEHIND = regex.compile(r"[%‰°\p{S}](?![\p{L}\p{N}])")  # said with the number before it
_UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
)
_PHRASE = regex.compile(r"(?<=\p{Hiragana})(?=[^\p{Hiragana}\p{P}\p{M}ー])")
"""Where a phrase of Japanese begins, mostly; eSpeak NG has one event for a whole clause."""


@dataclass(frozen=True, slots=True)
class ReadWord:
    """A word's first offset in the text and the one after its last, and its frames likewise."""

    start: int
    end: int
    first_frame: float
    end_frame: float


@dataclass(frozen=True, slots=True)
class ReadPhoneme:
    """A phoneme in IPA with stress marks, its first frame and the one after its last."""

    ipa: str
    first_frame: float
    end_frame: float


@dataclass(frozen=True, slots=True)
class DraftReading:
    """A reading of a text.

    Attributes:
        power: The power in mel bands, [frames, bands], with short pauses.
        pauses: Whether each frame is a pause, [frames].
        words: In order; none that has no letter or digit.
        phonemes: In order, without pauses.
    """

    power: Frames
    pauses: npt.NDArray[np.bool_]
    words: tuple[ReadWord, ...]
    phonemes: tuple[ReadPhoneme, ...]


class DraftReader:
    """Reads texts with eSpeak NG, in a process of its own; from any thread."""

    def __init__(self) -> None:
        package = find_package()
        self._languages = Languages(package.folder / "espeak-ng-data")
        self._pool = WorkerPool(lambda: EspeakWorker(package), size=1)

    def read(self, text: str, language: str | None = None) -> DraftReading:
        """Read a text, whose tags and pauses become short pauses.

        Args:
            text: Of any length; it is read in pieces of half a minute.
            language: A BCP-47 code; None, or one that eSpeak NG doesn't know, for that of most of
                the text's letters.

        Raises:
            SpeechFailed: ESpeak NG has no voice for it.
        """
        plain = _PlainText(text)
        reading, voice = _Reading(plain), self._find_voice(text, language)
        for start, piece in _cut_pieces(plain.text, language):
            reading.add(start, *self._pool.run(partial(_speak, Utterance(piece, voice))))
        return reading.finish()

    def _find_voice(self, text: str, language: str | None) -> str:
        own = language_of_text(text)
        found = self._languages.find(language or own) or self._languages.find(own)
        if found is None:
            raise SpeechFailed(f"eSpeak NG can't read the language “{language or own}”.")
        return f"{found.voice_file}+{_VARIANT}"

    def close(self) -> None:
        """End the process."""
        self._pool.close()


def _speak(utterance: Utterance, worker: EspeakWorker) -> tuple[TimedSpeech, int]:
    return worker.speak_timed(utterance, timeout_s=_PATIENCE_S), worker.rate_hz


class _PlainText:
    """A text as eSpeak NG gets it, and the place of each of its characters in the text.

    A tag is a comma here, so that eSpeak NG pauses there.
    """

    def __init__(self, text: str) -> None:
        self.written = text
        chars: list[tuple[str, int]] = []
        end = 0
        for start, stop in strip_tags(text):
            if start > end:
                chars.append((",", end))
            chars += [(char, at) for at, char in enumerate(text[start:stop], start)]
            end = stop
        kept = [(self._plain(char), at) for char, at in chars]
        self.text = "".join(char for char, _ in kept)
        self.places = [at for char, at in kept for _ in char]

    @staticmethod
    def _plain(char: str) -> str:
        if _SYMBOL.match(char) and char != "\u200d":
            return " "  # eSpeak NG says emoji by their names; others are silent
        return plain_text(char) or (" " if char.isspace() else "")


def _cut_pieces(text: str, language: str | None) -> Iterator[tuple[int, str]]:
    """Pieces to read, each with its offset."""
    at = 0
    for piece in _split(text, language or language_of_text(text)):
        at = text.index(piece, at)
        if _LETTER.search(piece):
            yield at, piece
        at += len(piece)


def _split(text: str, language: str) -> list[str]:
    try:
        return split_text(text, MAX_CHARS, language)
    except ScriptError:  # a word of a thousand letters
        return [text[start : start + MAX_CHARS] for start in range(0, len(text), MAX_CHARS)]


class _Reading:
    """A reading that is put together from pieces."""

    def __init__(self, plain: _PlainText) -> None:
        self._plain = plain
        self._power: list[Frames] = []
        self._pauses: list[npt.NDArray[np.bool_]] = []
        self._frames = 0
        self._words: list[tuple[int, float]] = []  # place in the text, first frame
        self._phonemes: list[tuple[str, float]] = []

    def add(self, start: int, speech: TimedSpeech, rate_hz: int) -> None:
        """Add a piece that starts at an offset of the plain text."""
        edge = round(_PAUSE_S * rate_hz)
        samples = np.pad(from_pcm16(speech.pcm), edge)
        power = measure_mel_power(samples, rate_hz)
        per_frame = STEP_S * rate_hz
        events = [(0.0, ""), *((edge + at, ipa) for at, ipa in speech.phonemes)]
        events.append((edge + len(speech.pcm), ""))
        sounds = _find_sounds(events, round(_GLIDE_S * rate_hz))
        phonemes = [(ipa, at / per_frame) for (_, ipa), at in zip(events, sounds, strict=True)]
        pauses = _find_pauses(phonemes, len(power))
        kept = _shorten(pauses)
        places = self._frames + np.cumsum(kept) - 1.0
        at_frames = _interpolate(places, [frame for _, frame in phonemes])
        self._phonemes += zip((ipa for ipa, _ in phonemes), at_frames, strict=True)
        starts = np.interp([edge + at for at, _ in speech.words], [at for at, _ in events], sounds)
        at_frames = _interpolate(places, list(starts / per_frame))
        for (_, offset), frame in zip(speech.words, at_frames, strict=True):
            where = min(start + max(0, offset), len(self._plain.places) - 1)
            self._words.append((self._plain.places[where], frame))
        self._power.append(power[kept])
        self._pauses.append(pauses[kept])
        self._frames += int(kept.sum())

    def finish(self) -> DraftReading:
        """The whole reading."""
        ends = [frame for _, frame in self._phonemes[1:]]
        phonemes = tuple(
            ReadPhoneme(ipa, first, end)
            for (ipa, first), end in zip(self._phonemes, ends, strict=False)
            if ipa and end > first
        )
        nothing = np.zeros((0, N_BANDS), dtype=np.float32)
        return DraftReading(
            np.concatenate([nothing, *self._power]),
            np.concatenate([np.zeros(0, dtype=bool), *self._pauses]),
            tuple(self._place_words(phonemes)),
            phonemes,
        )

    def _place_words(self, phonemes: Sequence[ReadPhoneme]) -> Iterator[ReadWord]:
        """The text's words; those that eSpeak NG says as one share its time by their letters."""
        written = self._plain.written
        spans = find_words(written, [at for at, _ in self._words])
        starts = [start for start, _ in spans]
        first_frames: dict[int, float] = {}  # of each word that has an event
        for at, frame in self._words:
            word = bisect_right(starts, at) - 1
            if word < 0 or (at >= spans[word][1] and not _SIGN_BEHIND.match(written, at)):
                word += 1  # in front of a word, such as an opening quotation mark
            first_frames.setdefault(word, frame)
        known = sorted(word for word in first_frames if word < len(spans))
        for word, following in pairwise([*known, len(spans)]):
            first = first_frames[word]
            end = self._find_end(first, first_frames.get(following, float(self._frames)), phonemes)
            shared = spans[0 if word == known[0] else word : following]
            shares = np.cumsum([0, *(stop - start for start, stop in shared)])
            edges = first + (end - first) * shares / shares[-1]
            for (start, stop), (from_frame, to_frame) in zip(shared, pairwise(edges), strict=True):
                yield ReadWord(start, stop, float(from_frame), float(to_frame))

    @staticmethod
    def _find_end(first: float, following: float, phonemes: Sequence[ReadPhoneme]) -> float:
        """The end of the last phoneme before the next word, which a pause may follow."""
        last = bisect_left(phonemes, following, key=lambda one: one.first_frame) - 1
        end = phonemes[last].end_frame if last >= 0 else first
        return max(first, min(following, end))


def _find_sounds(events: Sequence[tuple[float, str]], glide: int) -> list[float]:
    """Where the phonemes of events begin to sound, in samples; those after a pause at once."""
    moved: list[float] = []
    for (_, before), (at, ipa), (following, behind) in zip(
        events, events[1:], events[2:], strict=False
    ):
        later = at + glide if before and ipa else at
        moved.append(later if behind else min(later, following))
    return [events[0][0], *moved, events[-1][0]]


def _find_pauses(phonemes: Sequence[tuple[str, float]], n_frames: int) -> npt.NDArray[np.bool_]:
    """Whether each frame is silent; between the last phoneme's start and the end it is."""
    pauses = np.ones(n_frames, dtype=bool)
    for (ipa, first), (_, end) in pairwise(phonemes):
        if ipa:
            pauses[round(first) : max(round(first) + 1, round(end))] = False
    return pauses


def _shorten(pauses: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which frames to keep, so that no pause is longer than `_PAUSE_S`."""
    numbers = np.arange(len(pauses))
    latest_speech = np.maximum.accumulate(np.where(pauses, -1, numbers))
    kept: npt.NDArray[np.bool_] = numbers - latest_speech <= round(_PAUSE_S / STEP_S)
    return kept


def _interpolate(places: npt.NDArray[np.floating], frames: Sequence[float]) -> list[float]:
    """The places of frames among those kept."""
    found: list[float] = np.interp(frames, np.arange(len(places)), places).tolist()
    return found


def find_words(text: str, events: Sequence[int] = ()) -> list[tuple[int, int]]:
    """The words of a text by their offsets, without tags and the marks around them.

    Args:
        text: As it is written.
        events: Offsets that begin a word in text without spaces between words.
    """
    return list(_iter_words(text, events))


def _iter_words(text: str, events: Sequence[int]) -> Iterator[tuple[int, int]]:
    for match in _WORD.finditer(hide_tags(text)):
        edges = [match.start(), match.end()]
        if _UNSPACED.search(match[0]):
            phrases = (one.start() for one in _PHRASE.finditer(text, edges[0], edges[1]))
            edges[1:1] = sorted({at for at in (*events, *phrases) if edges[0] < at < edges[1]})
        for start, end in pairwise(edges):
            piece = text[start:end]
            if _LETTER.search(piece):
                inner = _EDGE.sub("", piece)
                first = start + piece.index(inner)
                yield first, first + len(inner)
