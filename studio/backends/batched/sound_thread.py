"""Frames to audio in threads of their own, so that no frame waits for it.

What somebody listens to is sounded chunk by chunk, in a thread that does nothing else; of all other
finished lines, those that wait are decoded together. Where lines can't be sounded in chunks there
is one thread, and those that somebody waits for go first.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from studio.backends.batched.graphs import stream_of
from studio.backends.batched.line import Line, stopped
from studio.backends.device import LOST, card_lost
from studio.backends.faults import speech_faults
from studio.errors import ModelUnavailable, OutOfMemory, SpeechFailed, StudioError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """Frames of a line for the codec.

    Attributes:
        codes: int64 [frames, groups], on any device; may be empty.
        heard: Whether somebody listens, so that it goes before all else; the same for all frames
            of a line.
        ready: On CUDA, what the codec's stream waits for before it reads them.
        last: Whether the line ends with them.
        error: Why it ended there, if not by itself.
    """

    line: Line
    codes: torch.Tensor
    heard: bool = False
    ready: Any = None
    last: bool = True
    error: StudioError | None = None


class SoundThread(ABC):
    """Turns frames into audio and gives it to their lines.

    Attributes:
        streams: Whether a line can be sounded chunk by chunk while it is made.
        together: Chunks of different lines that are sounded at once.
        frames_per_s: In a second of audio.
        too_long: What is said of a line that came to the end of its slot.
    """

    streams: ClassVar[bool] = True
    together: ClassVar[int] = 1
    frames_per_s: ClassVar[float]
    too_long: ClassVar[str] = (
        "This line and its speaker's sample are too long together; the line was cut. Split "
        "it, cut the sample, or set TTS_BATCH_POSITIONS to a larger number."
    )

    def __init__(self, device: torch.device, *, title: str) -> None:
        """Start the threads.

        Args:
            device: Where the sound is made.
            title: The backend's name, for messages.
        """
        self._device = device
        self._title = title
        self._changed = threading.Condition()  # guards the queues and `_closed`
        self._heard: deque[Frames] = deque()
        self._finished: deque[Frames] = deque()
        self._closed = False
        takers = {"codec": self._next_finished, "codec, heard": self._next_chunks}
        self._threads = [
            threading.Thread(target=self._run, args=(name, take), name=name, daemon=True)
            for name, take in (takers if self.streams else {"codec": self._next}).items()
        ]
        for thread in self._threads:
            thread.start()

    @property
    def device(self) -> torch.device:
        """Where the sound is made."""
        return self._device

    @property
    def alive(self) -> bool:
        """Whether the threads run."""
        return all(thread.is_alive() for thread in self._threads)

    def submit(self, frames: Frames) -> None:
        """Let frames be decoded; those of one line in their order. From any thread."""
        with self._changed:
            (self._heard if frames.heard else self._finished).append(frames)
            self._changed.notify_all()

    def close(self) -> None:
        """Decode what waits, then stop; blocks until then."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._release()

    def _run(self, name: str, take: Callable[[], list[Frames]]) -> None:
        with self._stream(urgent=name != "codec"):
            while batch := take():
                self._serve(batch)

    def _serve(self, batch: Sequence[Frames]) -> None:
        """Sound what of a batch is still wanted."""
        wanted = [frames for frames in batch if _wanted(frames.line)]
        if wanted:
            self._shield(wanted)

    def _stream(self, *, urgent: bool) -> AbstractContextManager[Any]:
        """A chunk goes before a round of finished lines, which fills a card for long."""
        if self._device.type == "cuda":
            return torch.cuda.stream(stream_of(self._device, urgent=urgent))
        return nullcontext()

    def _next_chunks(self) -> list[Frames]:
        """The next chunks of some lines, one each; empty when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._heard or self._closed)
            chunks: dict[int, Frames] = {}
            for frames in self._heard:
                if len(chunks) < self.together:
                    chunks.setdefault(id(frames.line), frames)
            for frames in chunks.values():
                self._heard.remove(frames)
            return list(chunks.values())

    def _next_finished(self) -> list[Frames]:
        """Several finished lines; empty when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._finished or self._closed)
            return self._batch(self._finished) if self._finished else []

    def _next(self) -> list[Frames]:
        """A line that somebody waits for, or several others; empty when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._heard or self._finished or self._closed)
            if self._heard:
                return [self._heard.popleft()]
            return self._batch(self._finished) if self._finished else []

    def _shield(self, batch: Sequence[Frames]) -> None:
        """Sound a batch; a fault ends these lines, and the thread goes on."""
        try:
            with speech_faults(self._title):
                _await(batch)
                self._sound(batch)
        except OutOfMemory as error:
            self._retry_or_fail(batch, error)
        except StudioError as error:
            _fail(batch, error)
        except Exception as error:
            log.warning("decoding failed", exc_info=True)
            if card_lost(error):
                _fail(batch, ModelUnavailable(LOST))
                return
            reason = f"{type(error).__name__}: {error}"
            _fail(batch, SpeechFailed(f"{self._title} failed on this line's audio ({reason})."))

    def _retry_or_fail(self, batch: Sequence[Frames], error: OutOfMemory) -> None:
        """Where the memory didn't suffice for several lines, sound them one by one."""
        if len(batch) == 1:
            _fail(batch, error)
            return
        for frames in batch:
            self._serve([frames])

    def _sound(self, batch: Sequence[Frames]) -> None:
        if batch[0].heard:
            self._chunks(batch)
        else:
            self._whole(list(batch))

    def _release(self) -> None:  # noqa: B027 - most hold nothing
        """Give up what the threads held; they run no more."""

    @abstractmethod
    def _batch(self, finished: deque[Frames]) -> list[Frames]:
        """Take out finished lines to sound together; there is at least one."""

    @abstractmethod
    def _chunks(self, batch: Sequence[Frames]) -> None:
        """Sound the next frames of lines that somebody listens to, at most `together`."""

    @abstractmethod
    def _whole(self, batch: list[Frames]) -> None:
        """Sound finished lines."""


def _wanted(line: Line) -> bool:
    """Whether a line's audio is worth making; ends it where it isn't."""
    if line.unwanted:
        line.end(stopped())
    if line.ended:
        line.decoder = None
    return not line.ended


def _await(batch: Sequence[Frames]) -> None:
    """Let this thread's stream wait for the one that wrote the codes."""
    for frames in batch:
        if frames.ready is not None:
            torch.cuda.current_stream().wait_event(frames.ready)


def _fail(batch: Sequence[Frames], error: StudioError) -> None:
    for frames in batch:
        frames.line.decoder = None
        frames.line.end(error)
