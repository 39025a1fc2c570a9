"""Recognisers: the words that are said in a recording, with their times.

CTranslate2 runs Whisper, by faster-whisper; sherpa-onnx runs the others.
"""

from __future__ import annotations

import os
import threading
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from studio.audio.clip import Clip, Samples, resample, split_blocks
from studio.backends.sherpa import load_check
from studio.backends.sherpa.catalogue import find_folders
from studio.backends.sherpa.sherpa_model import locate_files, try_load
from studio.errors import AudioRejected, Cancelled
from studio.hearing.listeners import Listener
from studio.hearing.model_catalogue import WHISPER_FAMILY, HearingModel, lacks_package

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
        probability: That it is this word, in (0, 1]; None where the recogniser doesn't say.
    """

    text: str
    start_s: float | None = None
    end_s: float | None = None
    probability: float | None = None


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

    def transcribe(
        self,
        clip: Clip,
        language: str | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Transcript:
        """Recognise what is said; a long recording in pieces, cut at its quietest places.

        Args:
            clip: Of any rate and length.
            language: The BCP-47 code of what is said; None, or one that it doesn't know, to find
                out.
            cancelled: Polled before each piece.

        Raises:
            AudioRejected: The model fails at this recording.
            Cancelled: `cancelled` became true.
        """
        loaded = self._take_loaded()
        words: list[RecognisedWord] = []
        found = None
        for at_s, piece in cut_at_pauses(clip):
            if cancelled():
                raise Cancelled("The recording was not recognised to its end.")
            if np.abs(piece).max(initial=0.0) < _SILENT:
                continue
            heard = np.concatenate([*resample(split_blocks(piece), clip.rate_hz, _RATE_HZ)])
            try:
                said, code = self._recognise(loaded, heard, at_s, language or found)
            except RuntimeError as error:
                raise AudioRejected(f"{self.title} failed at this recording: {error}") from error
            words += said
            found = found or code
        return Transcript(_join_words(words), tuple(words), found)

    @abstractmethod
    def _recognise(
        self, loaded: Any, samples: Samples, at_s: float, language: str | None
    ) -> tuple[list[RecognisedWord], str | None]:
        """The words of a piece that begins at `at_s`, at 16,000 Hz, and its language if known."""


class SherpaRecogniser(Recogniser):
    """One that sherpa-onnx runs; it finds the language by itself, where it knows several."""

    def _build(self, files: Mapping[str, str]) -> Any:
        return load_check.build_recogniser(self.model.family, files, threads=1)

    def _recognise(
        self, loaded: Any, samples: Samples, at_s: float, language: str | None
    ) -> tuple[list[RecognisedWord], str | None]:
        del language
        lacking = max(0, round(_SHORTEST_S * _RATE_HZ) - len(samples))
        stream = loaded.create_stream()
        stream.accept_waveform(_RATE_HZ, np.pad(samples, (0, lacking)))
        loaded.decode_stream(stream)
        result = stream.result
        words = read_words(result, at_s, at_s + len(samples) / _RATE_HZ)
        return words, result.lang.strip("<|>") or None


class WhisperRecogniser(Recogniser):
    """Whisper by CTranslate2: words with their times and probabilities, in 99 languages."""

    package = "faster-whisper"

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None when its package is installed."""
        return lacks_package(self.model)

    def _build(self, files: Mapping[str, str]) -> Any:
        return _load_whisper(str(Path(files["model"]).parent))

    def _recognise(
        self, loaded: Any, samples: Samples, at_s: float, language: str | None
    ) -> tuple[list[RecognisedWord], str | None]:
        speech = _find_speech(samples)
        if speech is None:
            return [], None
        code = _name_language(loaded, language)
        segments, about = loaded.transcribe(
            samples[speech],
            language=code,
            temperature=0.0,  # the same recording, the same words; and no second try
            condition_on_previous_text=False,
            initial_prompt=_VERBATIM if code == "en" else None,
            word_timestamps=True,
        )
        at_s += speech.start / _RATE_HZ
        words = [
            RecognisedWord(
                word.word.strip(),
                round(at_s + word.start, 3),
                round(at_s + word.end, 3),
                round(float(word.probability), 3),
            )
            for segment in segments
            for word in segment.words
            if _may_be_said(word.word.strip(), word.end - word.start)
        ]
        return words, about.language


_VERBATIM = "I, I, I don't don't know the the man, man."
"""After such words Whisper writes what is said twice, which else it corrects."""

_BEFORE_SPEECH_S, _BEHIND_SPEECH_S = 0.3, 0.5
_BEHIND_WINDOW_FRAMES = 100  # a second: with less a last word may get lost
_SHORTEST_WORD_S, _SHORTEST_LETTER_S = 0.03, 0.02
_SHORT_LETTERS = 4
_WHISPER_CODES = {"nb": "no", "fil": "tl", "jv": "jw", "cmn": "zh"}


def _find_speech(samples: Samples) -> slice | None:
    """The samples in which somebody speaks; in music, noise and silence Whisper hears words."""
    from faster_whisper.vad import get_speech_timestamps  # noqa: PLC0415 - on first use

    found = get_speech_timestamps(samples, sampling_rate=_RATE_HZ)
    if not found:
        return None
    start = found[0]["start"] - round(_BEFORE_SPEECH_S * _RATE_HZ)
    return slice(max(0, start), found[-1]["end"] + round(_BEHIND_SPEECH_S * _RATE_HZ))


def _may_be_said(word: str, duration_s: float) -> bool:
    """Whether a word takes time: behind the end Whisper may write the last ones again, in none."""
    letters = len(word.strip(".,;:!?"))
    least_s = _SHORTEST_LETTER_S * letters if letters >= _SHORT_LETTERS else 0.0
    return letters > 0 and duration_s >= max(_SHORTEST_WORD_S, least_s)


def _name_language(loaded: Any, language: str | None) -> str | None:
    """A language as Whisper names it; None for it to find out."""
    code = (language or "").split("-")[0].casefold()
    code = _WHISPER_CODES.get(code, code)
    return code if code in loaded.supported_languages else None


@cache
def _whisper_class() -> type[Any]:
    from faster_whisper import WhisperModel  # noqa: PLC0415 - on first use

    class ShortWindow(WhisperModel):  # type: ignore[misc]
        """Encodes what there is, not the 30 s to which it is padded: a fifth of the time."""

        def encode(self, features: Any) -> Any:
            used = np.flatnonzero(np.any(features, axis=tuple(range(features.ndim - 1))))
            length = (int(used[-1]) if len(used) else 0) + _BEHIND_WINDOW_FRAMES
            return super().encode(features[..., :length])

    return ShortWindow


def _load_whisper(folder: str) -> Any:
    """Load it on the first GPU that CTranslate2 can use, or on the processor."""
    import ctranslate2  # noqa: PLC0415 - on first use

    if ctranslate2.get_cuda_device_count():
        with suppress(RuntimeError, ValueError):  # its CUDA libraries may be of another version
            model = _whisper_class()(folder, device="cuda", compute_type="int8_float16")
            model.detect_language(np.zeros(_RATE_HZ, np.float32))
            return model
    return _whisper_class()(folder, device="cpu", compute_type="int8", cpu_threads=1)


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
    head = clip.samples[: round(LONGEST_PIECE_S * clip.rate_hz)]
    samples = np.concatenate([*resample(split_blocks(head), clip.rate_hz, _RATE_HZ)])
    try:
        if model.family == WHISPER_FAMILY:
            return str(_load_whisper(str(folders[0])).detect_language(samples)[0])
        try_load(model, folders, family=model.family, kind="language")
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
