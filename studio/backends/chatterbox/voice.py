"""Voice conversion: a recording's words and timing, as tokens for another voice to speak.

Follows the package's `ChatterboxVC.generate` (version 0.1.7) on an S3Gen that is loaded already.
"""

from __future__ import annotations

from typing import Any

import librosa
import torch

from studio.audio.clip import Clip
from studio.errors import AudioRejected

MIN_RECORDING_S = 0.2
MAX_RECORDING_S = 60.0

_TOKENIZER_RATE_HZ = 16_000


def check_recording(recording: Clip) -> None:
    """Refuse a recording that can't be converted in one pass.

    Raises:
        AudioRejected: It is too short or too long.
    """
    if not MIN_RECORDING_S <= recording.duration_s <= MAX_RECORDING_S:
        raise AudioRejected(
            f"The recording lasts {recording.duration_s:.1f} s; between {MIN_RECORDING_S:g} and "
            f"{MAX_RECORDING_S:g} s can be converted. Record the line again, or cut it."
        )


def converted(s3gen: Any, recording: Clip) -> torch.Tensor:
    """A recording's speech tokens, 25 a second.

    Args:
        s3gen: The loaded module; only read.
        recording: At any rate.

    Returns:
        int64 [n] on the module's device.
    """
    at_rate = librosa.resample(
        recording.samples, orig_sr=recording.rate_hz, target_sr=_TOKENIZER_RATE_HZ
    )
    tokens, _ = s3gen.tokenizer(torch.from_numpy(at_rate)[None].to(s3gen.device))
    return tokens[0]
