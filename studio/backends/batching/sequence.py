"""One request in the engine, the feed that its audio leaves by, and the ways to ask for one."""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from studio.audio.clip import Samples
from studio.backends.base import Priority
from studio.errors import Cancelled, StudioError


@dataclass(frozen=True, slots=True)
class SequenceEnd:
    """A line has ended; nothing follows.

    Attributes:
        error: Why it isn't whole; what came before it counts all the same.
    """

    error: StudioError | None = None


DeliverFn = Callable[[Samples | SequenceEnd], None]
"""Takes what a line gives, in order and from any thread; must not block."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TtsRequest(ABC):
    """A line for any model.

    Attributes:
        voice: Whose; the model's own kind of voice.
        sampling: Of what its language model makes; the model's own kind of parameters.
        seed: Its noise; the same whatever runs beside it.
        max_frames: Where a line that doesn't stop is cut.
        cancelled: Polled before every frame, and at every step of the sound.
        priority: See `SpeechRequest`.
    """

    voice: Any
    sampling: Any
    seed: int
    max_frames: int
    cancelled: Callable[[], bool] = lambda: False
    priority: Callable[[], Priority] = Priority

    @abstractmethod
    def admission(self, core: Any, slot: int) -> Any:
        """The line as its model's core takes it for a free slot; the engine's thread calls this."""


class TtsSequence:
    """A task in the engine. The engine's thread moves it on; the codec's gives its audio out."""

    def __init__(self, task: TtsRequest, deliver: DeliverFn) -> None:
        """Begin; nothing has been made yet."""
        self.task = task
        self.codec_state: Any = None  # the codec thread's, of a line that is streamed
        self.sent_frames = 0  # handed to that decoder by the engine's thread
        self.steps = 0  # of the engine since it was admitted
        self._deliver = deliver
        self._lock = threading.Lock()  # guards what follows: two threads may end a line
        self._delivered_samples = 0
        self._made_samples = 0
        self.ended = False
        self._closed = threading.Event()

    @property
    def is_unwanted(self) -> bool:
        """Whether whoever asked for it wants it no more."""
        return self._closed.is_set() or self.task.cancelled()

    def priority(self) -> Priority:
        """Where it is among the others now."""
        return self.task.priority()

    def close(self) -> None:
        """Say that nobody wants it any more; from any thread."""
        self._closed.set()

    def deliver(self, samples: Samples) -> None:
        """Give audio out, once: after a restart the same seed makes the same samples again."""
        with self._lock:
            if self.ended:
                return
            begin = max(0, self._delivered_samples - self._made_samples)
            self._made_samples += len(samples)
            fresh = samples[begin:]
            if len(fresh):
                self._delivered_samples += len(fresh)
                self._deliver(fresh)

    def end(self, error: StudioError | None = None) -> None:
        """End it, whole or with an error; all but the first call do nothing."""
        with self._lock:
            if not self.ended:
                self.ended = True
                self._deliver(SequenceEnd(error))

    def restart(self) -> TtsSequence:
        """The same line from its first frame on, for the same reader; this one is given up."""
        with self._lock:
            again = TtsSequence(self.task, self._deliver)
            again._delivered_samples = self._delivered_samples
            again._closed = self._closed
            self.ended = True
            return again


def stop_error() -> Cancelled:
    """Why a line that nobody wants any more isn't whole."""
    return Cancelled("The line was stopped before it was finished.")


def stream_chunks(submit: Callable[[TtsSequence], None], task: TtsRequest) -> Generator[Samples]:
    """Speak a line; blocks between chunks.

    Yields:
        As `Backend.speak`; closing it early frees the slot within one frame.

    Raises:
        StudioError: Why the line isn't whole.
    """
    feed: queue.SimpleQueue[Samples | SequenceEnd] = queue.SimpleQueue()
    line = TtsSequence(task, feed.put)
    submit(line)
    try:
        while not isinstance(given := feed.get(), SequenceEnd):
            yield given
    finally:
        line.close()
    if given.error is not None:
        raise given.error
