"""The life of one model: loaded on first use, kept while leased, unloaded when idle.

A `ModelManager` lives on the engine's event loop. All its state changes happen there, between
two awaits, so no lock is needed: a checked condition still holds when it is acted on. Loading and
unloading run in a thread; while one runs it is the `_transition` that all other callers await,
shielded, so that a cancelled caller can't leave a half-done load behind. A load that no caller
waits for any more is stopped.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol

import psutil
from typing_extensions import TypeVar

from studio.backends.base import Backend, LoadProgress, ReportsMemory
from studio.engine.event_log import StateChange
from studio.errors import Cancelled, ModelInUse, StudioError, hide_folders


class LoadableModel(Protocol):
    """What can be loaded and unloaded: a backend, or a recogniser; see `Backend`."""

    @property
    def name(self) -> str:
        """For programs."""

    @property
    def title(self) -> str:
        """For people."""

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Bring the model into memory."""

    def unload(self) -> None:
        """Give all memory back."""


Model = TypeVar("Model", bound=LoadableModel, default=Backend)


class ModelState(StrEnum):
    """The state of a model."""

    UNLOADED = "unloaded"
    LOADING = "loading"
    LOADED = "loaded"
    UNLOADING = "unloading"
    FAILED = "failed"


@dataclass(slots=True)
class ModelCounters:
    """Counts of a model's loads and unloads since the studio started."""

    loads: int = 0
    unloads: int = 0
    failed_loads: int = 0
    cancelled_loads: int = 0
    refused_unloads: int = 0


@dataclass(frozen=True, slots=True)
class EvictionPolicy:
    """When an idle model is unloaded; `idle_timeout_s` 0 means never."""

    enabled: bool = True
    idle_timeout_s: float = 900.0
    check_interval_s: float = 60.0

    @property
    def active(self) -> bool:
        return self.enabled and self.idle_timeout_s > 0


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """Memory in use.

    Attributes:
        resident_bytes: By this process and its child processes.
        device_bytes: By the model on its accelerator; None if the backend doesn't report it.
    """

    resident_bytes: int
    device_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """Memory before and after a load or an unload."""

    before: MemoryUsage
    after: MemoryUsage

    def __str__(self) -> str:
        sizes = _format_megabytes(self.before.resident_bytes, self.after.resident_bytes)
        if self.before.device_bytes is None or self.after.device_bytes is None:
            return f"memory {sizes}"
        device = _format_megabytes(self.before.device_bytes, self.after.device_bytes)
        return f"memory {sizes}, on the device {device}"


def measure_memory(backend: LoadableModel) -> MemoryUsage:
    """Measure this process, its workers and the backend's accelerator; takes milliseconds."""
    device_bytes = backend.memory_bytes() if isinstance(backend, ReportsMemory) else None
    return MemoryUsage(measure_resident_bytes(), device_bytes)


def measure_resident_bytes() -> int:
    """Resident memory of this process and its child processes."""
    studio = psutil.Process()
    total_bytes = int(studio.memory_info().rss)
    for worker in studio.children(recursive=True):
        try:
            total_bytes += int(worker.memory_info().rss)
        except psutil.NoSuchProcess:
            continue
    return total_bytes


def _format_megabytes(before_bytes: int, after_bytes: int) -> str:
    return f"{before_bytes / 1e6:.0f} -> {after_bytes / 1e6:.0f} MB"


log = logging.getLogger(__name__)

REPORT_INTERVAL_S = 1.0

LoadListener = Callable[[LoadProgress], None]
Notify = Callable[[StateChange], None]
"""Called with what changed, in whatever thread; returns at once."""


class ModelLoad:
    """Runs `backend.load` in a thread; belongs to the event loop that created it.

    Attributes:
        latest: The latest progress; None before the first.
        waiting: The number of callers that wait for this load.
        stopped: Done once the load is asked to stop, so that its callers stop waiting.
    """

    def __init__(
        self, backend: LoadableModel, listeners: list[LoadListener], clock: Callable[[], float]
    ) -> None:
        self.latest: LoadProgress | None = None
        self.waiting = 0
        self.stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._backend = backend
        self._listeners = listeners
        self._stop = threading.Event()
        self._clock = clock
        self._reported_s = clock()

    def stop(self) -> None:
        """Ask the load to end at its next progress report, and release its callers."""
        self._stop.set()
        if not self.stopped.done():
            self.stopped.set_result(None)

    def run(self, measure: Callable[[], MemoryUsage]) -> MemoryChange:
        """Load the model; runs in a thread.

        Raises:
            Cancelled: The load was stopped, and the model isn't loaded.
        """
        self._raise_if_stopped()
        before = measure()
        try:
            self._backend.load(self._report)
            self._raise_if_stopped()
        except Cancelled:
            # It may have been stopped at its last report, with everything in memory.
            self._backend.unload()
            raise
        return MemoryChange(before, measure())

    def _report(self, progress: LoadProgress) -> None:
        """Take a progress report of the backend; a load can be stopped nowhere else."""
        self._raise_if_stopped()
        self.latest = progress
        now_s = self._clock()
        if now_s - self._reported_s >= REPORT_INTERVAL_S:
            self._reported_s = now_s
            log.info("model %s: %s", self._backend.name, progress.message)
            for listener in self._listeners:
                listener(progress)

    def _raise_if_stopped(self) -> None:
        if self._stop.is_set():
            raise Cancelled("The load was stopped; what was downloaded is kept.")


