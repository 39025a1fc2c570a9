"""The draft voice's speech with the time of every word, and faults planted at those times."""

from __future__ import annotations

import ctypes
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from studio.audio.clip import Samples
from studio.backends.base import Conditioning, SpeechRequest
from studio.backends.espeak.backend import finish_clip, utterance_for
from studio.backends.espeak.espeak_voices import Languages, draft_voice, find_package
from studio.backends.espeak.worker_pool import Utterance
from studio.voices.speaker import Voice

Pcm = npt.NDArray[np.int16]

_WORD_EVENT, _LIST_END = 1, 0
_FADE_SAMPLES = 66  # 3 ms: a seam without a click


class _Event(ctypes.Structure):
    """eSpeak NG's `espeak_EVENT` (speak_lib.h, 1.52)."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    ]


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Event))


@dataclass(frozen=True, slots=True, eq=False)
class SpokenLine:
    """A line before it is resampled and levelled.

    Attributes:
        words: What is said, word by word; words that eSpeak NG reads as one are one ("of the").
        pieces: int16 [samples] of each word, up to the next; joined, they are the line.
        rate_hz: Of the pieces.
        shift: As `finish_clip` takes it.
    """

    words: tuple[str, ...]
    pieces: tuple[Pcm, ...]
    rate_hz: int
    shift: float

    def render(self) -> Samples:
        """The line as the draft voice's backend gives it, faded at the seams."""
        return finish_clip(_join(self.pieces), self.rate_hz, shift=self.shift)

    def without(self, first: int, count: int) -> SpokenLine:
        """The line with words left out."""
        return self._splice(first, count, (), ())

    def doubled(self, first: int, count: int) -> SpokenLine:
        """The line with words said twice."""
        end = first + count
        return self._splice(end, 0, self.words[first:end], self.pieces[first:end])

    def exchanged(self, first: int, other: SpokenLine, at: int, count: int) -> SpokenLine:
        """The line with as many words of another line of the same voice in their place."""
        end = at + count
        return self._splice(first, count, other.words[at:end], other.pieces[at:end])

    def _splice(
        self, first: int, count: int, words: Sequence[str], pieces: Sequence[Pcm]
    ) -> SpokenLine:
        end = first + count
        return SpokenLine(
            (*self.words[:first], *words, *self.words[end:]),
            (*self.pieces[:first], *pieces, *self.pieces[end:]),
            self.rate_hz,
            self.shift,
        )


def _join(pieces: Sequence[Pcm]) -> Pcm:
    """Pieces end to end, each faded at both ends so that no seam clicks."""
    fade = np.linspace(0.0, 1.0, _FADE_SAMPLES, dtype=np.float32)
    joined = []
    for piece in pieces:
        faded = piece.astype(np.float32)
        n = min(_FADE_SAMPLES, len(faded) // 2)
        if n:
            faded[:n] *= fade[:n]
            faded[-n:] *= fade[:n][::-1]
        joined.append(faded)
    return cast(Pcm, np.concatenate(joined).astype(np.int16))


class WordSpeaker:
    """eSpeak NG in this process, a line at a time. Not for the studio: its state is global."""

    def __init__(self) -> None:
        """Load the library.

        Raises:
            ModelUnavailable: Its package is missing.
        """
        package = find_package()
        self._languages = Languages(package.folder / "espeak-ng-data")
        self._espeak: Any = ctypes.CDLL(str(package.library))
        folder = os.fsencode(package.folder)
        self._rate_hz: int = self._espeak.espeak_Initialize(2, 1000, folder, 0x8000)
        self._pcm = bytearray()
        self._starts: list[tuple[int, int]] = []
        self._callback = _Callback(self._take)
        self._espeak.espeak_SetSynthCallback(self._callback)

    def speak(
        self,
        text: str,
        speaker: str,
        *,
        language: str = "en",
        params: Mapping[str, float] | None = None,
    ) -> SpokenLine:
        """Speak a line as the draft voice of a speaker does.

        Args:
            text: Words divided by single spaces, with their punctuation.
            speaker: The name, which chooses the voice.
            language: A BCP-47 code.
            params: Of the draft voice, where they aren't its defaults.
        """
        conditioning = Conditioning(draft_voice(Voice(speaker)), 0)
        found = self._languages.find(language)
        assert found is not None, language
        request = SpeechRequest(text, conditioning, params=params or {})
        utterance, shift = utterance_for(text, request, found)
        pcm, starts = self._synthesize(utterance)
        begins = sorted(at for at in starts if at == 0 or text[at - 1] == " ")
        words = tuple(
            text[a:b].strip() for a, b in zip(begins, [*begins[1:], len(text)], strict=True)
        )
        bounds = [0, *(starts[at] for at in begins[1:]), len(pcm)]
        pieces = tuple(pcm[a:b] for a, b in pairwise(bounds))
        return SpokenLine(words, pieces, self._rate_hz, shift)

    def _synthesize(self, utterance: Utterance) -> tuple[Pcm, dict[int, int]]:
        """The sound, and the first sample of each word by its place in the text."""
        self._pcm.clear()
        self._starts.clear()
        self._espeak.espeak_SetVoiceByName(utterance.voice.encode())
        settings = {
            1: utterance.words_per_minute,
            2: 50,
            3: utterance.pitch,
            4: utterance.pitch_range,
        }
        for parameter, value in settings.items():
            self._espeak.espeak_SetParameter(parameter, value, 0)
        data = utterance.text.encode() + b"\0"
        self._espeak.espeak_Synth(data, len(data), 0, 1, 0, 1, None, None)
        return np.frombuffer(bytes(self._pcm), dtype=np.int16), dict(self._starts)

    def _take(self, samples: int | None, n_samples: int, events: Any) -> int:
        at = 0
        while events and events[at].type != _LIST_END:
            if events[at].type == _WORD_EVENT:
                self._starts.append((events[at].text_position - 1, events[at].sample))
            at += 1
        if samples and n_samples > 0:
            self._pcm += ctypes.string_at(samples, 2 * n_samples)
        return 0


def plant_fault(
    line: SpokenLine, other: SpokenLine, kind: str, chance: random.Random
) -> tuple[SpokenLine, int, int]:
    """Plant one fault into a line.

    Args:
        line: Of two words or more.
        other: Of the same voice, to take words from.
        kind: "missing", "repeated" or "replaced".
        chance: Chooses the place, and one or two words.

    Returns:
        The spoilt line, and the first of its words that the fault is at and how many.
    """
    count = min(chance.choice((1, 1, 2)), len(line.words) - 1, len(other.words))
    first = chance.randrange(len(line.words) - count + 1)
    if kind == "missing":
        return line.without(first, count), first, count
    if kind == "repeated":
        return line.doubled(first, count), first, count
    at = chance.randrange(len(other.words) - count + 1)
    return line.exchanged(first, other, at, count), first, count
