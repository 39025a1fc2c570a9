"""The codec worker of Chatterbox: S3Gen on batches of finished lines of similar length."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from studio.audio.clip import Samples
from studio.backends.batching.codec_worker import CodecFrames, CodecWorker
from studio.backends.chatterbox.chatterbox_model import ChatterboxModel
from studio.backends.chatterbox.flow import RequestNoise, UndecodedTokens
from studio.backends.chatterbox.t3_runner import LINE_TOO_LONG
from studio.backends.chatterbox.variants import TOKENS_PER_S
from studio.backends.device import speech_faults, turn
from studio.errors import SpeechFailed, StudioError

log = logging.getLogger(__name__)

CUDA_BATCH_LINES = 8
CUDA_WATERMARK_THREADS = 4
"""Threads that put the watermark in, which takes about 11 ms of a CPU's core a second of sound."""

_MAX_LENGTH_RATIO = 1.25  # times as long, or as short, is sounded together: little is padded


class S3GenWorker(CodecWorker):
    """Decodes finished lines, those with a waiting listener first.

    On CUDA lines of about the same length are sounded together, and the next ones while those get
    their watermark. A CPU is busy with one line, and gives each the very same sound in any batch.
    """

    streams = False
    frames_per_s = TOKENS_PER_S
    too_long = f"{LINE_TOO_LONG} It was cut."

    def __init__(
        self,
        model: ChatterboxModel,
        *,
        title: str,
        max_batch: int | None = None,
        watermark_threads: int | None = None,
    ) -> None:
        """Start the threads; None suits the device, 0 means no threads for the watermark."""
        on_cuda = model.device == "cuda"
        self._model = model
        self._decoder = model.graphed_decoder() if on_cuda else None
        self._max_batch = max_batch or (CUDA_BATCH_LINES if on_cuda else 1)
        if watermark_threads is None:
            watermark_threads = CUDA_WATERMARK_THREADS if on_cuda else 0
        self._watermark_threads = (
            ThreadPoolExecutor(watermark_threads, "watermark") if watermark_threads else None
        )
        super().__init__(torch.device(model.device), title=title)

    def close(self) -> None:
        """Decode what is queued, then stop; blocks until then."""
        super().close()
        if self._watermark_threads is not None:
            self._watermark_threads.shutdown()

    def _release(self) -> None:
        if self._decoder is not None:
            self._decoder.close()

    def _batch(self, finished: deque[CodecFrames]) -> list[CodecFrames]:
        """The line that has waited longest, and those of similar length."""
        oldest = _count_tokens_read(finished[0])
        alike = [
            frames
            for frames in finished
            if oldest / _MAX_LENGTH_RATIO
            <= _count_tokens_read(frames)
            <= oldest * _MAX_LENGTH_RATIO
        ][: self._max_batch]
        for frames in alike:
            finished.remove(frames)
        return alike

    def _decode_chunks(self, batch: Sequence[CodecFrames]) -> None:
        self._decode_finished(list(batch))

    def _decode_finished(self, batch: list[CodecFrames]) -> None:
        with turn(self.device):
            wanted = [(frames, line) for frames in batch if (line := self._prepare_tokens(frames))]
        if not wanted:
            return
        waves = self._model.decode_waves([line for _, line in wanted], self._decoder)
        for (frames, _), wave in zip(wanted, waves, strict=True):
            if self._watermark_threads is None:
                self._finish(frames, wave)
            else:
                self._watermark_threads.submit(self._finish_apart, frames, wave)

    def _finish(self, frames: CodecFrames, wave: Samples) -> None:
        frames.line.deliver(self._model.watermark(wave))
        frames.line.end(frames.error)

    def _finish_apart(self, frames: CodecFrames, wave: Samples) -> None:
        """Run `_finish` in the watermark's threads; a fault ends this line alone."""
        try:
            with speech_faults(self._title):
                self._finish(frames, wave)
        except StudioError as error:
            frames.line.end(error)
        # Broad, as nobody joins this work: a reader would wait for its line for ever.
        except Exception as error:
            log.warning("marking failed", exc_info=True)
            frames.line.end(self._audio_fault(error))

    def _prepare_tokens(self, frames: CodecFrames) -> UndecodedTokens | None:
        """Prepare a line for S3Gen; ends a line without speech tokens and returns None."""
        task = frames.line.task
        try:
            sounds = self._model.sound_tokens(frames.codes[:, 0])
        except SpeechFailed as error:
            frames.line.end(error)
            return None
        return UndecodedTokens(sounds, task.voice, RequestNoise(task.seed), task.cancelled)


def _count_tokens_read(frames: CodecFrames) -> int:
    """Number of tokens that S3Gen reads for a line: the sample's and its own."""
    return frames.line.task.voice.prompt_token.shape[1] + len(frames.codes)
