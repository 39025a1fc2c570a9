"""The engine that all studios share, and the `Render` by which each render is run on it."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from studio.audio.clip import Clip, write_wav
from studio.backends.base import Backend, FetchesWeights
from studio.backends.registry import offer_of
from studio.engine.event_log import EventLog, StateChange
from studio.engine.job import Job, JobSpec
from studio.engine.model_manager import EvictionPolicy, ModelState
from studio.engine.model_pool import ConditioningCache, ConditioningStore, ModelPool
from studio.engine.renderer import Renderer, SaveClip
from studio.engine.speech_speed import SpeechSpeeds
from studio.engine.voice_conversion import VoiceConverter
from studio.engine.weight_downloads import WeightDownloads
from studio.errors import Cancelled, EngineBusy, ModelInUse, ModelUnavailable, NotAllowed
from studio.voices.speaker import Voice

# The page, the HTTP API and the command line run in other threads and loops. The engine has its
# own, so that a slow page never delays a segment, and a job outlives the request that started it.

T = TypeVar("T")


class EngineLoop:
    """An asyncio loop that runs from `start` to `close`."""

    def __init__(self, name: str = "engine") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the engine's loop and wait for its result; from other threads."""
        assert threading.current_thread() is not self._thread, "the engine can't wait for itself"
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def call(self, function: Callable[[], T]) -> T:
        """Run a plain function on the engine's loop and wait for its result."""

        async def once() -> T:
            return function()

        return self.run(once())

    async def responds(self, within_s: float) -> bool:
        """Whether the loop is responsive; called from another loop, which isn't blocked by this."""
        if not self._thread.is_alive() or self._loop.is_closed():
            return False
        answer = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop)
        try:
            await asyncio.wait_for(asyncio.wrap_future(answer), within_s)
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Cancel all tasks, stop the loop and join the thread."""
        if not self._thread.is_alive():
            return
        self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


async def _cancel_others() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


RenderListener = Callable[[float, float | None], None]
"""Called with a render's duration and the time to its first audio, in seconds."""


_MAX_CHANGES = 256


class Engine:
    """The engine of a process. Safe from any thread but the engine's own."""

    def __init__(
        self,
        create_backend: Callable[[str], Backend],
        eviction: EvictionPolicy,
        *,
        conditioning_folder: Path,
        max_concurrency: int = 3,
        save: SaveClip = write_wav,
        speeds: SpeechSpeeds | None = None,
    ) -> None:
        """Build the parts; `start` starts them.

        Args:
            create_backend: Makes a backend by name; raises `SettingError` for an unknown one.
            eviction: When idle models are unloaded.
            conditioning_folder: Folder in which conditioning is stored between runs.
            max_concurrency: Segments in flight on a backend without slots of its own.
            save: Writes a clip to a file.
            speeds: How fast each backend speaks; None measures for this process only.
        """
        self.conditioning = ConditioningCache(ConditioningStore(conditioning_folder))
        self.changes: EventLog[StateChange] = EventLog(_MAX_CHANGES)
        self.models = ModelPool(
            create_backend,
            eviction,
            forget=self.conditioning.forget,
            notify=self.changes.append,
        )
        self.speeds = speeds or SpeechSpeeds(None, "cpu")
        self.speeds.notify = lambda: self.changes.append(StateChange.MODELS)
        self.downloads = WeightDownloads(self.models, self.changes.append)
        self.renderer = Renderer(
            self.models,
            self.conditioning,
            max_concurrency=max_concurrency,
            save=save,
            speeds=self.speeds,
        )
        self.converter = VoiceConverter(self.models, self.conditioning)
        self.max_concurrency = max_concurrency
        self.job_listeners: list[Callable[[Job], None]] = []
        self.render_listeners: list[RenderListener] = []
        self._loop = EngineLoop()
        self._reaper: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the loop and the idle check."""
        self._loop.start()
        self._reaper = self._loop.call(lambda: asyncio.ensure_future(self.models.run_reaper()))

    def close(self) -> None:
        """Stop downloads, cancel all jobs, unload the models and stop the loop."""
        self.downloads.close()
        self._loop.run(self._shut_down())
        self._loop.close()

    def submit(self, job: Job, *, listen: bool) -> None:
        """Submit a job; with `listen`, it goes before the others."""
        for watch in self.job_listeners:
            watch(job)

        def begin() -> None:
            if listen:
                self.renderer.focus(job, 0)
            self.renderer.submit(job)

        self._loop.call(begin)

    def report_render(self, wall_s: float, first_audio_s: float | None) -> None:
        """Report the end of a render that consisted of many jobs; safe from any thread."""
        for count in self.render_listeners:
            count(wall_s, first_audio_s)

    def focus(self, job: Job, segment_idx: int) -> None:
        """Move a job's play-head to a segment: it renders on from there, before other jobs."""
        self._loop.call(lambda: self.renderer.focus(job, segment_idx))

    def cancel(self, job: Job) -> None:
        """Stop a job; returns once no further segment of it can start."""
        self._loop.call(lambda: self.renderer.cancel(job))

    def convert(
        self, backend_name: str, recording: Clip, voice: Voice, is_stopped: Callable[[], bool]
    ) -> Clip:
        """Convert a recording to another voice and wait for it; see `VoiceConverter.convert`."""
        return self._loop.run(self.converter.convert(backend_name, recording, voice, is_stopped))

    async def responds(self, within_s: float = 3.0) -> bool:
        """Whether the engine's thread is alive and responsive; called from another loop."""
        return await self._loop.responds(within_s)

    def drain(self) -> None:
        """Wait until the loop has run all that was ready when this was called."""
        self._loop.call(lambda: None)

    def load(self, name: str) -> None:
        """Load a backend's model now."""
        self._loop.run(self.models.get_manager(name).load())

    def cancel_load(self, name: str) -> bool:
        """Stop the load of a backend's model, if there is one; downloaded files stay."""
        return self._loop.call(self.models.get_manager(name).cancel_load)

    def unload(self, name: str) -> None:
        """Unload a backend's model now."""
        self._loop.run(self.models.get_manager(name).unload())

    def remove_weights(self, name: str) -> None:
        """Unload a backend's model and delete its weights."""
        self.downloads.check_removable(name)
        self.unload(name)
        self.downloads.remove(name)
        self.speeds.forget(self.models.get_manager(name).backend.name)

    def check_choice(self, name: str) -> None:
        """Check that a backend may be chosen.

        Raises:
            ModelUnavailable: It can't run here.
        """
        reason = self.models.get_manager(name).backend.unavailable()
        if reason is not None:
            raise ModelUnavailable(reason)

    def retire(self, name: str) -> None:
        """Unload the model of a backend that isn't chosen any more, unless it is in use."""
        self._loop.run(self._retire(name))

    def set_idle_timeout(self, idle_timeout_s: float) -> None:
        """Change after how many idle seconds models are unloaded; 0 keeps them."""
        self._loop.call(lambda: self.models.set_idle_timeout(idle_timeout_s))

    def set_max_concurrency(self, max_concurrency: int) -> None:
        """Change how many segments are in flight on a backend without slots of its own."""
        self.max_concurrency = max_concurrency
        self._loop.call(lambda: self.renderer.set_max_concurrency(max_concurrency))
        self.changes.append(StateChange.WORK)

    async def _retire(self, name: str) -> None:
        manager = self.models.get_manager(name)
        if not manager.active:
            manager.cancel_load()
        with suppress(ModelInUse):
            await manager.unload()

    async def _shut_down(self) -> None:
        if self._reaper is not None:
            self._reaper.cancel()
        await self.renderer.close()
        await self.models.unload_all()


