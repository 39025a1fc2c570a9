"""Codec workers turn frames into audio in threads of their own; the dispatcher feeds them."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from studio.backends.batching.cuda_graphs import make_stream
from studio.backends.batching.device_timer import DeviceTimer
from studio.backends.batching.model_runner import SlotModelRunner
from studio.backends.batching.runner_contract import SlotProgress, StopReason
from studio.backends.batching.sequence import TtsSequence, stop_error
from studio.backends.batching.slot_scheduler import SlotScheduler
from studio.backends.device import LOST, card_lost, speech_faults
from studio.errors import ModelUnavailable, OutOfMemory, SpeechFailed, StudioError

# No frame waits for audio. What somebody listens to is decoded chunk by chunk, in a thread of its
# own; of all other finished lines, those that wait are decoded together. Where lines can't be
# decoded in chunks there is one thread, and those that somebody waits for go first.

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class CodecFrames:
    """Frames of a line for the codec.

    Attributes:
        codes: int64 [frames, groups], on any device; may be empty.
        streamed: Whether somebody listens, so that it goes before all else; the same for all frames
            of a line.
        ready: On CUDA, what the codec's stream waits for before it reads them.
        last: Whether the line ends with them.
        error: Why it ended there, if not by itself.
    """

    line: TtsSequence
    codes: torch.Tensor
    streamed: bool = False
    ready: Any = None
    last: bool = True
    error: StudioError | None = None


class CodecWorker(ABC):
    """Turns frames into audio and gives it to their lines.

    Streamed lines have a thread of their own, so that none waits for a batch of finished ones.

    Attributes:
        streams: Whether a line can be decoded chunk by chunk while it is made.
        max_streamed: Chunks of different lines that are decoded at once.
        frames_per_s: In a second of audio.
        too_long: What is said of a line that came to the end of its slot.
    """

    streams: ClassVar[bool] = True
    max_streamed: ClassVar[int] = 1
    frames_per_s: ClassVar[float]
    too_long: ClassVar[str] = (
        "This line and its speaker's sample are too long together; the line was cut. Split "
        "it, cut the sample, or set TTS_BATCH_POSITIONS to a larger number."
    )

    def __init__(self, device: torch.device, *, title: str) -> None:
        self.device = device
        # Of the engine's work too, which overlaps with this.
        self.timer = DeviceTimer() if device.type == "cuda" else None
        self._title = title
        self._changed = threading.Condition()  # guards the queues and `_closed`
        self._stream_queue: deque[CodecFrames] = deque()
        self._finished: deque[CodecFrames] = deque()
        self._closed = False
        takers = {"codec": self._next_finished, "codec, streamed": self._next_chunks}
        self._threads = [
            threading.Thread(target=self._run, args=(name, take), name=name, daemon=True)
            for name, take in (takers if self.streams else {"codec": self._next}).items()
        ]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def submit(self, frames: CodecFrames) -> None:
        """Queue frames for decoding; those of one line in order. From any thread."""
        with self._changed:
            (self._stream_queue if frames.streamed else self._finished).append(frames)
            self._changed.notify_all()

    def close(self) -> None:
        """Decode what is queued, then stop; blocks until then."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._release()

    def _run(self, name: str, take: Callable[[], list[CodecFrames]]) -> None:
        with self._stream(urgent=name != "codec"):
            while batch := take():
                self._serve(batch)

    def _serve(self, batch: Sequence[CodecFrames]) -> None:
        """Decode batches, skipping lines that nobody wants any more."""
        wanted = [frames for frames in batch if _is_wanted(frames.line)]
        if wanted:
            self._decode_guarded(wanted)

    def _stream(self, *, urgent: bool) -> AbstractContextManager[Any]:
        """A CUDA stream for chunks, ahead of finished lines, which occupy the card for long."""
        if self.device.type == "cuda":
            return torch.cuda.stream(make_stream(self.device, urgent=urgent))
        return nullcontext()

    def _next_chunks(self) -> list[CodecFrames]:
        """The next chunks of some lines, one each; empty when the worker stops."""
        with self._changed:
            self._changed.wait_for(lambda: self._stream_queue or self._closed)
            chunks: dict[int, CodecFrames] = {}
            for frames in self._stream_queue:
                if len(chunks) < self.max_streamed:
                    chunks.setdefault(id(frames.line), frames)
            for frames in chunks.values():
                self._stream_queue.remove(frames)
            return list(chunks.values())

    def _next_finished(self) -> list[CodecFrames]:
        """Several finished lines; empty when the worker stops."""
        with self._changed:
            self._changed.wait_for(lambda: self._finished or self._closed)
            return self._batch(self._finished) if self._finished else []

    def _next(self) -> list[CodecFrames]:
        """A line that somebody waits for, or several others; empty when the worker stops."""
        with self._changed:
            self._changed.wait_for(lambda: self._stream_queue or self._finished or self._closed)
            if self._stream_queue:
                return [self._stream_queue.popleft()]
            return self._batch(self._finished) if self._finished else []

    def _decode_guarded(self, batch: Sequence[CodecFrames]) -> None:
        """Decode a batch; a fault ends the line that it comes of, and the thread goes on."""
        try:
            with speech_faults(self._title):
                _await_codes(batch)
                with self.timer.span() if self.timer else nullcontext():
                    self._decode(batch)
        except OutOfMemory as error:
            self._retry_or_fail(batch, error)
        except StudioError as error:
            _fail_batch(batch, error)
        # Broad, as this thread decodes for all lines, whatever a model makes of some of them.
        except Exception as error:
            log.warning("decoding failed", exc_info=True)
            self._retry_or_fail(batch, self._audio_fault(error))

    def _audio_fault(self, error: Exception) -> StudioError:
        """Turn an unexpected exception into the error of a line."""
        if card_lost(error):
            return ModelUnavailable(LOST)
        reason = f"{type(error).__name__}: {error}"
        return SpeechFailed(f"{self._title} failed on this line's audio ({reason}).")

    def _retry_or_fail(self, batch: Sequence[CodecFrames], error: StudioError) -> None:
        """Decode lines one by one after a fault with several, of which some may be whole."""
        if len(batch) == 1 or card_lost():
            _fail_batch(batch, error)
            return
        for frames in batch:
            self._serve([frames])

    def _decode(self, batch: Sequence[CodecFrames]) -> None:
        if batch[0].streamed:
            self._decode_chunks(batch)
        else:
            self._decode_finished(list(batch))

    def _release(self) -> None:  # noqa: B027 - most hold nothing
        """Release what the threads held, after they ended."""

    @abstractmethod
    def _batch(self, finished: deque[CodecFrames]) -> list[CodecFrames]:
        """Remove from the queue the finished lines to decode together; there is at least one."""

    @abstractmethod
    def _decode_chunks(self, batch: Sequence[CodecFrames]) -> None:
        """Decode the next frames of lines that somebody listens to, at most `max_streamed`."""

    @abstractmethod
    def _decode_finished(self, batch: list[CodecFrames]) -> None:
        """Decode finished lines."""


