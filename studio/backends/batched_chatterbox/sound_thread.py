"""S3Gen beside the tokens: finished lines to watermarked sound.

S3Gen reads a whole line in both directions, so nothing can be sounded before a line has ended.
"""

from __future__ import annotations

from collections import deque

import torch

from studio.backends.batched.sound_thread import Frames, SoundThread
from studio.backends.chatterbox.model import ChatterboxModel
from studio.backends.chatterbox.noise import Noise
from studio.backends.chatterbox.sound import Unsounded
from studio.backends.chatterbox.text import TOKENS_PER_S
from studio.errors import SpeechFailed

TOGETHER_ON_CUDA = 8
_LIKE_LENGTH = 1.25  # times as long, or as short, is sounded together: little is padded


class S3GenThread(SoundThread):
    """Sounds finished lines, those that somebody waits for first.

    On CUDA lines of about the same length are sounded together. A CPU is busy with one line, and
    gives each the very same sound in any company.
    """

    streams = False
    frames_per_s = TOKENS_PER_S

    def __init__(self, model: ChatterboxModel, *, title: str, together: int | None = None) -> None:
        """Start the thread.

        Args:
            model: Whose S3Gen and watermark; only read.
            title: The backend's name, for messages.
            together: Lines at once; None for what suits the device.
        """
        self._model = model
        self._together = together or (TOGETHER_ON_CUDA if model.device == "cuda" else 1)
        super().__init__(torch.device(model.device), title=title)

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

    def _chunk(self, frames: Frames) -> None:
        self._whole([frames])

    def _whole(self, batch: list[Frames]) -> None:
        heard = [(frames, line) for frames in batch if (line := self._unsounded(frames))]
        if not heard:
            return
        sounded = self._model.sounded([line for _, line in heard])
        for (frames, _), samples in zip(heard, sounded, strict=True):
            frames.line.give(samples)
            frames.line.end(frames.error)

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
