"""Voice conversion of recordings, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from studio.audio.clip import Clip
from studio.backends.base import Backend, ConvertsVoices
from studio.engine.model_pool import ConditioningCache, ModelPool
from studio.errors import BadInput, Cancelled, EngineBusy
from studio.voices.speaker import Voice

MAX_CONVERSIONS = 4
"""Most conversions, running and waiting; each holds a thread of its caller."""

_STOP_POLL_S = 0.2

IsStopped = Callable[[], bool]
T = TypeVar("T")


class VoiceConverter:
    """Converts recordings on the engine's event loop, where its method is called."""

    def __init__(self, models: ModelPool, conditioning: ConditioningCache) -> None:
        self._models = models
        self._conditioning = conditioning
        # One at a time on all backends, as each may need as much memory as a long line.
        self._lock = asyncio.Semaphore(1)
        self._n_waiting = 0

    async def convert(
        self, backend_name: str, recording: Clip, voice: Voice, is_stopped: IsStopped
    ) -> Clip:
        """Change a recording's voice; its words and timing stay.

        Args:
            backend_name: A backend with `ConvertsVoices`.
            recording: Speech at any rate.
            voice: The new voice.
            is_stopped: Polled from several threads; true stops the conversion.

        Raises:
            BadInput: The backend can't convert voices.
            EngineBusy: Too many conversions are waiting.
            Cancelled: `is_stopped` returned true.
        """
        manager = self._models.get_manager(backend_name)
        check_can_convert(manager.backend)
        if self._n_waiting >= MAX_CONVERSIONS:
            raise EngineBusy(
                "Other recordings are waiting already. Try again soon.", retry_after_s=30
            )
        self._n_waiting += 1
        async with AsyncExitStack() as held:
            held.callback(self._leave)
            await _wait_unless_stopped(is_stopped, held.enter_async_context(self._lock))
            backend = await _wait_unless_stopped(
                is_stopped, held.enter_async_context(manager.using())
            )
            return await asyncio.to_thread(self._convert, backend, recording, voice, is_stopped)

    def _leave(self) -> None:
        self._n_waiting -= 1

    def _convert(self, backend: Backend, recording: Clip, voice: Voice, stopped: IsStopped) -> Clip:
        """Do everything that needs the backend; runs in a thread."""
        check_can_convert(backend)
        assert isinstance(backend, ConvertsVoices)
        conditioning = self._conditioning.get(backend, voice)
        return backend.convert(recording, conditioning, cancelled=stopped)


def check_can_convert(backend: Backend) -> None:
    """Check that a backend can convert voices.

    Raises:
        BadInput: It can't.
    """
    if not (backend.capabilities.voice_conversion and isinstance(backend, ConvertsVoices)):
        raise BadInput(
            f"{backend.title} can't change the voice of a recording. Choose a voice engine that"
            " can, such as Chatterbox."
        )


async def _wait_unless_stopped(stopped: IsStopped, work: Coroutine[Any, Any, T]) -> T:
    """Wait for a task, and cancel it once `is_stopped` returns true."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=_STOP_POLL_S)
            if stopped() and not task.done():
                raise Cancelled("It was stopped before it began.")
        return task.result()
    finally:
        task.cancel()
