"""An async scheduler for other programs: lines come one by one and are decoded together."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from studio.audio.clip import Samples
from studio.backends.base import Priority
from studio.backends.batching.slot_scheduler import SlotScheduler
from studio.errors import Conflict, SettingError
from tableread_engine.line_request import LineRequest
from tableread_engine.speech_model import LineResult, SpeechModel

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """A line that waits or runs; its future may be cancelled by whoever asked for it."""

    request: LineRequest | Mapping[str, Any]
    audio: Future[LineResult] = field(default_factory=Future)
    has_delivered: bool = False

    def priority(self) -> Priority:
        """The same for all, so that they are spoken in order of arrival."""
        return Priority()


class SpeechScheduler:
    """Collects lines from any number of coroutines, and speaks them together.

    A thread of its own decides when a line begins; the loop that asks is never blocked. Continuous:
    a line begins as soon as one of `max_batch` is free. Batch-and-wait: lines begin together, when
    `max_batch` are waiting or the first has waited for `max_wait_ms`, and the next ones when all of
    them are done.
    """

    def __init__(
        self,
        model: SpeechModel,
        *,
        max_batch: int | None = None,
        max_wait_ms: float = 50.0,
        continuous: bool = True,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            model: Stays open when the scheduler stops.
            max_batch: Lines at once; None for the model's slots.
            max_wait_ms: How long the first line of a batch waits for others, in milliseconds.
            continuous: Whether a freed slot is refilled while other lines run.
            defaults: For what a request leaves out, by the names of `LineRequest` and of the
                model's parameters.

        Raises:
            SettingError: A number is out of range.
        """
        batch = model.slots if max_batch is None else max_batch
        if batch < 1 or not 0 <= max_wait_ms < float("inf"):
            raise SettingError("max_batch is a whole number from 1, max_wait_ms a number from 0.")
        self._model = model
        self._batch = batch
        self._defaults = dict(defaults or {})
        self._waiting: SlotScheduler[_Job] = SlotScheduler(
            batch, continuous=continuous, max_wait_s=max_wait_ms / 1_000
        )
        self._inbox: queue.SimpleQueue[_Job | int | None] = queue.SimpleQueue()
        self._gate = threading.Lock()  # guards `_thread`: a line is taken in or refused, never lost
        self._thread: threading.Thread | None = None

    async def start(self) -> None:
        """Start the thread.

        Raises:
            Conflict: It runs already.
        """
        with self._gate:
            if self._thread is not None:
                raise Conflict("The scheduler runs already.")
            self._thread = threading.Thread(target=self._run, name="speech scheduler", daemon=True)
            self._thread.start()

    async def infer(self, **request: Any) -> tuple[Samples, int]:
        """Speak one line among others; cancelling the call frees its slot within one step.

        Args:
            request: Fields of `LineRequest` and parameters of the model by their own names, such as
                `text`, `language`, `reference`, `transcript`, `seed`, `temperature`.

        Returns:
            float32 [samples] within [-1, 1], and their rate in Hz.

        Raises:
            Conflict: The scheduler isn't running.
            StudioError: As in `error` of `SpeechModel.speak`; other lines go on.
        """
        audio = await self.submit(request)
        if audio.error is not None:
            raise audio.error
        return audio.samples, audio.sample_rate_hz

    async def submit(self, request: LineRequest | Mapping[str, Any]) -> LineResult:
        """As `infer`, but what prevented a line is in the result, with what was made of it.

        Raises:
            Conflict: The scheduler isn't running.
        """
        job = _Job(request)
        with self._gate:
            if self._thread is None:
                raise Conflict("The scheduler isn't running; start it first.")
            self._inbox.put(job)
        return await asyncio.wrap_future(job.audio)

    async def stop(self) -> None:
        """Refuse further lines, finish those that were asked for, and end the thread."""
        with self._gate:
            thread, self._thread = self._thread, None
            if thread is None:
                return
            self._inbox.put(None)
        await asyncio.to_thread(thread.join)

    def _run(self) -> None:
        with ThreadPoolExecutor(self._batch, "speech") as pool:
            stopping = False
            while not stopping or self._waiting.running or self._waiting.waiting:
                stopping = not self._receive() or stopping
                for slot, job in self._waiting.admit():
                    pool.submit(self._speak, slot, job)

    def _receive(self) -> bool:
        """Wait for a line, a free slot, or time to begin; False when it must stop."""
        try:
            arrived = self._inbox.get(timeout=self._waiting.wait_s())
        except queue.Empty:
            return True
        if isinstance(arrived, _Job):
            self._waiting.submit(arrived)
        elif arrived is not None:
            self._waiting.free(arrived)
        return arrived is not None

    def _speak(self, slot: int, job: _Job) -> None:
        try:
            if not job.audio.cancelled():
                made = self._model.speak(job.request, self._defaults, cancelled=job.audio.cancelled)
                with suppress(InvalidStateError):  # cancelled at the last
                    job.audio.set_result(made)
        except Exception as error:  # whatever it was: nobody may wait for ever
            log.exception("a line of the scheduler failed")
            with suppress(InvalidStateError):
                job.audio.set_exception(error)
        finally:
            self._inbox.put(slot)
