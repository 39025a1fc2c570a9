"""Models that listen, in memory or to be brought there: what tells voices apart or takes out noise.

sherpa-onnx runs them, as it does recognisers (`recognition.py`), but for the encoder of voices that
comes as a package (`voice_encoder.py`).
"""

from __future__ import annotations

import base64
import gc
import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import soxr

from studio.audio.clip import Clip
from studio.backends.base import LoadProgress
from studio.backends.sherpa import load_check
from studio.backends.sherpa.catalogue import DownloadableModel, find_folders
from studio.backends.sherpa.sherpa_model import describe_load_failure, locate_files, try_load
from studio.errors import AudioRejected, ModelUnavailable
from studio.hearing.model_catalogue import HearingModel
from studio.hearing.voice_encoder import RATE_HZ, VoiceEncoder

_MAX_S = 20.0  # a voice is known by then
_PAD_S = 0.3  # of silence in front: the denoiser's memory starts empty


class Listener(DownloadableModel):
    """What is the same of recognisers, voice embedders and denoisers.

    Attributes:
        kind: As `load_check` names what it tries to load.
    """

    kind: ClassVar[str]

    def __init__(self, model: HearingModel) -> None:
        super().__init__(model)
        self.name = model.name
        self.model = model
        # Held while one recording is listened to, by a subclass that threads share.
        self._lock = threading.Lock()
        self._loaded: Any = None

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Bring the model into memory; downloads its weights first where needed.

        Raises:
            ModelUnavailable: The package or the weights are missing or broken.
        """
        if self._loaded is not None:
            return
        self.fetch(progress)
        progress(LoadProgress(f"Loading {self.title} into memory"))
        folders = find_folders(self.model)
        if self.package == DownloadableModel.package:
            try_load(self.model, folders, family=self.model.family, kind=self.kind)
        located = locate_files(self.model, folders)
        try:
            self._loaded = self._build(located)
        except (ValueError, RuntimeError) as error:
            reason = describe_load_failure(self.model, folders, str(error))
            raise ModelUnavailable(reason) from error
        progress(LoadProgress(f"{self.title} is ready", 1.0))

    def unload(self) -> None:
        """Give all memory back. Safe when not loaded."""
        self._loaded = None
        gc.collect()

    def _build(self, files: Mapping[str, str]) -> Any:
        """Load the files; sherpa-onnx has loaded its own in another process before."""
        raise NotImplementedError

    def _take_loaded(self) -> Any:
        """What was loaded, to be kept by the caller, as another thread may unload it meanwhile.

        Raises:
            ModelUnavailable: It isn't loaded.
        """
        loaded = self._loaded
        if loaded is None:
            raise ModelUnavailable(f"{self.title} is not loaded. Load it and try again.")
        return loaded


class VoiceEmbedder(Listener):
    """Embeds voices; from any thread, one recording at a time."""

    kind = "embedding"

    def __init__(self, model: HearingModel) -> None:
        super().__init__(model)
        if model.family == "ge2e":
            self.package = "numpy"

    def embed(self, clip: Clip) -> str | None:
        """A recording's voiceprint, see `pack_voiceprint`; None if it says too little.

        Raises:
            ModelUnavailable: It isn't loaded.
        """
        extractor = self._take_loaded()
        samples = clip.samples[: round(_MAX_S * clip.rate_hz)]
        low = soxr.resample(samples, clip.rate_hz, RATE_HZ).astype(np.float32)
        if isinstance(extractor, VoiceEncoder):
            return pack_voiceprint(self.name, extractor.embed(low))
        with self._lock:
            stream = extractor.create_stream()
            stream.accept_waveform(RATE_HZ, low)
            stream.input_finished()
            if not extractor.is_ready(stream):
                return None
            return pack_voiceprint(self.name, np.asarray(extractor.compute(stream)))

    def _build(self, files: Mapping[str, str]) -> Any:
        if self.model.family == "ge2e":
            return VoiceEncoder(files["model"])
        return load_check.build_embedder(files)


def pack_voiceprint(model: str, embedding: np.ndarray) -> str | None:
    """An embedding as text: its model, and its direction in bytes; None for one without any."""
    most = float(np.abs(embedding).max(initial=0.0))
    if not 0 < most < np.inf:
        return None
    steps = np.rint(embedding / most * 127).astype(np.int8)
    return f"{model}:{base64.b64encode(steps.tobytes()).decode()}"


class Denoiser(Listener):
    """Denoises recordings; from any thread, one at a time."""

    kind = "denoiser"

    def denoise(self, clip: Clip) -> Clip:
        """Take the noise out of a recording.

        Returns:
            As long and at the same rate as `clip`; nothing above 8 kHz is left.
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