OWNERS_ONLY = "Only the owner of this studio may do that."

MOST_RESIDENT = 2
"""Models with weights that stay in memory when visitors load others; more only while in use."""


class MeteredEngine:
    """The engine of a shared studio as one visitor may use it: charged, and without downloads.

    Only the owner may load and unload models, change the engine's settings, start it and close it.
    """

    def __init__(self, shared: Engine, charge: Callable[[Job], None]) -> None:
        """Meter an engine.

        Args:
            shared: The owner's.
            charge: Called with each job before it is submitted; raises if the limits forbid it.
        """
        self._shared = shared
        self._charge = charge
        self._jobs: list[Job] = []
        # What costs nothing is the shared engine's own.
        self.models, self.renderer, self.changes = shared.models, shared.renderer, shared.changes
        self.speeds, self.downloads = shared.speeds, shared.downloads
        self.focus, self.cancel, self.drain = shared.focus, shared.cancel, shared.drain
        self.report_render = shared.report_render

    @property
    def max_concurrency(self) -> int:
        return self._shared.max_concurrency

    @property
    def is_at_work(self) -> bool:
        """Whether a job of this visitor is running or queued."""
        return any(not job.events.closed for job in list(self._jobs))

    def submit(self, job: Job, *, listen: bool) -> None:
        """Submit a job, if the visitor's limits allow it.

        Raises:
            NotAllowed: Its model would have to be downloaded.
        """
        name = job.spec.backend_name
        self._check_fetched(name)
        self._charge(job)
        self._make_room(name)
        # A new list, because other threads read it.
        self._jobs = [one for one in self._jobs if not one.events.closed] + [job]
        self._shared.submit(job, listen=listen)

    def convert(
        self, backend_name: str, recording: Clip, voice: Voice, is_stopped: Callable[[], bool]
    ) -> Clip:
        """Convert a recording as the shared engine does."""
        self._check_fetched(backend_name)
        self._make_room(backend_name)
        return self._shared.convert(backend_name, recording, voice, is_stopped)

    def check_choice(self, name: str) -> None:
        """Check that the visitor may choose a backend."""
        self._check_fetched(name)
        self._shared.check_choice(name)

    def retire(self, name: str) -> None:
        """Do nothing: others may be using the model, and the idle check unloads it."""

    def start(self) -> None:
        """Do nothing: the owner's studio has started the engine."""

    def close(self) -> None:
        """Do nothing: others use the engine."""

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Leave it to the owner.

        Raises:
            NotAllowed: Always.
        """
        raise NotAllowed(OWNERS_ONLY)

    load = unload = cancel_load = set_idle_timeout = set_max_concurrency = remove_weights = refuse

    def _check_fetched(self, name: str) -> None:
        """Check that a backend can speak without a download.

        Raises:
            NotAllowed: It would have to be downloaded first.
        """
        manager = self.models.get_manager(name)
        if manager.state is ModelState.LOADED:
            return
        offer = offer_of(manager.backend)
        # A backend that can't run here at all says so when it is used.
        if offer.unavailable is None and offer.to_fetch is not None:
            raise NotAllowed(
                f"{offer.title} isn't on this studio yet, and only its owner can fetch it. Choose "
                "another voice engine."
            )

    def _make_room(self, name: str) -> None:
        """Before another model is loaded, unload those that have been idle for the longest."""
        wanted = self.models.get_manager(name)
        if wanted.state is ModelState.LOADED or not isinstance(wanted.backend, FetchesWeights):
            return
        known = [self.models.get_manager(one.name) for one in self.models.list_statuses()]
        loaded = [
            manager
            for manager in known
            if manager.state is ModelState.LOADED and isinstance(manager.backend, FetchesWeights)
        ]
        idle = sorted((one for one in loaded if not one.active), key=lambda one: one.last_used_s)
        for manager in idle[: max(0, len(loaded) - MOST_RESIDENT + 1)]:
            self._shared.retire(manager.backend.name)


SpeechEngine = Engine | MeteredEngine
"""A studio's engine: the owner's, or a visitor's."""


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """Bounds the queued segments of all jobs; beyond it, a further render is refused."""

    segments: int
    message: str
    retry_after_s: float

    def check(self, engine: SpeechEngine) -> None:
        """Check that the engine takes a further render.

        Raises:
            EngineBusy: Too much is queued already.
        """
        if engine.renderer.queued >= self.segments:
            raise EngineBusy(self.message, retry_after_s=self.retry_after_s)


