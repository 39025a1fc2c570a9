"""Recognisers: the words that are said in a recording, with their times; sherpa-onnx runs them."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from studio.audio.clip import Clip, Samples, resample, split_blocks
from studio.backends.base import LoadProgress
from studio.backends.sherpa import load_check
from studio.backends.sherpa.catalogue import DownloadableModel, find_folders
from studio.backends.sherpa.sherpa_model import describe_load_failure, locate_files, try_load
from studio.engine.engine import EngineLoop
from studio.engine.event_log import StateChange
from studio.engine.model_manager import EvictionPolicy
from studio.engine.model_pool import ModelPool
from studio.engine.weight_downloads import WeightDownloads
from studio.errors import AudioRejected, Cancelled, ModelUnavailable, SettingError
from studio.hearing.recogniser_catalogue import RECOGNISERS, RecogniserModel

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


class Recogniser(DownloadableModel):
    """A model of the catalogue in memory, or to be brought there. One recording at a time."""

    def __init__(self, model: RecogniserModel) -> None:
        """Load nothing yet."""
        super().__init__(model)
        self.name = model.name
        self._model = model
        self._recogniser: Any = None
        self._is_proven = False

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Bring the model into memory; downloads its weights first where needed.

        Raises:
            ModelUnavailable: The package or the weights are missing or broken.
            Cancelled: `progress` raised it.
        """
        if self._recogniser is not None:
            return
        self.fetch(progress)
        progress(LoadProgress(f"Loading {self.title} into memory"))
        folders = find_folders(self._model)
        if not self._is_proven:
            try_load(self._model, folders, family=self._model.family, kind="recogniser")
            self._is_proven = True
        located = locate_files(self._model, folders)
        try:
            self._recogniser = load_check.build_recogniser(self._model.family, located, threads=1)
        except (ValueError, RuntimeError) as error:
            raise ModelUnavailable(
                describe_load_failure(self._model, folders, str(error))
            ) from error
        progress(LoadProgress(f"{self.title} is ready", 1.0))

    def unload(self) -> None:
        """Give all memory back. Safe when not loaded."""
        self._recogniser = None
        gc.collect()

    def transcribe(self, clip: Clip, cancelled: Callable[[], bool] = lambda: False) -> Transcript:
        """Recognise what is said; a long recording in pieces, cut at its quietest places.

        Args:
            clip: Of any rate and length.
            cancelled: Polled before each piece.

        Raises:
            ModelUnavailable: It isn't loaded.
            AudioRejected: The model fails at this recording.
            Cancelled: `cancelled` became true.
        """
        recogniser = self._recogniser  # which another thread may unload meanwhile
        if recogniser is None:
            raise ModelUnavailable(f"{self.title} is not loaded. Load it and try again.")
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


