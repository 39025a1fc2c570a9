"""The codec of Qwen3-TTS beside the frames.

What somebody listens to is decoded chunk by chunk; of all other finished lines, those that wait
are decoded together, and wait again between two rounds where somebody listens.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import torch

from studio.backends.batched.codec import BatchedCodec, CodedLine, LineStream
from studio.backends.batched.graphs import settle
from studio.backends.batched.memory import CODEC_ROW_FRAMES
from studio.backends.batched.sound_thread import Frames, SoundThread
from studio.backends.metal import turn
from studio.backends.qwen3.request import FRAMES_PER_S

FRAMES_AT_ONCE = 4_096
"""Of finished lines that are shared out together; each is given out when it is done."""

BESIDE_A_LISTENER = 16
"""Lines of a round while somebody listens to another: on a card a longer round keeps its chunk, and
the frames that the chunk is made of, waiting."""

log = logging.getLogger(__name__)


class CodecThread(SoundThread):
    """Decodes the codes of lines."""

    frames_per_s = FRAMES_PER_S

    def __init__(self, decoder: Any, *, title: str, convolved_at_once: int | None = None) -> None:
        """Capture the graphs, then start the thread.

        Args:
            decoder: The package's `Qwen3TTSTokenizerV2Decoder`; only read.
            title: The backend's name, for messages.
            convolved_at_once: See `BatchedCodec`; with fewer where the memory doesn't suffice.

        Raises:
            torch.OutOfMemoryError: There is none even for a single line.
        """
        self._codec = _prepared(decoder, convolved_at_once)
        # Held by their lines alone, and gone with them however they end.
        self._heard_now: WeakSet[LineStream] = WeakSet()
        super().__init__(decoder.device, title=title)

    def _batch(self, finished: deque[Frames]) -> list[Frames]:
        batch = [finished.popleft()]
        frames = len(batch[0].codes)
        most = BESIDE_A_LISTENER * CODEC_ROW_FRAMES if self._heard_now else FRAMES_AT_ONCE
        while finished and frames + len(finished[0].codes) <= most:
            batch.append(finished.popleft())
            frames += len(batch[-1].codes)
        return batch

    def _sound(self, batch: Sequence[Frames]) -> None:
        with turn(self._device):
            super()._sound(batch)

    def _chunk(self, frames: Frames) -> None:
        """Decode the next frames of a line that is heard as it is made."""
        line = frames.line
        if line.decoder is None:
            line.decoder = self._codec.stream(line.task.voice.ref_codes)
            self._heard_now.add(line.decoder)
        if len(frames.codes):
            line.give(line.decoder.decode(frames.codes))
        if frames.last:
            line.decoder = None
            line.end(frames.error)

    def _whole(self, batch: list[Frames]) -> None:
        """Decode finished lines together."""
        coded = [CodedLine(frames.codes, frames.line.task.voice.ref_codes) for frames in batch]
        rows = BESIDE_A_LISTENER if self._heard_now else None
        for number, samples in self._codec.decoded(
            coded, between=self._serve_heard, most_rows=rows
        ):
            batch[number].line.give(samples)
            batch[number].line.end(batch[number].error)

    def _release(self) -> None:
        self._codec.close()


def _prepared(decoder: Any, at_once: int | None) -> BatchedCodec:
    """A codec that has captured its graphs, for fewer frames at once where it must be.

    Raises:
        torch.OutOfMemoryError: There is no memory even for a single line.
    """
    while True:
        codec = BatchedCodec(decoder, convolved_at_once=at_once)
        try:
            codec.prepare()
        except torch.OutOfMemoryError:
            codec.close()
            if codec.rows == 1:
                raise
            at_once = codec.frames_at_once // 2
            log.warning("the codec has no memory for %d frames at once", 2 * at_once)
        else:
            settle(decoder.device)  # the thread has a stream of its own
            return codec
