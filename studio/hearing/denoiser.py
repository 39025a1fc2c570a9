"""Takes the noise out of a recording, with a small model that sherpa-onnx runs."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import soxr

from studio.audio.clip import Clip
from studio.backends.sherpa import load_check
from studio.backends.sherpa.catalogue import DownloadableModel, HubSource, find_folders
from studio.backends.sherpa.sherpa_model import describe_load_failure, locate_files, try_load
from studio.errors import AudioRejected, ModelUnavailable

_PAD_S = 0.3  # of silence in front: the model's memory starts empty


@dataclass(frozen=True, slots=True)
class DenoiserModel:
    """One model of the catalogue; fields as in `CatalogueModel`."""

    title: str
    summary: str
    code_licence: str
    weights_licence: str
    size_bytes: int
    sources: tuple[HubSource, ...]


def _read_denoiser() -> DenoiserModel:
    data = files(__package__).joinpath("denoisers.toml")  # which may be in a zip
    entry: dict[str, Any] = tomllib.loads(data.read_text("utf-8"))["gtcrn"]
    entry["sources"] = tuple(HubSource(**source) for source in entry["sources"])
    return DenoiserModel(**entry)


GTCRN = _read_denoiser()


class Denoiser(DownloadableModel):
    """Denoises recordings; safe from any thread.

    Its model of half a megabyte is loaded for each recording, which takes some milliseconds.
    """

    def __init__(self, model: DenoiserModel = GTCRN) -> None:
        """Load and fetch nothing yet."""
        super().__init__(model)
        self.model = model
        self._is_proven = False

    @property
    def is_installed(self) -> bool:
        """Whether its weights are on this machine; asks no network."""
        return bool(find_folders(self.model))

    def denoise(self, clip: Clip) -> Clip:
        """Take the noise out of a recording; downloads the weights first where needed.

        Returns:
            As long and at the same rate as `clip`; nothing above 8 kHz is left.

        Raises:
            ModelUnavailable: The package or the weights are missing or broken.
            AudioRejected: The model fails at this recording.
        """
        self.fetch(lambda _: None)
        folders = find_folders(self.model)
        if not self._is_proven:
            try_load(self.model, folders, family="gtcrn", kind="denoiser")
            self._is_proven = True
        located = locate_files(self.model, folders)
        try:
            denoiser = load_check.build_denoiser(located, threads=1)
        except (ValueError, RuntimeError) as error:
            reason = describe_load_failure(self.model, folders, str(error))
            raise ModelUnavailable(reason) from error
        return _run(denoiser, clip)


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
