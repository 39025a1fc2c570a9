"""Downloads of weights that a person asked for: each in a thread, paused, resumed or cancelled."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from studio.backends.base import LoadProgress, ManagesWeights
from studio.backends.hub.weights import discard_weights, fetch_best, lacks_best, list_weights
from studio.engine.event_log import StateChange
from studio.engine.model_manager import ModelState
from studio.engine.model_pool import ModelPool
from studio.errors import BadInput, Cancelled, Conflict, ModelInUse, StudioError, hide_folders

log = logging.getLogger(__name__)


class DownloadState(StrEnum):
    """The state of a download; one that is done or cancelled isn't listed any more."""

    RUNNING = "running"
    STOPPING = "stopping"
    PAUSED = "paused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Download:
    """A download as the page shows it.

    Attributes:
        message: What is being downloaded, or why it failed.
        fraction: In [0, 1]; None while nobody knows.
        chooses: Whether what it brings is used at once.
    """

    state: DownloadState
    message: str
    fraction: float | None = None
    chooses: bool = False


class _Transfer:
    """A download's thread, and how it is to end."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.discards = False
        self.thread: threading.Thread | None = None


class WeightDownloads:
    """The downloads of a process. Safe from any thread.

    Attributes:
        backend_names: All backends, as some need files of others; the studio names them.
        n_changes: How often what is on the disk has changed, so that readers look again.
    """

    backend_names: Sequence[str]

    def __init__(self, models: ModelPool[Any], notify: Callable[[StateChange], None]) -> None:
        """Start with none.

        Args:
            models: Has the backends whose weights are meant.
            notify: Called at every change that the page shows, in whatever thread.
        """
        self._models = models
        self.backend_names = ()
        self._notify = notify
        # Guards the fields below.
        self._lock = threading.Lock()
        self._downloads: dict[str, Download] = {}
        self._running: dict[str, _Transfer] = {}
        self.n_changes = 0

    def list(self) -> dict[str, Download]:
        """The downloads that run, wait or failed, by the backend's name."""
        with self._lock:
            return dict(self._downloads)

    def start(self, name: str, then: Callable[[], None] | None = None) -> None:
        """Start or resume a download; does nothing while it runs.

        Args:
            name: The backend.
            then: Called in the download's thread once all is here.

        Raises:
            BadInput: It has nothing to download.
        """
        backend = self._managed(name)
        name = self._models.get_manager(name).backend.name
        running = _Transfer()
        with self._lock:
            if name in self._running:
                return
            known = self._downloads.get(name)
            fraction = known.fraction if known else None
            begins = Download(DownloadState.RUNNING, "Starting", fraction, then is not None)
            self._downloads[name], self._running[name] = begins, running
            running.thread = threading.Thread(
                target=self._run, args=(name, backend, running, then), daemon=True
            )
            running.thread.start()
        self._notify(StateChange.WORK)

    def pause(self, name: str) -> None:
        """Stop a download and keep what has come; does nothing if none runs."""
        self._managed(name)
        self._stop(name, discards=False)

    def cancel(self, name: str) -> None:
        """Stop a download, or end its pause, and delete what has come.

        Raises:
            BadInput: It has nothing to download.
        """
        self._managed(name)
        if self._stop(name, discards=True):
            return
        with self._lock:
            known = self._downloads.pop(name, None)
        if known is not None:
            self._discard_partial(name)
            self._notify(StateChange.MODELS)

    def check_removable(self, name: str) -> None:
        """Check that a backend's weights may be deleted.

        Raises:
            BadInput: It has none that the studio downloaded.
            Conflict: It is being downloaded.
        """
        backend, title = self._managed(name), self._models.get_manager(name).backend.title
        with self._lock:
            is_running = self._models.get_manager(name).backend.name in self._running
        if is_running:
            raise Conflict(f"{title} is being downloaded; stop that first.")
        if not list_weights(backend.weight_sources):
            raise BadInput(
                f"{title} has no weights that the studio downloaded; a folder of your own stays."
            )

    def remove(self, name: str) -> None:
        """Delete the weights of a backend that isn't loaded; those another one needs stay.

        Raises:
            BadInput, Conflict: As `check_removable`.
            ModelInUse: It is loaded or being loaded.
        """
        self.check_removable(name)
        manager = self._models.get_manager(name)
        if manager.state in (ModelState.LOADED, ModelState.LOADING):
            raise ModelInUse(f"{manager.backend.title} is in use; unload it first.")
        sources = self._managed(name).weight_sources
        discard_weights(sources, keep=self._needed_elsewhere(manager.backend.name))
        self.tell_changed()

    def close(self) -> None:
        """Stop all downloads and wait for their threads; what has come is kept."""
        with self._lock:
            running = list(self._running.values())
        for one in running:
            one.stop.set()
        for one in running:
            if one.thread is not None:
                one.thread.join()

    def _managed(self, name: str) -> ManagesWeights:
        backend = self._models.get_manager(name).backend
        if not isinstance(backend, ManagesWeights):
            raise BadInput(f"{backend.title} has nothing to download.")
        return backend

    def _needed_elsewhere(self, name: str) -> frozenset[Path]:
        """The files of other backends that are completely here."""
        others = (self._models.get_manager(one).backend for one in self.backend_names)
        return frozenset[Path]().union(
            *(
                list_weights(one.weight_sources)
                for one in others
                if one.name != name and isinstance(one, ManagesWeights) and one.to_fetch() is None
            )
        )

    def _stop(self, name: str, *, discards: bool) -> bool:
        with self._lock:
            running = self._running.get(name)
            if running is None:
                return False
            running.discards = discards
            running.stop.set()
            known = self._downloads[name]
            self._downloads[name] = replace(known, state=DownloadState.STOPPING)
        self._notify(StateChange.WORK)
        return True

    def _run(
        self,
        name: str,
        backend: ManagesWeights,
        running: _Transfer,
        then: Callable[[], None] | None,
    ) -> None:
        def report(progress: LoadProgress) -> None:
            if running.stop.is_set():
                raise Cancelled("The download was stopped; what has come is kept.")
            self._show(name, progress)

        left: Download | None = None
        try:
            if backend.to_fetch() is None:  # then there may be better files than those here
                for source in filter(lacks_best, backend.weight_sources):
                    fetch_best(source, report)
            backend.fetch(report)
            if then is not None and not running.stop.is_set():
                then()
        except Cancelled:
            known = self.list()[name]
            message = f"{known.fraction or 0:.0%} is here."
            left = replace(known, state=DownloadState.PAUSED, message=message)
        except StudioError as error:
            left = self._failed(name, str(error))
        # Broad, as the page would otherwise show a download that runs for ever.
        except Exception as error:
            log.exception("download of %s", name)
            left = self._failed(name, hide_folders(f"The download failed: {error}"))
        self._end(name, running, left)

    def _end(self, name: str, running: _Transfer, left: Download | None) -> None:
        discards = running.discards
        if discards:  # while it is listed, so that whoever sees it gone finds nothing left
            self._discard_partial(name)
        with self._lock:
            del self._running[name]
            if left is None or discards:
                del self._downloads[name]
            else:
                self._downloads[name] = left
        self.tell_changed()

    def _show(self, name: str, progress: LoadProgress) -> None:
        with self._lock:
            known = self._downloads[name]
            fraction = known.fraction if progress.fraction is None else progress.fraction
            self._downloads[name] = replace(known, message=progress.message, fraction=fraction)
        self._notify(StateChange.WORK)

    def _failed(self, name: str, message: str) -> Download:
        return replace(self.list()[name], state=DownloadState.FAILED, message=message)

    def _discard_partial(self, name: str) -> None:
        backend = self._managed(name)
        if backend.to_fetch() is not None:  # it may have come whole before it was cancelled
            discard_weights(backend.weight_sources, keep=self._needed_elsewhere(name))

    def tell_changed(self) -> None:
        """Have what is on the disk looked at again."""
        with self._lock:
            self.n_changes += 1
        self._notify(StateChange.MODELS)
        self._notify(StateChange.WORK)
