"""One request in the engine, the feed that its audio leaves by, and the ways to ask for one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Protocol

from studio.audio.clip import Samples
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


class TtsRequest(Protocol):
    """What is to be made, by any model."""

    @property
    def seed(self) -> int:
        """Its noise; the same whatever runs beside it."""
        ...

    @property
    def voice(self) -> Any:
        """Whose; the model's own kind of voice."""
        ...

    @property
    def expected_frames(self) -> int:
        """How long it will probably become."""
        ...

    @property
    def cancelled(self) -> Callable[[], bool]:
        """Polled before every frame."""
        ...

    @property
    def urgency(self) -> Callable[[], int | None]:
        """See `SpeechRequest`."""
        ...

    def admission(self, core: Any, slot: int) -> Any:
        """The line as its core takes it; the engine's thread lays its prompt out here.

        Args:
            core: Of the task's model.
            slot: A free one.
        """
        ...


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
        self._ended = False
        self._closed = threading.Event()

    @property
    def expected_frames(self) -> int:
        """How long it will probably become."""
        return self.task.expected_frames

    @property
    def ended(self) -> bool:
        """Whether nothing more is given out."""
        return self._ended

    @property
    def is_unwanted(self) -> bool:
        """Whether whoever asked for it wants it no more."""
        return self._closed.is_set() or self.task.cancelled()

    def urgency(self) -> int | None:
        """How many segments ahead of the play-head it is; None when nobody listens to it."""
        return self.task.urgency()

    def close(self) -> None:
        """Say that nobody wants it any more; from any thread."""
        self._closed.set()

    def deliver(self, samples: Samples) -> None:
        """Give audio out, once: after a restart the same seed makes the same samples again."""
        with self._lock:
            if self._ended:
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
            if not self._ended:
                self._ended = True
                self._deliver(SequenceEnd(error))

    def restart(self) -> TtsSequence:
        """The same line from its first frame on, for the same reader; this one is given up."""
        with self._lock:
            again = TtsSequence(self.task, self._deliver)
            again._delivered_samples = self._delivered_samples
            again._closed = self._closed
            self._ended = True
            return again


def stop_error() -> Cancelled:
    """Why a line that nobody wants any more isn't whole."""
    return Cancelled("The line was stopped before it was finished.")


SubmitFn = Callable[[TtsSequence], None]


def stream_chunks(submit: SubmitFn, task: TtsRequest) -> Generator[Samples]:
    """Speak a line; blocks between chunks.

    Args:
        submit: `Engine.submit`.
        task: The line.

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
