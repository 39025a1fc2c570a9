"""Frames to audio in a thread of its own, so that no frame waits for it.

What somebody listens to goes first, chunk by chunk; of all other finished lines, those that wait
are decoded together.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

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
        frames_per_s: In a second of audio.
        too_long: What is said of a line that came to the end of its slot.
    """

    streams: ClassVar[bool] = True
    frames_per_s: ClassVar[float]
    too_long: ClassVar[str] = (
        "This line and its speaker's sample are too long together; the line was cut. Split "
        "it, cut the sample, or set TTS_BATCH_POSITIONS to a larger number."
    )

    def __init__(self, device: torch.device, *, title: str) -> None:
        """Start the thread.

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
        self._thread = threading.Thread(target=self._run, name="codec", daemon=True)
        self._thread.start()

    @property
    def device(self) -> torch.device:
        """Where the sound is made."""
        return self._device

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def submit(self, frames: Frames) -> None:
        """Let frames be decoded; those of one line in their order. From any thread."""
        with self._changed:
            (self._heard if frames.heard else self._finished).append(frames)
            self._changed.notify()

    def close(self) -> None:
        """Decode what waits, then stop; blocks until then."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        self._release()

    def _run(self) -> None:
        with self._stream():
            while batch := self._next():
                self._serve(batch)

    def _serve(self, batch: Sequence[Frames]) -> None:
        """Sound what of a batch is still wanted."""
        wanted = [frames for frames in batch if _wanted(frames.line)]
        if wanted:
            self._shield(wanted)

    def _serve_heard(self) -> None:
        """Sound what somebody listens to before going on with finished lines."""
        while True:
            with self._changed:
                if not self._heard:
                    return
                frames = self._heard.popleft()
            self._serve([frames])

    def _stream(self) -> AbstractContextManager[Any]:
        if self._device.type == "cuda":
            return torch.cuda.stream(torch.cuda.Stream(self._device))
        return nullcontext()

    def _next(self) -> list[Frames]:
        """What to decode next: one chunk or several finished lines; empty when all is done."""
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
            self._chunk(batch[0])
        else:
            self._whole(list(batch))

    def _release(self) -> None:  # noqa: B027 - most hold nothing
        """Give up what the thread held; it runs no more."""

    @abstractmethod
    def _batch(self, finished: deque[Frames]) -> list[Frames]:
        """Take out finished lines to sound together; there is at least one."""

    @abstractmethod
    def _chunk(self, frames: Frames) -> None:
        """Sound the next frames of a line that somebody listens to."""

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
