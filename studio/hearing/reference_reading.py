"""The draft voice's readings of texts, by which recognisers are weighed, and takes aligned."""

from __future__ import annotations

import os
import threading

import numpy as np
from cachetools import LRUCache

from studio.audio.clip import Clip
from studio.backends.espeak.backend import finish_clip
from studio.backends.espeak.worker_pool import default_workers
from studio.errors import ModelUnavailable, SpeechFailed
from studio.hearing.draft_reading import DraftReader, DraftSpeech

_KEPT_BYTES = 16_000_000
"""Of samples: six minutes. A line's tries are aligned to the same reading."""


class ReferenceReader:
    """Reads with the draft voice, in a few processes of its own; from any thread."""

    def __init__(self) -> None:
        # Guards the start and the end of the processes, and the table.
        self._lock = threading.Lock()
        self._reader: DraftReader | None = None
        self._is_over = False
        self._kept: LRUCache[tuple[str, str], DraftSpeech] = LRUCache(
            _KEPT_BYTES, getsizeof=lambda speech: speech.n_bytes
        )

    def read(self, text: str, language: str | None = None) -> Clip | None:
        """A text as the draft voice reads it at its usual speed.

        Args:
            text: What is spoken; tags are short pauses.
            language: BCP-47 code; None guesses by the script.

        Returns:
            None where it can't: its package is missing, it doesn't know the language, there is
            nothing to speak, or this was closed.
        """
        reader = self._start()
        if reader is None or (language is not None and not reader.knows(language)):
            return None
        try:
            speech = self.find(text, language) or reader.speak(text, language)
        except (SpeechFailed, ModelUnavailable):
            return None
        if not speech.pieces:
            return None
        self._keep(reader.find_voice(text, language), text, speech)
        pcm = np.concatenate([piece.pcm for _, piece in speech.pieces])
        return Clip(finish_clip(pcm, speech.rate_hz))

    def find(self, text: str, language: str | None = None) -> DraftSpeech | None:
        """The speech of a text that was read lately; None otherwise. Cheap."""
        with self._lock:
            if self._reader is None:
                return None
            try:
                return self._kept.get((self._reader.find_voice(text, language), text))
            except SpeechFailed:
                return None

    def close(self) -> None:
        """End the processes; nothing is read any more."""
        with self._lock:
            reader, self._reader = self._reader, None
            self._is_over = True
            self._kept.clear()
        if reader is not None:
            reader.close()

    def _keep(self, voice: str, text: str, speech: DraftSpeech) -> None:
        if speech.n_bytes <= _KEPT_BYTES:
            with self._lock:
                self._kept[voice, text] = speech

    def _start(self) -> DraftReader | None:
        with self._lock:
            if self._reader is None and not self._is_over:
                try:
                    self._reader = DraftReader(workers=default_workers(os.cpu_count()))
                except ModelUnavailable:
                    self._is_over = True
            return self._reader
