"""Codes to audio, chunk by chunk, as if the whole line were decoded at once."""

from __future__ import annotations

from typing import Any

import torch

from studio.audio.clip import Samples
from studio.backends.qwen3.codec_step import CodecStep


class CodecStream:
    """Decodes the frames of one line in order; holds all state of it.

    The package decodes with 25 frames of context in place of state, which costs more and changes
    the audio.
    """

    def __init__(self, decoder: Any) -> None:
        """Begin a line.

        Args:
            decoder: The package's `Qwen3TTSTokenizerV2Decoder`; only read.
        """
        with torch.inference_mode():
            self._step = CodecStep(decoder)
            self._state = self._step.fresh(1)

    def skip(self, codes: torch.Tensor) -> None:
        """Hear frames that come before the line, such as the sample's: int64 [frames, groups]."""
        with torch.inference_mode():
            self._step.hear(codes[None].to(self._step.device), self._state)

    def decode(self, codes: torch.Tensor) -> Samples:
        """Decode the next frames.

        Args:
            codes: int64 [frames, groups], at least one frame.

        Returns:
            float32 [frames * samples per frame].
        """
        with torch.inference_mode():
            made = self._step(codes[None].to(self._step.device), self._state)
            samples: Samples = made[0].float().cpu().numpy()
        return samples
