"""Speaker embeddings: numbers that are alike for one voice, which sherpa-onnx computes."""

from __future__ import annotations

import base64
import logging
import threading
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import soxr

from studio.audio.clip import Clip
from studio.backends.base import LoadProgress
from studio.backends.sherpa import load_check
from studio.backends.sherpa.catalogue import DownloadableModel, HubSource, find_folders
from studio.backends.sherpa.sherpa_model import describe_load_failure, locate_files, try_load
from studio.errors import ModelUnavailable

log = logging.getLogger(__name__)

_RATE_HZ = 16_000
_MAX_S = 20.0  # a voice is known by then


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """One model of the catalogue; fields as in `RecogniserModel`."""

    name: str
    title: str
    summary: str
    code_licence: str
    weights_licence: str
    size_bytes: int
    sources: tuple[HubSource, ...]
    non_commercial: bool = False


def _read_models() -> dict[str, EmbeddingModel]:
    data = files(__package__).joinpath("voice_embeddings.toml")  # which may be in a zip
    entries: dict[str, dict[str, Any]] = tomllib.loads(data.read_text("utf-8"))
    return {
        name: EmbeddingModel(
            name=name, **entry | {"sources": tuple(HubSource(**one) for one in entry["sources"])}
        )
        for name, entry in entries.items()
    }


EMBEDDING_MODELS: Mapping[str, EmbeddingModel] = _read_models()


class VoiceEmbedder(DownloadableModel):
    """Embeds voices where its model is installed; from any thread, one recording at a time.

    It is loaded with the first take: 30 MB, which stay until `unload`.
    """

    def __init__(self, model: EmbeddingModel = EMBEDDING_MODELS["campplus"]) -> None:
        """Load and fetch nothing yet."""
        super().__init__(model)
        self.name = model.name
        self.model = model
        # Guards the extractor.
        self._lock = threading.Lock()
        self._extractor: Any = None
        self._has_failed = False

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Bring the model into memory; downloads its weights first where needed.

        Raises:
            ModelUnavailable: The package or the weights are missing or broken.
            Cancelled: `progress` raised it.
        """
        self.fetch(progress)
        with self._lock:
            self._load()

    def unload(self) -> None:
        """Give the memory back; the next take loads it again."""
        with self._lock:
            self._extractor, self._has_failed = None, False

    def embed(self, clip: Clip) -> str | None:
        """A take's voiceprint, see `pack_voiceprint`.

        Returns:
            None where the model isn't installed or can't be loaded, or the clip says too little.
        """
        if self._has_failed or self.unavailable() or not find_folders(self.model):
            return None
        samples = clip.samples[: round(_MAX_S * clip.rate_hz)]
        low = soxr.resample(samples, clip.rate_hz, _RATE_HZ).astype(np.float32)
        try:
            with self._lock:
                return self._compute(low)
        except ModelUnavailable as error:
            # Once, as each take would fail alike.
            self._has_failed = True
            log.warning("voices aren't compared by their embeddings: %s", error)
            return None

    def _load(self) -> None:
        if self._extractor is not None:
            return
        folders = find_folders(self.model)
        try_load(self.model, folders, family=self.name, kind="embedding")
        try:
            self._extractor = load_check.build_embedder(locate_files(self.model, folders))
        except (ValueError, RuntimeError) as error:
            reason = describe_load_failure(self.model, folders, str(error))
            raise ModelUnavailable(reason) from error

    def _compute(self, samples: np.ndarray) -> str | None:
        self._load()
        stream = self._extractor.create_stream()
        stream.accept_waveform(_RATE_HZ, samples)
        stream.input_finished()
        if not self._extractor.is_ready(stream):
            return None
        return pack_voiceprint(self.name, np.asarray(self._extractor.compute(stream)))


def pack_voiceprint(model: str, embedding: np.ndarray) -> str | None:
    """An embedding as text: its model, and its direction in bytes; None for one without any."""
    most = float(np.abs(embedding).max(initial=0.0))
    if not 0 < most < np.inf:
        return None
    steps = np.rint(embedding / most * 127).astype(np.int8)
    return f"{model}:{base64.b64encode(steps.tobytes()).decode()}"