def _is_wanted(line: TtsSequence) -> bool:
    """Whether a line is still wanted; ends one that was cancelled."""
    if line.is_unwanted:
        line.end(stop_error())
    if line.ended:
        line.codec_state = None
    return not line.ended


def _await_codes(batch: Sequence[CodecFrames]) -> None:
    """Make this thread's CUDA stream wait for the one that wrote the codes."""
    for frames in batch:
        if frames.ready is not None:
            torch.cuda.current_stream().wait_event(frames.ready)


def _fail_batch(batch: Sequence[CodecFrames], error: StudioError) -> None:
    for frames in batch:
        frames.line.codec_state = None
        frames.line.end(error)


STREAMED_SEGMENTS_AHEAD = 1
"""Segments ahead of the play-head up to which a line is decoded while it is made."""

MAX_CHUNK_FRAMES = 16


class CodecDispatcher:
    """Sends new frames to the codec; only the engine's thread calls it."""

    def __init__(
        self,
        core: SlotModelRunner[Any],
        codec: CodecWorker,
        scheduler: SlotScheduler[TtsSequence],
        *,
        on_cuda: bool,
    ) -> None:
        self._core = core
        self._codec = codec
        self._scheduler = scheduler
        self._on_cuda = on_cuda
        self._steps = 0

    def announce(self, lines: Iterable[TtsSequence]) -> None:
        """Prepare the codec for lines that will be streamed, while their prompts are read."""
        for line in lines:
            if self._is_streamed(line):
                nothing = torch.zeros(0, 1, dtype=torch.int64)
                self._codec.submit(CodecFrames(line, nothing, streamed=True, last=False))

    def dispatch(self) -> int:
        """Send the frames of the step that was queued last, or of the one before it.

        Where a chunk is due, the host waits for the last step instead of queueing another one
        before it: that would cost the listener a frame, and the card is idle for less than that.

        Returns:
            How many lines have stopped; their slots are free.
        """
        running = self._scheduler.running
        self._steps += 1
        for line in running.values():
            line.steps += 1
        due = any(self._is_due(line, line.steps) for line in running.values())
        stopped = 0
        for slot, progress in self._core.progress(latest=due).items():
            line = running[slot]
            if progress.stop is not None:
                self._finish(slot, line, progress)
                stopped += 1
            elif self._is_due(line, progress.frames):
                self._send_chunk(slot, line, progress.frames)
        return stopped

    def _is_due(self, line: TtsSequence, frames: int) -> bool:
        """Whether a line's next chunk is due: after one frame, then after more each time.

        Long chunks of all lines are due after the same steps, so that they are decoded together.
        """
        fresh = frames - line.sent_frames
        if not fresh or not self._is_streamed(line):
            return False
        if line.sent_frames >= MAX_CHUNK_FRAMES:
            return self._steps % MAX_CHUNK_FRAMES == 0
        return fresh >= max(1, line.sent_frames)

    def _is_streamed(self, line: TtsSequence) -> bool:
        """Whether a line is decoded while it is generated; once begun, it stays so."""
        return self._codec.streams and (line.sent_frames > 0 or is_at_play_head(line))

    def _send_chunk(self, slot: int, line: TtsSequence, frames: int) -> None:
        codes = self._core.codes(slot, line.sent_frames, frames)
        line.sent_frames = frames
        self._codec.submit(
            CodecFrames(line, codes, streamed=True, ready=self._record_event(), last=False)
        )

    def _finish(self, slot: int, line: TtsSequence, progress: SlotProgress) -> None:
        codes = self._core.codes(slot, line.sent_frames, progress.frames)
        self._core.free(slot)
        self._scheduler.free(slot)
        is_streamed = line.sent_frames > 0 or (not self._codec.streams and is_at_play_head(line))
        error = _stop_fault(progress, self._codec)
        self._codec.submit(CodecFrames(line, codes, is_streamed, self._record_event(), error=error))

    def _record_event(self) -> Any:
        """On CUDA, an event after which the codes just copied are ready; None elsewhere."""
        if not self._on_cuda:
            return None
        event = torch.cuda.Event()
        event.record()
        return event


def is_at_play_head(line: TtsSequence) -> bool:
    """Whether a listener hears this line now, or next."""
    return line.priority().ahead <= STREAMED_SEGMENTS_AHEAD


def _stop_fault(progress: SlotProgress, sound: CodecWorker) -> SpeechFailed | None:
    """The error of a line that was cut short; None if it is complete."""
    match progress.stop:
        case StopReason.BOUND:
            return SpeechFailed(
                f"This line did not stop by itself; it was cut after "
                f"{progress.frames / sound.frames_per_s:.0f} s. Generate it again with another "
                "seed, or change its words."
            )
        case StopReason.FULL:
            return SpeechFailed(sound.too_long)
        case _:
            return None