class Recognisers:
    """The recognisers of a process: loaded on first use, leased, unloaded when idle.

    Safe from any thread. One recording is recognised at a time, in a thread of low priority, so
    that speech that somebody waits for comes first.

    Attributes:
        catalogue: Those that there are, the best first.
        models: Those that were asked for, with their states.
        downloads: Of their weights.
    """

    def __init__(
        self,
        policy: EvictionPolicy | None = None,
        *,
        catalogue: Mapping[str, RecogniserModel] = RECOGNISERS,
        notify: Callable[[StateChange], None] = lambda _: None,
    ) -> None:
        """Start nothing yet.

        Args:
            policy: When idle recognisers are unloaded.
            catalogue: Those that there are, the best first.
            notify: Called at every change of their state, in whatever thread.
        """
        self.catalogue = catalogue
        self.models: ModelPool[Recogniser] = ModelPool(
            self._create, policy or EvictionPolicy(), notify=notify
        )
        self.downloads = WeightDownloads(self.models, notify)
        self.downloads.backend_names = tuple(catalogue)
        self._lock = threading.Lock()  # guards the loop's start and end
        self._loop: EngineLoop | None = None
        self._thread = ThreadPoolExecutor(1, "recognition", initializer=lower_priority)

    def find(self, language: str | None) -> RecogniserModel | None:
        """The best recogniser on this machine that knows a language; None if there is none.

        Cheap: asks no network and reads no weights.
        """
        fitting = (one for one in self.catalogue.values() if one.knows(language))
        return next((one for one in fitting if find_folders(one)), None)

    def transcribe(
        self,
        clip: Clip,
        language: str | None = None,
        *,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Transcript:
        """Recognise a recording and wait for it; loads the recogniser first if needed.

        Args:
            clip: Of any rate and length.
            language: The BCP-47 code of what should be said; chooses the recogniser.
            cancelled: Polled while it waits and between pieces of half a minute.

        Raises:
            ModelUnavailable: None is installed for the language, or it can't be loaded.
            AudioRejected: The recogniser fails at this recording.
            Cancelled: `cancelled` became true, or this was closed.
        """
        model = self.find(language)
        if model is None:
            raise ModelUnavailable(
                f"No recogniser for “{language}” is installed. See: voices list --recognisers."
            )
        return self._running_loop().run(self._transcribe(model.name, clip, cancelled))

    def identify_language(self, clip: Clip) -> str | None:
        """The BCP-47 code of the language of a recording's first half minute, by Whisper.

        Returns:
            None where no Whisper is on this machine.

        Raises:
            ModelUnavailable: Its files are broken.
            AudioRejected: It fails at this recording.
            Cancelled: This was closed.
        """
        models = (one for one in self.catalogue.values() if one.family == "whisper")
        model = next((one for one in models if find_folders(one)), None)
        if model is None:
            return None
        try:
            return self._thread.submit(_identify_language, model, clip).result()
        except RuntimeError as error:  # no thread any more
            raise Cancelled("Recognition was stopped.") from error

    def unload(self, name: str) -> None:
        """Unload a recogniser now.

        Raises:
            SettingError: There is no such recogniser.
            ModelInUse: It is at work.
        """
        self._running_loop().run(self.models.get_manager(name).unload())

    def remove(self, name: str) -> None:
        """Unload a recogniser and delete its weights.

        Raises:
            SettingError: There is no such recogniser.
            BadInput: It has no weights that the studio downloaded.
            ModelInUse: It is at work.
            Conflict: It is being downloaded.
        """
        self.downloads.check_removable(name)
        self.unload(name)
        self.downloads.remove(name)

    def close(self) -> None:
        """Stop downloads, unload all, end the threads; waits for the piece in recognition."""
        self.downloads.close()
        with self._lock:
            loop, self._loop = self._loop, None
        self._thread.shutdown(cancel_futures=True)
        if loop is not None:
            loop.run(self.models.unload_all())
            loop.close()

    def _running_loop(self) -> EngineLoop:
        with self._lock:
            if self._loop is None:
                self._loop = EngineLoop("recognition-loop")
                self._loop.start()
                self._loop.call(lambda: asyncio.ensure_future(self.models.run_reaper()))
            return self._loop

    async def _transcribe(self, name: str, clip: Clip, cancelled: Callable[[], bool]) -> Transcript:
        async with self.models.get_manager(name).using() as recogniser:
            work = partial(recogniser.transcribe, clip, cancelled)
            try:
                return await asyncio.get_running_loop().run_in_executor(self._thread, work)
            except (asyncio.CancelledError, RuntimeError) as error:
                raise Cancelled("Recognition was stopped.") from error

    def _create(self, name: str) -> Recogniser:
        if name not in self.catalogue:
            offered = ", ".join(self.catalogue)
            raise SettingError(f"There is no recogniser “{name}”; there are: {offered}.")
        return Recogniser(self.catalogue[name])


def _identify_language(model: RecogniserModel, clip: Clip) -> str | None:
    """Load Whisper for one recording: samples come seldom, and it takes hundreds of megabytes."""
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
