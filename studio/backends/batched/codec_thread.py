"""The codec of Qwen3-TTS beside the frames.

What somebody listens to is decoded chunk by chunk, of two such lines in one go, and waits for no
other line; of all finished lines, those that wait are decoded together.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import torch

from studio.backends.batched.codec import BatchedCodec, CodedLine
from studio.backends.batched.codec_chunks import LineStream
from studio.backends.batched.codec_room import CODEC_ROW_FRAMES, HEARD_TOGETHER
from studio.backends.batched.graphs import settle
from studio.backends.batched.sound_thread import Frames, SoundThread
from studio.backends.metal import turn
from studio.backends.qwen3.request import FRAMES_PER_S

FRAMES_AT_ONCE = 4_096
"""Of finished lines that are shared out together; each is given out when it is done."""

BESIDE_A_LISTENER = 16
"""Lines of a round while somebody listens to another: on a card a longer round slows its chunk, and
the frames that the chunk is made of."""

log = logging.getLogger(__name__)


class CodecThread(SoundThread):
    """Decodes the codes of lines."""

    together = HEARD_TOGETHER
    frames_per_s = FRAMES_PER_S

    def __init__(self, decoder: Any, *, title: str, convolved_at_once: int | None = None) -> None:
        """Capture the graphs, then start the threads.

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

    def _chunks(self, batch: Sequence[Frames]) -> None:
        """Decode the next frames of lines that are heard as they are made.

        A line's first ones may be none: then its sample is heard while its prompt is read.
        """
        lines = [frames.line for frames in batch]
        for line in lines:
            if line.decoder is None:
                line.decoder = self._codec.stream(line.task.voice.ref_codes)
                self._heard_now.add(line.decoder)
        made = self._codec.decode_chunks([(one.line.decoder, one.codes) for one in batch])
        for frames, samples in zip(batch, made, strict=True):
            frames.line.give(samples)
            if frames.last:
                frames.line.decoder = None
                frames.line.end(frames.error)

    def _whole(self, batch: list[Frames]) -> None:
        """Decode finished lines together."""
        coded = [CodedLine(frames.codes, frames.line.task.voice.ref_codes) for frames in batch]
        rows = BESIDE_A_LISTENER if self._heard_now else None
        for number, samples in self._codec.decoded(coded, most_rows=rows):
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
            settle(decoder.device)  # the threads have streams of their own
            return codec
