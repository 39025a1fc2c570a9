"""Voice conversion: a recording in another voice, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from studio.audio.clip import Clip
from studio.backends.base import Backend, ConvertsVoices
from studio.engine.conditioning_cache import ConditioningCache
from studio.engine.model_pool import ModelPool
from studio.errors import BadInput, Cancelled, EngineBusy
from studio.voices.speaker import Voice

MAX_CONVERSIONS = 4
"""Recordings that are converted or wait for it; each holds a thread of whoever asked."""

_STOP_POLL_S = 0.2

IsStopped = Callable[[], bool]
T = TypeVar("T")


class VoiceConverter:
    """Converts recordings on the engine's event loop, where its method is called."""

    def __init__(self, models: ModelPool, conditioning: ConditioningCache) -> None:
        """Serve the backends in `models`."""
        self._models = models
        self._conditioning = conditioning
        # One at a time on all backends: each may need as much memory as speaking a long line.
        self._turn = asyncio.Semaphore(1)
        self._present = 0

    async def convert(
        self, backend_name: str, recording: Clip, voice: Voice, stopped: IsStopped
    ) -> Clip:
        """Keep a recording's words and timing, change its voice.

        Args:
            backend_name: One with `ConvertsVoices`.
            recording: Speech at any rate.
            voice: Whose it becomes.
            stopped: Polled from several threads; true ends it.

        Raises:
            BadInput: The backend converts no voices.
            EngineBusy: Several wait for their turn already.
            AudioRejected: The recording is too short or too long.
            SampleRejected: The voice's sample can't serve this backend.
            ModelUnavailable: The backend can't be loaded.
            OutOfMemory: The device has no room for it.
            Cancelled: `stopped` became true.
        """
        manager = self._models.manager(backend_name)
        check_can_convert(manager.backend)
        if self._present >= MAX_CONVERSIONS:
            raise EngineBusy(
                "Other recordings are waiting already. Try again soon.", retry_after_s=30
            )
        self._present += 1
        async with AsyncExitStack() as held:
            held.callback(self._leave)
            await _wait_unless_stopped(stopped, held.enter_async_context(self._turn))
            backend = await _wait_unless_stopped(stopped, held.enter_async_context(manager.using()))
            return await asyncio.to_thread(self._converted, backend, recording, voice, stopped)

    def _leave(self) -> None:
        self._present -= 1

    def _converted(
        self, backend: Backend, recording: Clip, voice: Voice, stopped: IsStopped
    ) -> Clip:
        """Everything that needs the backend; runs in a thread."""
        check_can_convert(backend)
        assert isinstance(backend, ConvertsVoices)
        conditioning = self._conditioning.get(backend, voice)
        return backend.convert(recording, conditioning, cancelled=stopped)


def check_can_convert(backend: Backend) -> None:
    """See that a backend can say a recording in another voice.

    Raises:
        BadInput: It can't.
    """
    if not (backend.capabilities.voice_conversion and isinstance(backend, ConvertsVoices)):
        raise BadInput(
            f"{backend.title} can't change the voice of a recording. Choose a voice engine that"
            " can, such as Chatterbox."
        )


async def _wait_unless_stopped(stopped: IsStopped, work: Coroutine[Any, Any, T]) -> T:
    """Wait for work that ends when it is cancelled, and cancel it once `stopped` is true."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=_STOP_POLL_S)
            if stopped() and not task.done():
                raise Cancelled("It was stopped before it began.")
        return task.result()
    finally:
        task.cancel()
