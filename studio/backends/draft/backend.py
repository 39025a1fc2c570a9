"""The draft backend: eSpeak NG, which speaks at once and needs no download.

Its voices are synthetic and can't be cloned: a sample only sets a speaker's pitch. Reading over
100 languages, it serves to hear a script before, or without, a neural voice.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable, Iterator
from functools import cached_property

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.backends.base import (
    Capabilities,
    Conditioning,
    LoadProgress,
    SpeechRequest,
)
from studio.backends.draft.busy_clock import BusyClock
from studio.backends.draft.espeak import EspeakWorker, WorkerPool, default_workers
from studio.backends.draft.package import (
    PACKAGE,
    Language,
    Languages,
    find_package,
    language_of_text,
)
from studio.backends.draft.request import PARAMS, plain_text, utterance_for
from studio.backends.draft.sound import finished
from studio.backends.draft.voices import TABLE_VERSION, draft_voice, presets
from studio.errors import Cancelled, ModelUnavailable, SpeechFailed
from studio.speakers.speaker import Voice

MAX_CHARS = 1_000

_CHUNK_SAMPLES = STUDIO_RATE_HZ // 2
_PATIENCE_S = 10.0
_PATIENCE_S_PER_CHAR = 0.01  # about a hundred times what a character takes
_VOICE_BYTES = 512


class DraftBackend:
    """eSpeak NG as a backend: any number of requests at once, spoken by a few processes.

    The same request gives the same samples whatever was spoken before, so `seed` changes nothing.
    """

    name = "draft"
    title = "Draft voice (eSpeak NG)"

    def __init__(self, *, workers: int | None = None) -> None:
        """Start nothing yet.

        Args:
            workers: Processes at most, from 1; None for one a core and at most four.
        """
        self._workers = workers or default_workers(os.cpu_count())
        self._pool: WorkerPool | None = None
        self._busy = BusyClock()

    @cached_property
    def revision(self) -> str:
        """The package's version, which fixes eSpeak NG's own, and that of the voices made here."""
        if self.unavailable():
            return f"missing, voices {TABLE_VERSION}"
        return f"{PACKAGE} {importlib.metadata.version(PACKAGE)}, voices {TABLE_VERSION}"

    @cached_property
    def capabilities(self) -> Capabilities:
        """What it can do; without its package it knows no languages."""
        return Capabilities(
            sample_rate_hz=STUDIO_RATE_HZ,
            max_chars=MAX_CHARS,
            builtin_voice=True,
            presets=presets(),
            languages={} if self.unavailable() else self._languages.listed(),
            guess=language_of_text,
            params=PARAMS,
            streaming=True,
        )

    @property
    def busy_s(self) -> float:
        """Seconds in which it was speaking at least one request, for measuring overhead."""
        return self._busy.spent_s

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None when its package is complete."""
        try:
            find_package()
        except ModelUnavailable as error:
            return str(error)
        return None

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Start the first process, which proves that the library runs here.

        Raises:
            ModelUnavailable: The package is missing or broken, or doesn't fit this system.
        """
        if self._pool is not None:
            return
        progress(LoadProgress("Starting eSpeak NG", 0.0))
        package = find_package()
        pool = WorkerPool(lambda: EspeakWorker(package), size=self._workers)
        with pool.worker() as worker:
            version = worker.version
        self._pool = pool
        progress(LoadProgress(f"eSpeak NG {version} is ready", 1.0))

    def unload(self) -> None:
        """End every process. Safe when not loaded."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def condition(self, voice: Voice) -> Conditioning:
        """Choose a timbre, pitch and tempo; instant but for measuring a sample's pitch."""
        return Conditioning(draft_voice(voice), _VOICE_BYTES)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment; yields it in pieces of at most half a second.

        Without a language the text's script decides: see `language_of_text`.

        Raises:
            SpeechFailed: The language is unknown, there is nothing to speak, or the process
                crashed or hung.
            Cancelled: `request.cancelled` became true.
        """
        _stop_if_cancelled(request)
        with self._busy:
            samples = self._spoken(request)
        for start in range(0, len(samples), _CHUNK_SAMPLES):
            _stop_if_cancelled(request)
            yield samples[start : start + _CHUNK_SAMPLES]

    @cached_property
    def _languages(self) -> Languages:
        return Languages(find_package().folder / "espeak-ng-data")

    def _spoken(self, request: SpeechRequest) -> Samples:
        if self._pool is None:
            raise ModelUnavailable("The draft voice is not loaded. Load it and try again.")
        text = plain_text(request.text)
        utterance, shift = utterance_for(text, request, self._language(request.language, text))
        patience_s = _PATIENCE_S + _PATIENCE_S_PER_CHAR * len(text)
        with self._pool.worker() as worker:
            _stop_if_cancelled(request)  # the wait for a free worker may have been long
            pcm, rate_hz = worker.speak(utterance, timeout_s=patience_s), worker.rate_hz
        samples = finished(pcm, rate_hz, shift=shift)
        if not len(samples):
            raise SpeechFailed(
                "There is nothing to speak in this line. Write at least one word, or name the "
                "language its letters belong to."
            )
        return samples

    def _language(self, code: str | None, text: str) -> Language:
        language = self._languages.find(code or language_of_text(text))
        if language is None:
            raise SpeechFailed(
                f"The draft voice doesn't know the language “{code}”. Use a code such as en, "
                "de or pt-BR, or leave the language out."
            )
        return language


def _stop_if_cancelled(request: SpeechRequest) -> None:
    if request.cancelled():
        raise Cancelled("The line was stopped before it was finished.")
