"""A model that listens, in memory or to be brought there; sherpa-onnx runs it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from studio.backends.base import LoadProgress
from studio.backends.sherpa.catalogue import DownloadableModel, find_folders
from studio.backends.sherpa.sherpa_model import describe_load_failure, locate_files, try_load
from studio.errors import ModelUnavailable
from studio.hearing.model_catalogue import HearingModel


class Listener(DownloadableModel):
    """What is the same of recognisers, voice embedders and denoisers.

    Attributes:
        kind: As `load_check` names what it tries to load.
    """

    kind: ClassVar[str]

    def __init__(self, model: HearingModel) -> None:
        """Load and fetch nothing yet."""
        super().__init__(model)
        self.name = model.name
        self.model = model
        # Held while one recording is listened to, by a subclass that threads share.
        self._lock = threading.Lock()
        self._loaded: Any = None
        self._is_proven = False

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Bring the model into memory; downloads its weights first where needed.

        Raises:
            ModelUnavailable: The package or the weights are missing or broken.
            Cancelled: `progress` raised it.
        """
        if self._loaded is not None:
            return
        self.fetch(progress)
        progress(LoadProgress(f"Loading {self.title} into memory"))
        folders = find_folders(self.model)
        if not self._is_proven:
            try_load(self.model, folders, family=self.model.family, kind=self.kind)
            self._is_proven = True
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
        """Load the files, of which the loading in another process went well."""
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
