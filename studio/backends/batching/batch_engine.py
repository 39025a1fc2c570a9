"""The engine loop: one thread owns the model runner and turns waiting sequences into frames.

Each iteration accepts new lines, drops cancelled ones, fills free slots, makes one frame of all
running lines, and hands finished ones to the codec. Only this thread touches the model runner.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch

from studio.backends.base import Health
from studio.backends.batching.codec_worker import CodecDispatcher, CodecWorker
from studio.backends.batching.cuda_graphs import make_stream, synchronize
from studio.backends.batching.model_runner import SlotModelRunner
from studio.backends.batching.sequence import TtsSequence, stop_error
from studio.backends.batching.slot_scheduler import SlotScheduler
from studio.backends.device import LOST, card_lost, speech_faults, taking_turns
from studio.backends.options import BatchOptions
from studio.errors import Cancelled, ModelUnavailable, OutOfMemory, SpeechFailed, StudioError

MAX_FAULTS_IN_A_ROW = 3
"""Faults without a finished line between them, after which lines run one at a time: that tells a
bad line from a bad device."""

_LINES_TO_WIDEN = 32
"""Lines that end in a row before a narrowed engine tries the next wider bucket, and before that
one is kept. Each trial that fails doubles those before the next, so that a device that stays short
of memory is seldom asked again."""

_MAX_LINES_TO_WIDEN = 1_024

_PRIORITY_POLL_S = 0.005
"""While lines wait for others, whether somebody listens to one of them by now."""

log = logging.getLogger(__name__)


class BatchEngine:
    """Serves lines from any thread; see `TtsSequence` for how their audio comes back."""

    def __init__(
        self,
        core: SlotModelRunner[Any],
        codec: CodecWorker,
        scheduler: SlotScheduler[TtsSequence],
        *,
        title: str,
        device: str = "cpu",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the thread; nobody else may call the model runner from now on.

        The codec is closed with the engine; the scheduler is empty, with at most the core's slots.
        """
        self._core = core
        self._codec = codec
        self._scheduler = scheduler
        self._title = title
        self._device = device
        self._on_cuda = device == "cuda"
        self._dispatcher = CodecDispatcher(core, codec, scheduler, on_cuda=self._on_cuda)
        self._timer = codec.timer
        self._clock = clock
        self._inbox: queue.SimpleQueue[TtsSequence | None] = queue.SimpleQueue()
        self._gate = threading.Lock()  # guards `_open`: a line is taken in or refused, never lost
        self._open = True
        self._health = Health()  # replaced whole by the engine's thread
        self._last_step_s: float | None = None
        self._steps = 0
        self._faults = 0
        self._faults_in_a_row = 0
        self._lines_to_widen = _LINES_TO_WIDEN
        self._lines_ended = 0  # since the last fault, narrowing or widening
        self._on_trial = False  # whether the present width was widened to, and not yet kept
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def submit(self, line: TtsSequence) -> None:
        """Queue a line; from any thread."""
        with self._gate:
            if self._open:
                self._inbox.put(line)
                return
        line.end(self._explain_stop())

    def health(self) -> Health:
        """The health of the threads; from any thread."""
        now, last_s = self._health, self._last_step_s
        return Health(
            alive=self._thread.is_alive() and self._codec.alive,
            last_step_age_s=None if last_s is None else self._clock() - last_s,
            running=now.running,
            waiting=now.waiting + self._inbox.qsize(),
            steps=self._steps,
            faults=self._faults,
            slots=self._scheduler.slots,
            max_slots=self._scheduler.max_slots,
            refilled=self._scheduler.refilled,
            busy_s=None if self._timer is None else self._timer.seconds(),
        )

    def close(self) -> None:
        """End running lines, stop both threads and release the runner; blocks until done."""
        with self._gate:
            self._open = False
            self._inbox.put(None)
        self._thread.join()
        self._codec.close()
        self._core.close()

    def _run(self) -> None:
        try:
            with torch.inference_mode(), self._stream():
                try:
                    while self._receive():
                        self._iterate()
                finally:
                    self._settle()
            error: StudioError = Cancelled("The voice was unloaded.")
        except Exception as fault:  # whatever it was: no reader may wait for ever
            log.exception("the engine of %s has stopped", self._title)
            card_lost(fault)
            error = self._explain_stop()
        self._end_all(error)

    def _stream(self) -> AbstractContextManager[Any]:
        """A stream of its own: the default one and the codec's would wait for each other.

        It goes before the codec's, whose rounds fill the card for many frames.
        """
        if not self._on_cuda:
            return nullcontext()
        here = torch.device("cuda", torch.cuda.current_device())
        return torch.cuda.stream(make_stream(here, urgent=True))

    def _settle(self) -> None:
        """Wait for the last frame, which writes to memory that is about to be freed."""
        if self._on_cuda:
            torch.cuda.current_stream().synchronize()

    def _receive(self) -> bool:
        """Accept new lines, blocking while there is nothing to do; False when it must stop."""
        wait_s = 0.0 if self._scheduler.running else self._scheduler.wait_s()
        wait_s = None if wait_s is None else min(wait_s, _PRIORITY_POLL_S)
        try:
            arrived = self._inbox.get(timeout=wait_s) if wait_s != 0.0 else self._inbox.get_nowait()
            while arrived is not None:
                self._scheduler.submit(arrived)
                arrived = self._inbox.get_nowait()
        except queue.Empty:
            return True
        return False

    @taking_turns
    def _iterate(self) -> None:
        self._drop_unwanted()
        self._preempt()
        admitted = self._scheduler.admit()
        if self._scheduler.running:
            with self._timer.span() if self._timer else nullcontext():
                self._admit(admitted)
                if self._scheduler.running:
                    self._step()
        self._health = Health(
            running=len(self._scheduler.running), waiting=len(self._scheduler.waiting)
        )

    def _drop_unwanted(self) -> None:
        """Free the slots of lines that were cancelled, or that the codec failed on."""
        for line in [*self._scheduler.waiting, *self._scheduler.running.values()]:
            if line.ended or line.is_unwanted:
                slot = self._scheduler.discard(line)
                if slot is not None:
                    self._core.free(slot)
                line.end(stop_error())

    def _preempt(self) -> None:
        """Where all slots are taken, let a line begin again later for one at the play-head.

        So that line waits for the step in progress, its own prefill, one frame and one call of the
        codec, and no more.
        """
        progress = cache(self._core.progress)  # reads all slots, and only if a line is to be chosen
        slot = self._scheduler.find_preemptible(lambda slot: progress()[slot].frames)
        if slot is not None:
            self._core.free(slot)
            self._scheduler.preempt(slot, self._scheduler.running[slot].restart())

    def _admit(self, lines: Sequence[tuple[int, TtsSequence]]) -> None:
        """Admit lines to their slots together; if that fails, one by one, those that can be."""
        if not lines:
            return
        self._dispatcher.announce(line for _, line in lines)
        try:
            with speech_faults(self._title):
                self._core.admit([line.task.admission(self._core, slot) for slot, line in lines])
        # Broad, as whatever a model raises at one line must not end the others.
        except Exception as error:
            if card_lost(error):
                raise
            if len(lines) > 1:
                for one in lines:
                    self._admit([one])
                return
            slot, line = lines[0]
            self._scheduler.free(slot)
            line.end(self._explain_fault(error))

    def _step(self) -> None:
        try:
            with speech_faults(self._title):
                self._core.step(self._bucket())
                ended = self._dispatcher.dispatch()
            if ended:
                self._faults_in_a_row = 0
                self._widen(ended)
        except OutOfMemory:
            self._shrink_slots()
        # Broad, as whatever a model raises is counted, and the engine goes on until it repeats.
        except Exception as error:
            if card_lost(error):
                raise
            self._fault(error)
        self._steps += 1
        self._last_step_s = self._clock()

    def _bucket(self) -> int:
        """The smallest bucket for the running lines, which are compacted when none waits."""
        refills_none = not self._scheduler.waiting or self._scheduler.wait_s() is None
        wanted = len(self._scheduler.running) if refills_none else self._scheduler.span
        bucket = next(size for size in self._core.buckets if size >= wanted)
        for source, target in self._scheduler.compact(bucket):
            self._core.move(source, target)
        return next(size for size in self._core.buckets if size >= self._scheduler.span)

    def _shrink_slots(self) -> None:
        """Restart the running lines in the next smaller bucket; see `TtsSequence.restart`."""
        smaller = self._smaller_bucket()
        if smaller is None:
            self._fail_running(self._explain_no_memory())
            return
        lines = list(self._scheduler.running.values())
        log.warning("%s has no memory for %d slots; %d now", self._title, len(lines), smaller)
        self._core.reset()
        self._scheduler.requeue([line.restart() for line in lines])
        self._narrow(smaller)

    def _smaller_bucket(self) -> int | None:
        """The widest bucket below the present width."""
        sizes = (size for size in self._core.buckets if size < self._scheduler.slots)
        return max(sizes, default=None)

    def _narrow(self, slots: int) -> None:
        if self._on_trial:
            self._lines_to_widen = min(_MAX_LINES_TO_WIDEN, self._lines_to_widen * 2)
        self._lines_ended, self._on_trial = 0, False
        self._scheduler.limit(slots)

    def _widen(self, ended: int) -> None:
        """Use the next wider bucket after enough lines ended without a fault."""
        self._lines_ended += ended
        if self._lines_ended < (_LINES_TO_WIDEN if self._on_trial else self._lines_to_widen):
            return
        if self._on_trial:  # it is kept: what was in the way has gone
            self._lines_to_widen = _LINES_TO_WIDEN
        self._lines_ended, self._on_trial = 0, False
        most = self._scheduler.max_slots
        if self._scheduler.slots < most:
            wider = next(size for size in self._core.buckets if size > self._scheduler.slots)
            self._scheduler.limit(min(wider, most))
            self._on_trial = True
            log.info("%s tries %d slots again", self._title, self._scheduler.slots)

    def _fault(self, error: Exception) -> None:
        """Fail the running lines and go on with waiting ones, one at a time after many faults."""
        log.warning("a step of %s failed", self._title, exc_info=error)
        self._faults += 1
        self._faults_in_a_row += 1
        self._lines_ended = 0
        if self._faults_in_a_row == MAX_FAULTS_IN_A_ROW:
            log.warning("%s goes on with one line at a time", self._title)
            self._narrow(1)
        elif self._on_trial:  # given up at its first fault: each costs all lines in flight
            self._narrow(self._smaller_bucket() or 1)
        self._fail_running(self._explain_fault(error))

    def _fail_running(self, error: StudioError) -> None:
        self._core.reset()
        for slot, line in self._scheduler.running.items():
            self._scheduler.free(slot)
            line.end(error)

    def _end_all(self, error: StudioError) -> None:
        with self._gate:
            self._open = False
        while not self._inbox.empty():
            line = self._inbox.get()
            if line is not None:
                line.end(error)
        for line in [*self._scheduler.waiting, *self._scheduler.running.values()]:
            line.end(error)

    def _explain_stop(self) -> ModelUnavailable:
        """The error of lines that come after the engine has stopped."""
        if card_lost():
            return ModelUnavailable(LOST)
        return ModelUnavailable(f"{self._title} has stopped. Unload it and load it again.")

    def _explain_fault(self, error: Exception) -> StudioError:
        """The error of a line, for an exception raised by a step or while reading its prompt."""
        if isinstance(error, OutOfMemory):
            return self._explain_no_memory()
        if isinstance(error, StudioError):
            return error
        reason = f"{type(error).__name__}: {error}"
        return SpeechFailed(
            f"{self._title} failed on the lines in flight ({reason}). Generate this one again."
        )

    def _explain_no_memory(self) -> OutOfMemory:
        return OutOfMemory(
            f"{self._title} ran out of memory on this line. Make the line shorter, unload other "
            "models, or set TTS_BATCH_SIZE or TTS_BATCH_POSITIONS to a smaller number."
        )


def start_engine(
    core: SlotModelRunner[Any],
    sound: Callable[[], CodecWorker],
    batch: BatchOptions,
    *,
    title: str,
) -> tuple[BatchEngine, int]:
    """Warm up a model runner, whose slots are free, and start an engine on it.

    `sound` starts the threads that turn the core's frames into audio.

    Returns:
        The engine, and the slots for which there was memory.

    Raises:
        torch.OutOfMemoryError: There was none even for one.
    """
    slots = _warm_runner(core)
    scheduler: SlotScheduler[TtsSequence] = SlotScheduler(
        slots, continuous=batch.continuous, max_wait_s=batch.max_wait_s
    )
    thread = sound()
    device = thread.device.type
    engine = BatchEngine(core, thread, scheduler, title=title, device=device)
    return engine, slots


def _warm_runner(core: SlotModelRunner[Any]) -> int:
    """Run and capture the first steps in advance; returns the slots for which there is memory."""
    slots = 0
    for bucket in core.buckets:
        try:
            core.warm([bucket])
        except torch.OutOfMemoryError:
            if not slots:
                raise
            break
        slots = bucket
    synchronize(core.device)  # the engine has a stream of its own
    return slots
