"""The models that listen, of a process: loaded on first use, leased, unloaded when idle."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar, cast

from studio.audio.clip import Clip
from studio.backends.sherpa.catalogue import find_folders
from studio.engine.engine import EngineLoop
from studio.engine.event_log import StateChange
from studio.engine.model_manager import EvictionPolicy
from studio.engine.model_pool import ModelPool
from studio.engine.weight_downloads import WeightDownloads
from studio.errors import Cancelled, ModelUnavailable, SettingError
from studio.hearing.listeners import Denoiser, Listener, VoiceEmbedder
from studio.hearing.model_catalogue import (
    HEARING_MODELS,
    WHISPER_FAMILY,
    HearingModel,
    Purpose,
    lacks_package,
)
from studio.hearing.recognition import (
    Recogniser,
    SherpaRecogniser,
    Transcript,
    WhisperRecogniser,
    identify_language,
    lower_priority,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

_LISTENERS: Mapping[Purpose, type[Listener]] = {
    Purpose.WORDS: SherpaRecogniser,
    Purpose.VOICES: VoiceEmbedder,
    Purpose.NOISE: Denoiser,
}


def create_listener(model: HearingModel) -> Listener:
    """What runs a model of the catalogue; loads nothing yet."""
    if model.family == WHISPER_FAMILY:
        return WhisperRecogniser(model)
    return _LISTENERS[model.purpose](model)


class HearingModels:
    """The models that listen, of one process.

    Safe from any thread. One recording is recognised at a time, in a thread of low priority, so
    that speech that somebody waits for comes first.

    Attributes:
        catalogue: Those that there are, of each purpose the best first.
        models: Those that were asked for, with their states.
        downloads: Of their weights.
    """

    def __init__(
        self,
        policy: EvictionPolicy | None = None,
        *,
        catalogue: Mapping[str, HearingModel] = HEARING_MODELS,
        notify: Callable[[StateChange], None] = lambda _: None,
    ) -> None:
        """Start nothing yet.

        Args:
            policy: When idle models are unloaded.
            catalogue: Those that there are, of each purpose the best first.
            notify: Called at every change of their state, in whatever thread.
        """
        self.catalogue = catalogue
        self.models: ModelPool[Listener] = ModelPool(
            self._create, policy or EvictionPolicy(), notify=notify
        )
        self.downloads = WeightDownloads(self.models, notify)
        self.downloads.backend_names = tuple(catalogue)
        self._lock = threading.Lock()  # guards the loop's start and end
        self._loop: EngineLoop | None = None
        self._is_closed = False
        self._thread = ThreadPoolExecutor(1, "recognition", initializer=lower_priority)
        # What was on the disk when a model could not be loaded, so that not each take tries again.
        self._failed_at: tuple[str, int] | None = None

    def find(self, language: str | None) -> HearingModel | None:
        """The best recogniser on this machine that knows a language; None if there is none.

        Cheap: asks no network and reads no weights.
        """
        fitting = (one for one in self.catalogue.values() if one.knows(language))
        return next((one for one in fitting if find_folders(one) and not lacks_package(one)), None)

    def transcribe(
        self,
        clip: Clip,
        language: str | None = None,
        *,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Transcript:
        """Recognise a recording and wait for it; loads the recogniser first if needed.

        Args:
            clip: Of any rate and length.
            language: The BCP-47 code of what should be said; chooses the recogniser, and tells it.
            cancelled: Polled while it waits and between pieces of half a minute.

        Raises:
            ModelUnavailable: None is installed for the language, or it can't be loaded.
            Cancelled: `cancelled` became true, or this was closed.
        """
        model = self.find(language)
        if model is None:
            raise ModelUnavailable(
                f"No recogniser for “{language}” is installed. See: voices list --recognisers."
            )

        def work(one: Listener) -> Transcript:
            return cast("Recogniser", one).transcribe(clip, language, cancelled)

        return self._running_loop().run(self._lend(model.name, work, self._thread))

    def identify_language(self, clip: Clip) -> str | None:
        """As the function of this name, by the Whisper of this machine; None where there is none.

        Raises:
            Cancelled: This was closed.
        """
        families = (WHISPER_FAMILY, "whisper")
        models = (one for one in self.catalogue.values() if one.family in families)
        model = next((one for one in models if find_folders(one) and not lacks_package(one)), None)
        if model is None:
            return None
        try:
            return self._thread.submit(identify_language, model, clip).result()
        except RuntimeError as error:  # no thread any more
            raise Cancelled("Recognition was stopped.") from error

    def embed(self, clip: Clip) -> str | None:
        """A recording's voiceprint, as `VoiceEmbedder.embed`.

        Returns:
            None where no model of voices is installed or can be loaded, or too little is said.
        """
        voices = (one for one in self.catalogue.values() if one.purpose is Purpose.VOICES)
        model = next((one for one in voices if find_folders(one)), None)
        if model is None or self._failed_at == (model.name, self.downloads.n_changes):
            return None

        def work(one: Listener) -> str | None:
            return cast("VoiceEmbedder", one).embed(clip)

        try:
            return self._running_loop().run(self._lend(model.name, work))
        except Cancelled:
            return None
        except ModelUnavailable as error:
            self._failed_at = model.name, self.downloads.n_changes
            log.warning("voices aren't compared by their embeddings: %s", error)
            return None

    @property
    def denoises(self) -> bool:
        """Whether there is a model that takes noise out; its download may still be to come."""
        return any(one.purpose is Purpose.NOISE for one in self.catalogue.values())

    def denoise(self, clip: Clip) -> Clip:
        """Take the noise out of a recording, as `Denoiser.denoise`; downloads its model first."""
        noise = (one.name for one in self.catalogue.values() if one.purpose is Purpose.NOISE)

        def work(one: Listener) -> Clip:
            return cast("Denoiser", one).denoise(clip)

        return self._running_loop().run(self._lend(next(noise), work))

    def unload(self, name: str) -> None:
        """Unload a model now."""
        self._running_loop().run(self.models.get_manager(name).unload())

    def remove(self, name: str) -> None:
        """Unload a model and delete its weights."""
        self.downloads.check_removable(name)
        self.unload(name)
        self.downloads.remove(name)

    def close(self) -> None:
        """Stop downloads, unload all, end the threads; waits for the piece in recognition."""
        self.downloads.close()
        with self._lock:
            loop, self._loop, self._is_closed = self._loop, None, True
        self._thread.shutdown(cancel_futures=True)
        if loop is not None:
            loop.run(self.models.unload_all())
            loop.close()

    def _running_loop(self) -> EngineLoop:
        with self._lock:
            if self._is_closed:
                raise Cancelled("The studio is being closed.")
            if self._loop is None:
                self._loop = EngineLoop("recognition-loop")
                self._loop.start()
                self._loop.call(lambda: asyncio.ensure_future(self.models.run_reaper()))
            return self._loop

    async def _lend(
        self, name: str, work: Callable[[Listener], T], thread: Executor | None = None
    ) -> T:
        """Do work with a model, in a thread; loads it first if needed."""
        async with self.models.get_manager(name).using() as listener:
            try:
                return await asyncio.get_running_loop().run_in_executor(thread, work, listener)
            except (asyncio.CancelledError, RuntimeError) as error:
                raise Cancelled("Recognition was stopped.") from error

    def _create(self, name: str) -> Listener:
        if name not in self.catalogue:
            offered = ", ".join(self.catalogue)
            raise SettingError(f"There is no model “{name}” that listens; there are: {offered}.")
        return create_listener(self.catalogue[name])
