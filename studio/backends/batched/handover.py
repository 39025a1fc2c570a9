"""Frames on their way from the core to the codec: of stopped lines all, of heard ones in chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from studio.backends.batched.core_contract import Core, Progress, Stop
from studio.backends.batched.line import Line
from studio.backends.batched.scheduler import Scheduler
from studio.backends.batched.sound_thread import Frames, SoundThread
from studio.errors import SpeechFailed

HEARD_AHEAD = 1
"""Segments ahead of the play-head up to which a line is decoded while it is made."""

LARGEST_CHUNK_FRAMES = 16


class Handover:
    """Watches how far the lines are; the engine's thread alone calls it."""

    def __init__(
        self, core: Core, codec: SoundThread, scheduler: Scheduler[Line], *, on_cuda: bool
    ) -> None:
        """Begin with no frame made."""
        self._core = core
        self._codec = codec
        self._scheduler = scheduler
        self._on_cuda = on_cuda
        self._steps = 0

    def expect(self, lines: Iterable[Line]) -> None:
        """Let the codec get ready for lines that will be heard, while their prompts are read."""
        for line in lines:
            if self._streamed(line):
                nothing = torch.zeros(0, 1, dtype=torch.int64)
                self._codec.submit(Frames(line, nothing, heard=True, last=False))

    def collect(self) -> int:
        """Hand over what the step that was queued last has made, or the one before it.

        Where a chunk is due, the host waits for the last step instead of queueing another one
        before it: that would cost the listener a frame, and the card is idle for a moment only.

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
                self._let_hear(slot, line, progress.frames)
        return stopped

    def _is_due(self, line: Line, frames: int) -> bool:
        """Whether a line's next chunk goes: one frame, then more each time.

        Long chunks of all lines go after the same steps, so that the codec gets them together.
        """
        fresh = frames - line.heard_frames
        if not fresh or not self._streamed(line):
            return False
        if line.heard_frames >= LARGEST_CHUNK_FRAMES:
            return self._steps % LARGEST_CHUNK_FRAMES == 0
        return fresh >= max(1, line.heard_frames)

    def _streamed(self, line: Line) -> bool:
        """Whether it is sounded while it is made; what has begun so goes on."""
        return self._codec.streams and (line.heard_frames > 0 or at_play_head(line))

    def _let_hear(self, slot: int, line: Line, frames: int) -> None:
        codes = self._core.codes(slot, line.heard_frames, frames)
        line.heard_frames = frames
        self._codec.submit(Frames(line, codes, heard=True, ready=self._written(), last=False))

    def _finish(self, slot: int, line: Line, progress: Progress) -> None:
        codes = self._core.codes(slot, line.heard_frames, progress.frames)
        self._core.free(slot)
        self._scheduler.free(slot)
        heard = line.heard_frames > 0 or (not self._codec.streams and at_play_head(line))
        error = _shortfall(progress, self._codec)
        self._codec.submit(Frames(line, codes, heard, self._written(), error=error))

    def _written(self) -> Any:
        """On CUDA, what tells that the codes just taken are there; None elsewhere."""
        if not self._on_cuda:
            return None
        event = torch.cuda.Event()
        event.record()
        return event


def at_play_head(line: Line) -> bool:
    """Whether somebody hears it now, or next."""
    urgency = line.urgency()
    return urgency is not None and urgency <= HEARD_AHEAD


def _shortfall(progress: Progress, sound: SoundThread) -> SpeechFailed | None:
    """Why a stopped line isn't whole; None when it is."""
    match progress.stop:
        case Stop.BOUND:
            return SpeechFailed(
                f"This line did not stop by itself; it was cut after "
                f"{progress.frames / sound.frames_per_s:.0f} s. Generate it again with another "
                "seed, or change its words."
            )
        case Stop.FULL:
            return SpeechFailed(sound.too_long)
        case _:
            return None
