"""The draft voice's readings of texts, with whose pace and melody takes are compared."""

from __future__ import annotations

import threading
from functools import lru_cache

import numpy as np

from studio.audio.clip import Clip
from studio.backends.base import Conditioning, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.errors import ModelUnavailable, SpeechFailed
from studio.voices.speaker import Voice

_PRESET = "m3"
_KEPT_READINGS = 16  # a line's tries are compared with the same one


class ReferenceReader:
    """Reads with the draft voice, in a few processes of its own; from any thread."""

    def __init__(self) -> None:
        """Start nothing yet."""
        # Guards the start and the end of the processes.
        self._lock = threading.Lock()
        self._backend = DraftBackend()
        self._conditioning: Conditioning | None = None
        self._is_unavailable = False
        self._read = lru_cache(maxsize=_KEPT_READINGS)(self._read_fresh)

    def read(self, text: str, language: str | None = None) -> Clip | None:
        """A text as the draft voice reads it at its usual speed.

        Args:
            text: What is spoken, without tags.
            language: BCP-47 code; None guesses by the script.

        Returns:
            None where it can't: its package is missing, it doesn't know the language, or there is
            nothing to speak.
        """
        return self._read(text, language)

    def close(self) -> None:
        """End the processes; the next reading starts one again."""
        with self._lock:
            self._conditioning = None
            self._backend.unload()
        self._read.cache_clear()

    def _read_fresh(self, text: str, language: str | None) -> Clip | None:
        conditioning = self._start()
        if conditioning is None:
            return None
        request = SpeechRequest(text=text, conditioning=conditioning, language=language)
        try:
            return Clip(np.concatenate(list(self._backend.speak(request))))
        except (SpeechFailed, ModelUnavailable):
            return None

    def _start(self) -> Conditioning | None:
        with self._lock:
            if self._conditioning is None and not self._is_unavailable:
                try:
                    self._backend.load(lambda _: None)
                except ModelUnavailable:
                    self._is_unavailable = True
                    return None
                self._conditioning = self._backend.condition(Voice(_PRESET, preset=_PRESET))
            return self._conditioning
