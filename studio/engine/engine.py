"""The engine: event loop, models, renderer and voice converter, shared by all studios."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from studio.audio.clip import Clip
from studio.audio.encode import write_wav
from studio.backends.base import Backend
from studio.engine.conditioning_cache import ConditioningCache, ConditioningStore
from studio.engine.job import Job
from studio.engine.model_manager import EvictionPolicy
from studio.engine.model_pool import ModelPool
from studio.engine.renderer import Renderer
from studio.engine.segment_synthesis import SaveClip
from studio.engine.voice_conversion import VoiceConverter
from studio.errors import ModelInUse
from studio.voices.speaker import Voice

# The engine's own event loop, in its own thread.
#
# Page, HTTP API and command line live in other threads and loops; all of them share this one, so
# that a slow page never delays a segment and a job outlives the request that began it.

T = TypeVar("T")


class EngineLoop:
    """An asyncio loop that runs from `start` to `close`."""

    def __init__(self) -> None:
        """Make the loop; nothing runs yet."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

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
        """Whether the loop does anything at all; asked from another loop, which isn't blocked."""
        if not self._thread.is_alive() or self._loop.is_closed():
            return False
        answer = asyncio.run_coroutine_threadsafe(_ping(), self._loop)
        try:
            await asyncio.wait_for(asyncio.wrap_future(answer), within_s)
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Cancel what still runs, stop the loop and join the thread."""
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


async def _ping() -> None:
    """Be done: that it is, is what was asked."""


RenderListener = Callable[[float, float | None], None]
"""Told how long a render took and when its first sound was there, in seconds."""


class Engine:
    """One a process. Methods may be called from any thread but the engine's own."""

    def __init__(
        self,
        create_backend: Callable[[str], Backend],
        eviction: EvictionPolicy,
        *,
        conditioning_folder: Path,
        max_concurrency: int = 3,
        save: SaveClip = write_wav,
    ) -> None:
        """Put the parts together; `start` brings them to life.

        Args:
            create_backend: Makes a backend by name; raises `SettingError` for one unknown.
            eviction: When idle models are unloaded.
            conditioning_folder: Where conditioning is kept between runs.
            max_concurrency: Segments in flight on a backend that has no slots of its own.
            save: Writes a clip to a file.
        """
        self.conditioning = ConditioningCache(ConditioningStore(conditioning_folder))
        self.models = ModelPool(create_backend, eviction, forget=self.conditioning.forget)
        self.renderer = Renderer(
            self.models, self.conditioning, max_concurrency=max_concurrency, save=save
        )
        self.converter = VoiceConverter(self.models, self.conditioning)
        self.max_concurrency = max_concurrency
        self.watchers: list[Callable[[Job], None]] = []
        self.counters: list[RenderListener] = []
        self._loop = EngineLoop()
        self._reaper: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the loop and the idle check."""
        self._loop.start()
        self._reaper = self._loop.call(lambda: asyncio.ensure_future(self.models.run_reaper()))

    def close(self) -> None:
        """Cancel what runs, unload the models and stop the loop."""
        self._loop.run(self._wind_down())
        self._loop.close()

    def submit(self, job: Job, *, listen: bool) -> None:
        """Let a job begin; one that is listened to goes before the others."""
        for watch in self.watchers:
            watch(job)
        self._loop.call(lambda: self._begin(job, listen=listen))

    def count_render(self, wall_s: float, first_audio_s: float | None) -> None:
        """A render of many jobs ended, which counts as one; from any thread."""
        for count in self.counters:
            count(wall_s, first_audio_s)

    def focus(self, job: Job, segment_idx: int) -> None:
        """Somebody listens to this job, here: it goes first from here on."""
        self._loop.call(lambda: self.renderer.focus(job, segment_idx))

    def cancel(self, job: Job) -> None:
        """Stop a job; returns when nothing more of it will start."""
        self._loop.call(lambda: self.renderer.cancel(job))

    def convert(
        self, backend_name: str, recording: Clip, voice: Voice, stopped: Callable[[], bool]
    ) -> Clip:
        """Say a recording again in another voice, see `VoiceConverter.convert`; waits for it."""
        return self._loop.run(self.converter.convert(backend_name, recording, voice, stopped))

    async def responds(self, within_s: float = 3.0) -> bool:
        """Whether the engine's thread is alive and does anything; asked from another loop."""
        return await self._loop.responds(within_s)

    def catch_up(self) -> None:
        """Wait until the loop has done all that was ready to be done when this was called."""
        self._loop.call(lambda: None)

    def load(self, name: str) -> None:
        """Load a backend's model now.

        Raises:
            ModelUnavailable: It can't be loaded here.
            Cancelled: The load was stopped.
        """
        self._loop.run(self.models.manager(name).load())

    def cancel_load(self, name: str) -> bool:
        """Stop the load of a backend's model; whether there was one. What came is kept."""
        return self._loop.call(self.models.manager(name).cancel_load)

    def unload(self, name: str) -> None:
        """Unload a backend's model now.

        Raises:
            ModelInUse: It is speaking.
        """
        self._loop.run(self.models.manager(name).unload())

    def retire(self, name: str) -> None:
        """Unload a backend that isn't chosen any more, unless somebody uses it."""
        self._loop.run(self._retire(name))

    def set_idle_timeout(self, idle_timeout_s: float) -> None:
        """Change after how many idle seconds models are unloaded; 0 keeps them."""
        self._loop.call(lambda: self.models.set_idle_timeout(idle_timeout_s))

    def set_max_concurrency(self, max_concurrency: int) -> None:
        """Change how many segments are in flight on a backend that has no slots of its own."""
        self.max_concurrency = max_concurrency
        self._loop.call(lambda: self.renderer.bound_by(max_concurrency))

    def _begin(self, job: Job, *, listen: bool) -> None:
        if listen:
            self.renderer.focus(job, 0)
        self.renderer.submit(job)

    async def _retire(self, name: str) -> None:
        manager = self.models.manager(name)
        if not manager.active:
            manager.cancel_load()
        with suppress(ModelInUse):
            await manager.unload()

    async def _wind_down(self) -> None:
        if self._reaper is not None:
            self._reaper.cancel()
        await self.renderer.close()
        await self.models.unload_all()
