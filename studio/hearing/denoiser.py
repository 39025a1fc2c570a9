"""Takes the noise out of a recording, with a small model that sherpa-onnx runs."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import numpy as np
import soxr

from studio.audio.clip import Clip
from studio.backends.base import LoadProgress
from studio.backends.sherpa import load_check
from studio.backends.sherpa.catalogue import HubSource, find_folders, install
from studio.backends.sherpa.sherpa_model import describe_load_failure, locate_files, try_load
from studio.errors import AudioRejected, ModelUnavailable
from studio.setup.commands import install_remedy

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


class Denoiser:
    """Denoises recordings; safe from any thread.

    Its model of half a megabyte is loaded for each recording, which takes some milliseconds.
    """

    def __init__(self, model: DenoiserModel = GTCRN) -> None:
        """Load and fetch nothing yet."""
        self.model = model
        self._is_proven = False

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None when its package is installed."""
        if find_spec("sherpa_onnx") is None:
            return f"{self.model.title} needs the package sherpa-onnx. {install_remedy()}"
        return None

    @property
    def is_installed(self) -> bool:
        """Whether its weights are on this machine; asks no network."""
        return bool(find_folders(self.model))

    def fetch(self, progress: Callable[[LoadProgress], None] = lambda _: None) -> None:
        """Download the weights where needed.

        Raises:
            ModelUnavailable: The package or the weights can't be had; names the remedy.
        """
        if reason := self.unavailable():
            raise ModelUnavailable(reason)
        install(self.model, progress)

    def denoise(self, clip: Clip) -> Clip:
        """Take the noise out of a recording; downloads the weights first where needed.

        Returns:
            As long and at the same rate as `clip`; nothing above 8 kHz is left.

        Raises:
            ModelUnavailable: The package or the weights are missing or broken.
            AudioRejected: The model fails at this recording.
        """
        self.fetch()
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
