"""Takes the noise out of a recording, with a small model that sherpa-onnx runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import soxr

from studio.audio.clip import Clip
from studio.backends.sherpa import load_check
from studio.errors import AudioRejected
from studio.hearing.listener import Listener

_PAD_S = 0.3  # of silence in front: the model's memory starts empty


class Denoiser(Listener):
    """Denoises recordings; from any thread, one at a time."""

    kind = "denoiser"

    def denoise(self, clip: Clip) -> Clip:
        """Take the noise out of a recording.

        Returns:
            As long and at the same rate as `clip`; nothing above 8 kHz is left.

        Raises:
            ModelUnavailable: It isn't loaded.
            AudioRejected: The model fails at this recording.
        """
        denoiser = self._take_loaded()
        with self._lock:
            return _run(denoiser, clip)

    def _build(self, files: Mapping[str, str]) -> Any:
        return load_check.build_denoiser(files, threads=1)


def _run(denoiser: Any, clip: Clip) -> Clip:
    rate_hz = int(denoiser.sample_rate)
    low = soxr.resample(clip.samples, clip.rate_hz, rate_hz).astype(np.float32)
    pad = round(_PAD_S * rate_hz)
    # The model writes whole hops only: silence behind keeps the end.
    try:
        found = denoiser.run(np.pad(low, pad), rate_hz)
    except RuntimeError as error:
        raise AudioRejected(f"The noise can't be taken out of this recording: {error}") from error
    clean = np.asarray(found.samples, dtype=np.float32)[pad : pad + len(low)]
    back = soxr.resample(clean, rate_hz, clip.rate_hz).astype(np.float32)[: len(clip)]
    return Clip(np.clip(np.pad(back, (0, len(clip) - len(back))), -1, 1), clip.rate_hz)
