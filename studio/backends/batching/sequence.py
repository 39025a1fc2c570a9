"""One request in the engine, the queue of its audio, and the function that submits one."""

from __future__ import annotations

import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from studio.audio.clip import Samples
from studio.audio.stream_resume import StreamResume
from studio.backends.base import Priority
from studio.errors import Cancelled, ReadingChanged, SpeechFailed, StudioError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SequenceEnd:
    """A line has ended; nothing follows.

    Attributes:
        error: Why it is incomplete; audio that came before remains valid.
    """

    error: StudioError | None = None


DeliverFn = Callable[[Samples | SequenceEnd], None]
"""Takes what a line gives, in order and from any thread; must not block."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TtsRequest(ABC):
    """A request to speak one line, for any model.

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
        """The line as its model's runner admits it to a slot; the engine's thread calls this."""


class TtsSequence:
    """A line in the engine: the engine's thread advances it, the codec's delivers its audio."""

    def __init__(self, task: TtsRequest, deliver: DeliverFn) -> None:
        self.task = task
        self.codec_state: Any = None  # the codec thread's, of a line that is streamed
        self.sent_frames = 0  # handed to that decoder by the engine's thread
        self.steps = 0  # of the engine since it was admitted
        self._deliver = deliver
        self._lock = threading.Lock()  # guards what follows: two threads may end a line
        self._resume = StreamResume(deliver)
        self.ended = False
        self._closed = threading.Event()

    @property
    def has_delivered(self) -> bool:
        return self.sent_frames > 0 or bool(self._resume.chunks)

    @property
    def is_unwanted(self) -> bool:
        """Whether it was closed or cancelled; a line of which that can't be told ends here."""
        try:
            return self._closed.is_set() or self.task.cancelled()
        # Broad, as the caller's function must not end the threads that all lines share.
        except Exception as error:
            log.warning("asking whether a line was cancelled failed", exc_info=True)
            reason = f"{type(error).__name__}: {error}"
            self.end(SpeechFailed(f"Whether this line was cancelled can't be told ({reason})."))
            return True

    def priority(self) -> Priority:
        """Its present priority."""
        return self.task.priority()

    def close(self) -> None:
        """Mark it as unwanted; from any thread."""
        self._closed.set()

    def deliver(self, samples: Samples) -> None:
        """Deliver audio that wasn't delivered before; ends the line if a restart made another."""
        with self._lock:
            if self.ended:
                return
            try:
                self._resume.take(samples)
            except ReadingChanged as error:
                self._end(error)

    def end(self, error: StudioError | None = None) -> None:
        """End it, complete or with an error; only the first call counts."""
        with self._lock:
            if self.ended:
                return
            try:
                self._resume.end()
            except ReadingChanged as changed:
                error = error or changed
            self._end(error)

    def _end(self, error: StudioError | None) -> None:
        self.ended = True
        self._deliver(SequenceEnd(error))

    def restart(self) -> TtsSequence:
        """The same line from its first frame, for the same reader; it replaces this one.

        Its reader gets what goes on from where this one ended. In another batch the last bits may
        differ, and with them the reading: then the line ends with `ReadingChanged`.
        """
        with self._lock:
            again = TtsSequence(self.task, self._deliver)
            again._resume = self._resume
            again._resume.begin()
            again._closed = self._closed
            self.ended = True
            return again


def stop_error() -> Cancelled:
    """The error of a line that was cancelled."""
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
