"""S3Gen beside the tokens: finished lines to watermarked sound.

S3Gen reads a whole line in both directions, so nothing can be sounded before a line has ended.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from studio.audio.clip import Samples
from studio.backends.batched.sound_thread import Frames, SoundThread
from studio.backends.batched_chatterbox.core import TOO_LONG
from studio.backends.chatterbox.model import ChatterboxModel
from studio.backends.chatterbox.noise import Noise
from studio.backends.chatterbox.sound import Unsounded
from studio.backends.chatterbox.text import TOKENS_PER_S
from studio.backends.faults import speech_faults
from studio.backends.metal import turn
from studio.errors import SpeechFailed, StudioError

log = logging.getLogger(__name__)

TOGETHER_ON_CUDA = 8
MARKERS_ON_CUDA = 4
"""Threads that put the watermark in, which takes about 11 ms of a CPU's core a second of sound."""

_LIKE_LENGTH = 1.25  # times as long, or as short, is sounded together: little is padded


class S3GenThread(SoundThread):
    """Sounds finished lines, those that somebody waits for first.

    On CUDA lines of about the same length are sounded together, and the next ones while those get
    their watermark. A CPU is busy with one line, and gives each the very same sound in any company.
    """

    streams = False
    frames_per_s = TOKENS_PER_S
    too_long = f"{TOO_LONG} It was cut."

    def __init__(
        self,
        model: ChatterboxModel,
        *,
        title: str,
        together: int | None = None,
        markers: int | None = None,
    ) -> None:
        """Start the threads.

        Args:
            model: Whose S3Gen and watermark; only read.
            title: The backend's name, for messages.
            together: Lines at once; None for what suits the device.
            markers: Threads for the watermark; 0 for none of their own, None for what suits.
        """
        on_cuda = model.device == "cuda"
        self._model = model
        self._together = together or (TOGETHER_ON_CUDA if on_cuda else 1)
        markers = (MARKERS_ON_CUDA if on_cuda else 0) if markers is None else markers
        self._markers = ThreadPoolExecutor(markers, "watermark") if markers else None
        super().__init__(torch.device(model.device), title=title)

    def close(self) -> None:
        """Sound what waits, then stop; blocks until then."""
        super().close()
        if self._markers is not None:
            self._markers.shutdown()

    def _batch(self, finished: deque[Frames]) -> list[Frames]:
        """The one that waits longest, and those that are about as long."""
        oldest = _tokens_read(finished[0])
        alike = [
            frames
            for frames in finished
            if oldest / _LIKE_LENGTH <= _tokens_read(frames) <= oldest * _LIKE_LENGTH
        ][: self._together]
        for frames in alike:
            finished.remove(frames)
        return alike

    def _chunks(self, batch: Sequence[Frames]) -> None:
        self._whole(list(batch))

    def _whole(self, batch: list[Frames]) -> None:
        with turn(self._device):
            heard = [(frames, line) for frames in batch if (line := self._unsounded(frames))]
        if not heard:
            return
        waves = self._model.waves([line for _, line in heard])
        for (frames, _), wave in zip(heard, waves, strict=True):
            if self._markers is None:
                self._finish(frames, wave)
            else:
                self._markers.submit(self._finish_apart, frames, wave)

    def _finish(self, frames: Frames, wave: Samples) -> None:
        frames.line.give(self._model.marked(wave))
        frames.line.end(frames.error)

    def _finish_apart(self, frames: Frames, wave: Samples) -> None:
        """The same in a thread of its own; a fault ends this line alone."""
        try:
            with speech_faults(self._title):
                self._finish(frames, wave)
        except StudioError as error:
            frames.line.end(error)
        except Exception as error:
            log.warning("marking failed", exc_info=True)
            reason = f"{type(error).__name__}: {error}"
            frames.line.end(SpeechFailed(f"{self._title} failed on this line's audio ({reason})."))

    def _unsounded(self, frames: Frames) -> Unsounded | None:
        """A line for S3Gen; None where there is nothing to hear, which ends the line."""
        task = frames.line.task
        try:
            sounds = self._model.sounds_of(frames.codes[:, 0])
        except SpeechFailed as error:
            frames.line.end(error)
            return None
        return Unsounded(sounds, task.voice, Noise(task.seed), task.cancelled)


def _tokens_read(frames: Frames) -> int:
    """Tokens that S3Gen has to read for a line: the sample's and its own."""
    return frames.line.task.voice.prompt_token.shape[1] + len(frames.codes)
