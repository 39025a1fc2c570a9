"""The aligner of a process: reads texts with the draft voice, whose process starts when needed."""

from __future__ import annotations

import threading

from studio.audio.clip import Clip
from studio.hearing.draft_reading import DraftReader
from studio.hearing.word_times import WordTime, align_words


class WordAligner:
    """Finds when words are said; safe from any thread."""

    def __init__(self) -> None:
        """Start nothing yet."""
        # Guards the reader, which the first use makes.
        self._lock = threading.Lock()
        self._reader: DraftReader | None = None

    def align(self, clip: Clip, text: str, language: str | None = None) -> tuple[WordTime, ...]:
        """When each word of a text is said in a clip, as `align_words`.

        Raises:
            SpeechFailed: eSpeak NG stopped, or was stopped.
            ModelUnavailable: Its package is missing or broken.
        """
        with self._lock:
            reader = self._reader = self._reader or DraftReader()
        return align_words(clip, text, language, reader=reader)

    def close(self) -> None:
        """End its process; the next use starts another."""
        with self._lock:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
