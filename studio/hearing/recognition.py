"""Recognisers: the words that are said in a recording, with their times; sherpa-onnx runs them."""

from __future__ import annotations

import os
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from studio.audio.clip import Clip, Samples, resample, split_blocks
from studio.backends.sherpa import load_check
from studio.backends.sherpa.catalogue import find_folders
from studio.backends.sherpa.sherpa_model import locate_files, try_load
from studio.errors import AudioRejected, Cancelled
from studio.hearing.listeners import Listener
from studio.hearing.model_catalogue import HearingModel

LONGEST_PIECE_S = 24.0
"""Longer recordings are cut at their quietest places: Whisper takes 30 s, and the memory of others
grows with the square of it."""

_RATE_HZ = 16_000
_SHORTEST_S = 0.5  # a shorter piece gets silence behind it
_CUT_FROM_S = 14.0
_CUT_STEP_S = 0.02
_SILENT = 1e-3  # -60 dB of full scale: some recognisers hear words in nothing
_LOW_PRIORITY = 10  # nice


@dataclass(frozen=True, slots=True)
class RecognisedWord:
    """A word as it was recognised.

    Attributes:
        text: With its punctuation, where the recogniser writes any.
        start_s: When it begins in the recording; None where the recogniser doesn't say.
        end_s: When it ends, at the latest when the next one begins.
    """

    text: str
    start_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """What is said in a recording.

    Attributes:
        text: All of it; empty where nothing was recognised.
        words: In order.
        language: The BCP-47 code of what was recognised; None where the recogniser doesn't say.
    """

    text: str
    words: tuple[RecognisedWord, ...]
    language: str | None = None


class Recogniser(Listener):
    """A recogniser; one recording at a time."""

    kind = "recogniser"

    def transcribe(self, clip: Clip, cancelled: Callable[[], bool] = lambda: False) -> Transcript:
        """Recognise what is said; a long recording in pieces, cut at its quietest places.

        Args:
            clip: Of any rate and length.
            cancelled: Polled before each piece.

        Raises:
            AudioRejected: The model fails at this recording.
            Cancelled: `cancelled` became true.
        """
        recogniser = self._take_loaded()
        words: list[RecognisedWord] = []
        language = None
        for at_s, piece in cut_at_pauses(clip):
            if cancelled():
                raise Cancelled("The recording was not recognised to its end.")
            if np.abs(piece).max(initial=0.0) < _SILENT:
                continue
            result = self._recognise(recogniser, piece, clip.rate_hz)
            words += read_words(result, at_s, at_s + len(piece) / clip.rate_hz)
            language = language or result.lang.strip("<|>") or None
        return Transcript(_join_words(words), tuple(words), language)

    def _build(self, files: Mapping[str, str]) -> Any:
        return load_check.build_recogniser(self.model.family, files, threads=1)

    def _recognise(self, recogniser: Any, piece: Samples, rate_hz: int) -> Any:
        heard = np.concatenate([*resample(split_blocks(piece), rate_hz, _RATE_HZ)])
        lacking = max(0, round(_SHORTEST_S * _RATE_HZ) - len(heard))
        stream = recogniser.create_stream()
        stream.accept_waveform(_RATE_HZ, np.pad(heard, (0, lacking)))
        try:
            recogniser.decode_stream(stream)
        except RuntimeError as error:
            raise AudioRejected(f"{self.title} failed at this recording: {error}") from error
        return stream.result


def cut_at_pauses(clip: Clip) -> Iterator[tuple[float, Samples]]:
    """A recording in pieces of at most `LONGEST_PIECE_S`, as views, each with its start in seconds.

    A cut is at the quietest place of the last 10 s that a piece may have.
    """
    rate_hz, samples = clip.rate_hz, clip.samples
    longest, step = round(LONGEST_PIECE_S * rate_hz), round(_CUT_STEP_S * rate_hz)
    start = 0
    while len(samples) - start > longest:
        first = start + round(_CUT_FROM_S * rate_hz)
        steps = samples[first : start + longest]
        steps = steps[: len(steps) // step * step].reshape(-1, step)
        quietest = int(np.einsum("ns,ns->n", steps, steps).argmin())
        end = first + quietest * step + step // 2
        yield start / rate_hz, samples[start:end]
        start = end
    yield start / rate_hz, samples[start:]


def read_words(result: Any, start_s: float, end_s: float) -> list[RecognisedWord]:
    """The words of a piece of a recording between two times.

    Args:
        result: sherpa-onnx's, with `text`, and `tokens` and `timestamps` where the family has them;
            a token that begins a word begins with a space.
        start_s: The piece's start in the recording.
        end_s: Its end.
    """
    tokens, times = list(result.tokens), list(result.timestamps)
    if not tokens or len(times) != len(tokens):
        return [RecognisedWord(word) for word in split_words(result.text)]
    groups: list[tuple[str, float]] = []
    is_open = False
    for token, at_s in zip(tokens, times, strict=True):
        text = token.replace("▁", " ")
        if not text.strip():
            is_open = False
        elif is_open and groups and not text[0].isspace() and not _stands_alone(text[0]):
            groups[-1] = groups[-1][0] + text, groups[-1][1]
        else:
            groups.append((text.strip(), start_s + at_s))
            is_open = True
    ends = [*(at_s for _, at_s in groups[1:]), end_s]
    return [
        RecognisedWord(text, round(at_s, 3), round(max(at_s, until_s), 3))
        for (text, at_s), until_s in zip(groups, ends, strict=True)
    ]


def split_words(text: str) -> list[str]:
    """The words of text; each character of a script without spaces is one."""
    spaced = "".join(f" {char} " if _stands_alone(char) else char for char in text)
    return spaced.split()


def _stands_alone(char: str) -> bool:
    """Whether a character is a word of its own: Chinese characters, kana, Thai and the like."""
    name = unicodedata.name(char, "")
    return name.startswith(("CJK UNIFIED", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER"))


def _join_words(words: Sequence[RecognisedWord]) -> str:
    text = ""
    for word in words:
        glued = not text or (_stands_alone(text[-1]) and _stands_alone(word.text[0]))
        text += word.text if glued else f" {word.text}"
    return text


def identify_language(model: HearingModel, clip: Clip) -> str | None:
    """The BCP-47 code of the language of a recording's first half minute, by a Whisper model.

    It is loaded for this one: samples come seldom, and it takes hundreds of megabytes.

    Raises:
        AudioRejected: It fails at this recording.
    """
    folders = find_folders(model)
    try_load(model, folders, family=model.family, kind="language")
    head = clip.samples[: round(LONGEST_PIECE_S * clip.rate_hz)]
    samples = np.concatenate([*resample(split_blocks(head), clip.rate_hz, _RATE_HZ)])
    try:
        identifier = load_check.build_language_identifier(locate_files(model, folders), threads=1)
        stream = identifier.create_stream()
        stream.accept_waveform(_RATE_HZ, samples)
        code: str = identifier.compute(stream)
    except (ValueError, RuntimeError) as error:
        raise AudioRejected(f"{model.title} can't tell the language: {error}") from error
    return code or None


def lower_priority() -> None:
    """Let this thread yield to others; only Linux has a priority for each thread."""
    if hasattr(os, "setpriority") and os.uname().sysname == "Linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOW_PRIORITY)