RunBlocking = Callable[[Callable[[], Any]], Awaitable[Any]]


class ModelManager(Generic[Model]):
    """Loads one backend once, hands out leases, and unloads it when there is no lease."""

    def __init__(
        self,
        backend: Model,
        *,
        forget: Callable[[], None] = lambda: None,
        notify: Notify = lambda _: None,
        measure: Callable[[LoadableModel], MemoryUsage] = measure_memory,
        clock: Callable[[], float] = time.monotonic,
        run_blocking: RunBlocking = asyncio.to_thread,
    ) -> None:
        """Manage a backend that isn't loaded yet.

        Args:
            backend: What to load and unload; nobody else may.
            forget: Drops what others keep of the backend's memory; called before it is unloaded.
            notify: Called at every change that the page shows.
            measure: Measures the memory; called before and after.
            clock: Monotonic seconds.
            run_blocking: Runs load and unload off the event loop.
        """
        self.backend = backend
        self.counters = ModelCounters()
        self.listeners: list[LoadListener] = [lambda _: notify(StateChange.WORK)]
        self.memory: MemoryChange | None = None
        self._forget = forget
        self._notify = notify
        self._measure = measure
        self._clock = clock
        self._run_blocking = run_blocking
        self._state = ModelState.UNLOADED
        self._transition: asyncio.Task[None] | None = None
        self._loading: ModelLoad | None = None
        self._failure: LoadProgress | None = None
        self._active = 0
        self._last_used_s = clock()
        # Seconds of earlier loads, and since when it is loaded (until it is unloaded, even if an
        # unload fails). One value, as other threads read both.
        self._residency_s: tuple[float, float | None] = (0.0, None)

    @property
    def state(self) -> ModelState:
        return self._state

    @property
    def active(self) -> int:
        return self._active

    @property
    def progress(self) -> LoadProgress | None:
        return self._loading.latest if self._loading is not None else self._failure

    @property
    def loaded_for_s(self) -> float:
        """How long the model has been loaded; 0 if it isn't."""
        _, since_s = self._residency_s
        if self._state is not ModelState.LOADED or since_s is None:
            return 0.0
        return self._clock() - since_s

    @property
    def resident_s(self) -> float:
        """Seconds that the model has been in memory until now, over all its loads."""
        total_s, since_s = self._residency_s
        return total_s if since_s is None else total_s + self._clock() - since_s

    @property
    def last_used_s(self) -> float:
        return self._last_used_s

    def touch(self) -> None:
        """Record that the model is used now."""
        self._last_used_s = self._clock()
        self._notify(StateChange.WORK)

    async def get(self) -> Model:
        """The loaded backend; loads it first if needed."""
        await self.load()
        self.touch()
        return self.backend

    async def load(self) -> None:
        """Load the model unless it is loaded. Concurrent calls share one load and its result."""
        while self._state is not ModelState.LOADED:
            if self._transition is None:
                self._state = ModelState.LOADING
                self._failure = None
                self._loading = ModelLoad(self.backend, self.listeners, self._clock)
                self._transition = asyncio.ensure_future(self._load(self._loading))
                self._transition.add_done_callback(_retrieve_exception)
                self._notify(StateChange.MODELS)
            if self._loading is None or self._loading.stopped.done():
                await asyncio.wait([self._transition])
            else:
                await self._wait_for(self._loading, self._transition)

    def cancel_load(self) -> bool:
        """Stop a load in progress; returns whether there was one.

        Its callers get `Cancelled` at once. The load itself ends at its next progress report, and
        the next load waits until then.
        """
        if self._loading is None or self._loading.stopped.done():
            return False
        self._loading.stop()
        return True

    async def unload(self) -> None:
        """Unload the model if it is loaded; waits for a load, and retries a failed unload.

        Raises:
            ModelInUse: A lease is held; nothing changed.
        """
        while True:
            if self._active:
                self.counters.refused_unloads += 1
                raise ModelInUse(
                    f"{self.backend.title} is speaking {self._active} line(s) now; "
                    "cancel the render or wait for its end, then unload."
                )
            if self._transition is not None:
                await asyncio.wait([self._transition])
            elif self._state in (ModelState.LOADED, ModelState.FAILED):
                await self._begin_unload("asked")
                return
            else:
                return

    @asynccontextmanager
    async def using(self) -> AsyncIterator[Model]:
        """Lease the loaded backend, which isn't unloaded before the lease ends.

        The lease starts before the load, so that the model can't expire in between.
        """
        self._active += 1
        self._notify(StateChange.WORK)
        try:
            yield await self.get()
        finally:
            self._active -= 1
            self.touch()

    async def expire(self, idle_timeout_s: float) -> bool:
        """Unload the model if it has been idle for `idle_timeout_s`; returns whether it was."""
        idle_s = self._clock() - self._last_used_s
        kept = self._why_kept(idle_s, idle_timeout_s)
        if kept is not None:
            log.debug("model %s: kept (%s), %d active", self.backend.name, kept, self._active)
            return False
        await self._begin_unload(f"idle for {idle_s:.0f} s")
        return True

    def _why_kept(self, idle_s: float, idle_timeout_s: float) -> str | None:
        """Why a check doesn't unload the model; None if it does."""
        if self._transition is not None:
            return f"it is {self._state}"
        # A model whose unload failed is still in memory, and the cause may have gone.
        in_memory = self._residency_s[1] is not None
        if not in_memory or self._state not in (ModelState.LOADED, ModelState.FAILED):
            return "it isn't loaded"
        if self._active:
            return "it is in use"
        if idle_s < idle_timeout_s:
            return f"idle for {idle_s:.0f} of {idle_timeout_s:.0f} s"
        return None

    async def _wait_for(self, loading: ModelLoad, transition: asyncio.Task[None]) -> None:
        loading.waiting += 1
        try:
            await asyncio.wait([transition, loading.stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            loading.waiting -= 1
            if not loading.waiting and not transition.done():
                loading.stop()
        if not transition.done():
            raise Cancelled("The load was stopped; what was downloaded is kept.")
        transition.result()

    async def _load(self, loading: ModelLoad) -> None:
        started_s = self._clock()
        try:
            self.memory = await self._run_blocking(
                lambda: loading.run(lambda: self._measure(self.backend))
            )
        except Cancelled:
            self._state = ModelState.UNLOADED
            self.counters.cancelled_loads += 1
            log.info("model %s: load stopped", self.backend.name)
            raise
        except BaseException as error:
            self._fail("load", error)
            self.counters.failed_loads += 1
            raise
        else:
            self._state = ModelState.LOADED
            self.counters.loads += 1
            self._residency_s = (self._residency_s[0], self._clock())
            self.touch()
            took_s = self._clock() - started_s
            log.info("model %s: loaded in %.2f s, %s", self.backend.name, took_s, self.memory)
        finally:
            self._loading = None
            self._transition = None
            self._notify(StateChange.MODELS)

    async def _begin_unload(self, why: str) -> None:
        self._state, self._failure = ModelState.UNLOADING, None
        self._transition = asyncio.ensure_future(self._unload(why))
        self._notify(StateChange.MODELS)
        await asyncio.shield(self._transition)

    async def _unload(self, why: str) -> None:
        try:
            self.memory = await self._run_blocking(self._unload_measured)
        except BaseException as error:
            # What is left in memory is unknown: the next load starts from a backend that
            # has to clean up first, and nobody leases this one as it is.
            self._fail("unload", error)
            raise
        else:
            self._state = ModelState.UNLOADED
            self._count_unload(why)
        finally:
            self._transition = None
            self._notify(StateChange.MODELS)

    def _count_unload(self, why: str) -> None:
        total_s, since_s = self._residency_s
        if since_s is None:  # the clean-up was of a failed load
            return
        resident_s = self._clock() - since_s
        self._residency_s = (total_s + resident_s, None)
        self.counters.unloads += 1
        name = self.backend.name
        log.info("model %s: unloaded (%s) after %.1f s, %s", name, why, resident_s, self.memory)

    def _unload_measured(self) -> MemoryChange:
        before = self._measure(self.backend)
        # First, because the backend can't free memory that is still referenced elsewhere.
        self._forget()
        self.backend.unload()
        return MemoryChange(before, self._measure(self.backend))

    def _fail(self, what: str, error: BaseException) -> None:
        self._state = ModelState.FAILED
        self._failure = LoadProgress(_describe_failure(self.backend, error))
        log.warning("model %s: %s failed: %s", self.backend.name, what, error)


def _retrieve_exception(transition: asyncio.Task[None]) -> None:
    """Retrieve a load's error, or asyncio logs it if every caller was released."""
    if not transition.cancelled():
        transition.exception()


def _describe_failure(backend: LoadableModel, error: BaseException) -> str:
    if isinstance(error, StudioError):
        return str(error)
    return hide_folders(f"{backend.title} failed: {type(error).__name__}: {error}")
