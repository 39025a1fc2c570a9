"""The codec of Qwen3-TTS beside the frames.

What somebody listens to is decoded chunk by chunk; of all other finished lines, those that wait
are decoded together.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from studio.backends.batched.codec import BatchedCodec, CodedLine
from studio.backends.batched.sound_thread import Frames, SoundThread
from studio.backends.qwen3.codec import CodecStream
from studio.backends.qwen3.request import FRAMES_PER_S

FRAMES_AT_ONCE = 4_096
"""Of finished lines decoded together; the audio of the first waits for the last."""


class CodecThread(SoundThread):
    """Decodes the codes of lines."""

    frames_per_s = FRAMES_PER_S

    def __init__(self, decoder: Any, *, title: str, convolved_at_once: int | None = None) -> None:
        """Start the thread.

        Args:
            decoder: The package's `Qwen3TTSTokenizerV2Decoder`; only read.
            title: The backend's name, for messages.
            convolved_at_once: See `BatchedCodec`.
        """
        self._decoder = decoder
        self._batched = BatchedCodec(decoder, convolved_at_once=convolved_at_once)
        super().__init__(decoder.device, title=title)

    def _batch(self, finished: deque[Frames]) -> list[Frames]:
        batch = [finished.popleft()]
        frames = len(batch[0].codes)
        while finished and frames + len(finished[0].codes) <= FRAMES_AT_ONCE:
            batch.append(finished.popleft())
            frames += len(batch[-1].codes)
        return batch

    def _chunk(self, frames: Frames) -> None:
        """Decode the next frames of a line that is heard as it is made."""
        line = frames.line
        if line.decoder is None:
            line.decoder = CodecStream(self._decoder)
            if line.task.voice.ref_codes is not None:
                line.decoder.skip(line.task.voice.ref_codes)
        if len(frames.codes):
            line.give(line.decoder.decode(frames.codes))
        if frames.last:
            line.decoder = None
            line.end(frames.error)

    def _whole(self, batch: list[Frames]) -> None:
        """Decode finished lines together."""
        coded = [CodedLine(frames.codes, frames.line.task.voice.ref_codes) for frames in batch]
        for frames, samples in zip(batch, self._batched.decode(coded), strict=True):
            frames.line.give(samples)
            frames.line.end(frames.error)
