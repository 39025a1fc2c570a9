"""Speaker embeddings: numbers that are alike for one voice, which sherpa-onnx computes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
import soxr

from studio.audio.clip import Clip
from studio.backends.sherpa import load_check
from studio.hearing.listener import Listener

_RATE_HZ = 16_000
_MAX_S = 20.0  # a voice is known by then


class VoiceEmbedder(Listener):
    """Embeds voices; from any thread, one recording at a time."""

    kind = "embedding"

    def embed(self, clip: Clip) -> str | None:
        """A recording's voiceprint, see `pack_voiceprint`; None if it says too little.

        Raises:
            ModelUnavailable: It isn't loaded.
        """
        extractor = self._take_loaded()
        samples = clip.samples[: round(_MAX_S * clip.rate_hz)]
        low = soxr.resample(samples, clip.rate_hz, _RATE_HZ).astype(np.float32)
        with self._lock:
            stream = extractor.create_stream()
            stream.accept_waveform(_RATE_HZ, low)
            stream.input_finished()
            if not extractor.is_ready(stream):
                return None
            return pack_voiceprint(self.name, np.asarray(extractor.compute(stream)))

    def _build(self, files: Mapping[str, str]) -> Any:
        return load_check.build_embedder(files)


def pack_voiceprint(model: str, embedding: np.ndarray) -> str | None:
    """An embedding as text: its model, and its direction in bytes; None for one without any."""
    most = float(np.abs(embedding).max(initial=0.0))
    if not 0 < most < np.inf:
        return None
    steps = np.rint(embedding / most * 127).astype(np.int8)
    return f"{model}:{base64.b64encode(steps.tobytes()).decode()}"
