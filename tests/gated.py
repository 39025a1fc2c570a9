"""The real draft voice behind a gate, so that a test decides when each line may be spoken."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from studio.audio.clip import Samples
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.errors import Cancelled


class GatedDraft(DraftBackend):
    """Speaks a line when the test lets it; stops waiting when the line is cancelled.

    Attributes:
        faults: Raised instead of speaking, by text.
        before_gate: Chunks yielded before the gate, cut off the real voice's first one.
    """

    def __init__(self, *, half_first: bool = False) -> None:
        """Start with the gate closed."""
        super().__init__()
        self._gate = threading.Semaphore(0)
        self._half_first = half_first
        self.faults: dict[str, Exception] = {}
        self.in_speak = 0
        self.most_in_speak = 0
        self._lock = threading.Lock()

    def let_through(self, lines: int) -> None:
        """Open the gate for so many lines."""
        self._gate.release(lines)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Wait at the gate, then speak."""
        with self._lock:
            self.in_speak += 1
            self.most_in_speak = max(self.most_in_speak, self.in_speak)
        try:
            spoken = super().speak(request)
            if self._half_first:
                chunk = next(spoken)
                yield chunk[:9_600]
                self._wait(request)
                yield chunk[9_600:]
            else:
                self._wait(request)
            if request.text in self.faults:
                raise self.faults[request.text]
            yield from spoken
        finally:
            with self._lock:
                self.in_speak -= 1

    def _wait(self, request: SpeechRequest) -> None:
        while not self._gate.acquire(timeout=0.02):
            if request.cancelled():
                raise Cancelled
        if request.cancelled():
            self._gate.release()  # for a line that will be spoken
            raise Cancelled