def generate_job_id() -> str:
    """A job's id: 16 hex digits."""
    return secrets.token_hex(8)


_remove_folder = partial(shutil.rmtree, ignore_errors=True)


class Render:
    """Starts a job, stops it, and deletes its folder once nothing can write to it any more.

    As an async context manager it is closed at the end of the block, even if it wasn't started.
    """

    def __init__(
        self,
        engine: SpeechEngine,
        spec: JobSpec,
        *,
        job_id: str | None = None,
        remove_folder: Callable[[Path], object] = _remove_folder,
    ) -> None:
        """Prepare; `start` starts the job.

        Args:
            engine: Runs the job.
            spec: Its folder exists already, and belongs to the render from now on.
            job_id: An id by which the folder was named; None for a new one.
            remove_folder: Deletes the folder; called in threads.
        """
        self.job = Job(job_id or generate_job_id(), spec)
        self._engine = engine
        self._remove_folder = remove_folder
        # Guards the two fields below, so that a stopped render can't start any more.
        self._lock = threading.Lock()
        self._has_started = False
        self._is_stopped = False

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or was never started."""
        return self.job.events.closed or not self._has_started

    def start(self, *, listen: bool = False) -> None:
        """Submit the job to the engine; with `listen`, it goes before the others.

        Raises:
            Cancelled: It was stopped before.
        """
        with self._lock:
            if self._is_stopped:
                raise Cancelled("The render was stopped before it began.")
            try:
                self._engine.submit(self.job, listen=listen)
            except BaseException:
                self.remove_folder()
                raise
            self._has_started = True

    def stop(self) -> None:
        """Stop the job: segments in flight end at their next step. To be called in a thread."""
        with self._lock:
            self._is_stopped = True
        if not self.is_over:
            self._engine.cancel(self.job)

    async def wait(self) -> None:
        """Wait until it has ended."""
        if self._has_started:
            async for _ in self.job.events.subscribe():
                pass

    def close(self) -> None:
        """Stop the job, wait for its end and delete the folder; to be called in a thread.

        A job whose audio was all generated isn't stopped: it is done once its files are saved.
        """
        if not self.job.is_generated:
            self.stop()
        if self._has_started:
            # A segment in flight may still write its file.
            for _ in self.job.events.follow():
                pass
        self.remove_folder()

    async def aclose(self) -> None:
        """As `close`, but holds no thread while segments in flight end."""
        if not self.job.is_generated:
            await asyncio.to_thread(self.stop)
        await self.wait()
        await asyncio.to_thread(self.remove_folder)

    def remove_folder(self) -> None:
        """Delete the folder of a render that has ended."""
        if self.job.spec.folder is not None:
            self._remove_folder(self.job.spec.folder)

    async def __aenter__(self) -> Render:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(asyncio.to_thread(self.close))
