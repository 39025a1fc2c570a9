"""The codec in a thread of its own, so that no frame waits for audio.

What somebody listens to goes first, chunk by chunk; of all other finished lines, those that wait
are decoded together.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from studio.backends.batched.codec import BatchedCodec, CodedLine
from studio.backends.batched.line import Line, stopped
from studio.backends.faults import speech_faults
from studio.backends.qwen3.codec import CodecStream
from studio.errors import OutOfMemory, SpeechFailed, StudioError

FRAMES_AT_ONCE = 4_096
"""Of finished lines decoded together; the audio of the first waits for the last."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """Frames of a line for the codec.

    Attributes:
        codes: int64 [frames, groups], on any device; may be empty.
        heard: Whether somebody listens while the line is made; the same for all frames of it.
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


class CodecThread:
    """Turns frames into audio and gives it to their lines."""

    def __init__(self, decoder: Any, *, title: str, convolved_at_once: int | None = None) -> None:
        """Start the thread.

        Args:
            decoder: The package's `Qwen3TTSTokenizerV2Decoder`; only read.
            title: The backend's name, for messages.
            convolved_at_once: See `BatchedCodec`.
        """
        self._decoder = decoder
        self._batched = BatchedCodec(decoder, convolved_at_once=convolved_at_once)
        self._title = title
        self._changed = threading.Condition()  # guards the queues and `_closed`
        self._heard: deque[Frames] = deque()
        self._finished: deque[Frames] = deque()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="codec", daemon=True)
        self._thread.start()

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

    def _run(self) -> None:
        with self._stream():
            while batch := self._next():
                wanted = [frames for frames in batch if _wanted(frames.line)]
                if wanted:
                    self._shield(self._chunk if wanted[0].heard else self._whole, wanted)

    def _stream(self) -> AbstractContextManager[Any]:
        if self._decoder.device.type == "cuda":
            return torch.cuda.stream(torch.cuda.Stream(self._decoder.device))
        return nullcontext()

    def _next(self) -> list[Frames]:
        """What to decode next: one chunk or several finished lines; empty when all is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._heard or self._finished or self._closed)
            if self._heard:
                return [self._heard.popleft()]
            batch: list[Frames] = []
            frames = 0
            while self._finished:
                frames += len(self._finished[0].codes)
                if batch and frames > FRAMES_AT_ONCE:
                    break
                batch.append(self._finished.popleft())
            return batch

    def _shield(self, work: Callable[[list[Frames]], None], batch: list[Frames]) -> None:
        """Decode; a fault ends these lines, and the thread goes on."""
        try:
            with speech_faults(self._title):
                work(batch)
        except OutOfMemory as error:
            self._retry_or_fail(work, batch, error)
        except Exception as error:
            log.warning("decoding failed", exc_info=True)
            reason = f"{type(error).__name__}: {error}"
            _fail(batch, SpeechFailed(f"{self._title} failed on this line's audio ({reason})."))

    def _retry_or_fail(
        self, work: Callable[[list[Frames]], None], batch: list[Frames], error: OutOfMemory
    ) -> None:
        """Where the memory didn't suffice for several lines, decode them one by one."""
        if len(batch) == 1:
            _fail(batch, error)
            return
        for frames in batch:
            self._shield(work, [frames])

    def _chunk(self, batch: list[Frames]) -> None:
        """Decode the next frames of a line that is heard as it is made."""
        (frames,) = batch
        line = frames.line
        if line.decoder is None:
            line.decoder = CodecStream(self._decoder)
            if line.task.voice.ref_codes is not None:
                line.decoder.skip(line.task.voice.ref_codes)
        _await(batch)
        if len(frames.codes):
            line.give(line.decoder.decode(frames.codes))
        if frames.last:
            line.decoder = None
            line.end(frames.error)

    def _whole(self, batch: list[Frames]) -> None:
        """Decode finished lines together."""
        _await(batch)
        coded = [CodedLine(frames.codes, frames.line.task.voice.ref_codes) for frames in batch]
        for frames, samples in zip(batch, self._batched.decode(coded), strict=True):
            frames.line.give(samples)
            frames.line.end(frames.error)


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
