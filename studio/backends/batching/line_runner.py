"""How a loaded model generates its lines: batched, or one after the other."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from studio.audio.clip import Samples
from studio.backends.base import Health
from studio.backends.batching.device_timer import DeviceTimer
from studio.backends.batching.memory_plan import MemoryPlan
from studio.backends.batching.runner_contract import BatchingUnavailable
from studio.backends.device import choose_device, likely_device, speech_faults
from studio.backends.options import BatchOptions
from studio.errors import ModelUnavailable, OutOfMemory

if TYPE_CHECKING:
    from studio.backends.batching.batch_engine import BatchEngine
    from studio.backends.batching.codec_worker import CodecWorker
    from studio.backends.batching.model_runner import SlotModelRunner
    from studio.backends.batching.sequence import TtsRequest

# Which of the two runs is decided once per load and never per line: the same seed has to give the
# same audio alone and among others, and the two draw their noise differently.

DEFAULT_SLOTS = 8
"""Taken for granted until a load has found out how many fit."""

MIN_SLOTS = 2
"""With fewer, the engine has nothing to gain over one line at a time."""


class BatchedRunner:
    """Generates all lines in flight as a batch."""

    def __init__(self, engine: BatchEngine, slots: int, *, title: str) -> None:
        self.slots = slots
        self._engine = engine
        self._title = title

    def speak(self, request: TtsRequest) -> Iterator[Samples]:
        """A line's chunks; closing it early frees the slot within one frame."""
        from studio.backends.batching.sequence import stream_chunks

        with speech_faults(self._title):
            yield from stream_chunks(self._engine.submit, request)

    def health(self) -> Health:
        """The health of the engine's threads."""
        return self._engine.health()

    def close(self) -> None:
        """End running lines, stop the threads and release the model's runner."""
        self._engine.close()


class SequentialRunner:
    """Generates each line alone by the model's own loop, in the caller's thread."""

    slots = 0

    def __init__(
        self, speak: Callable[[Any], Iterator[Samples]], *, title: str, device: str = "cpu"
    ) -> None:
        self._speak = speak
        self._title = title
        self._timer = DeviceTimer() if device == "cuda" else None

    def speak(self, request: TtsRequest) -> Iterator[Samples]:
        """A line's chunks."""
        with speech_faults(self._title):
            spoken = self._speak(request)
            yield from spoken if self._timer is None else self._timer.measure(spoken)

    def health(self) -> Health:
        """Always healthy, since it has no threads."""
        return Health(busy_s=None if self._timer is None else self._timer.seconds())

    def close(self) -> None:
        """Do nothing, since nothing runs in the background."""


LineRunner = BatchedRunner | SequentialRunner
"""Speaks the lines of a loaded model; `slots` of them together, 0 where each is made alone."""


def should_batch(batch: BatchOptions, device: str, *, takes_int8: bool = False) -> bool:
    """Whether lines shall be decoded as a batch, where that is possible.

    On a CPU only where matrices are whole numbers or slots are asked for: a line alone would be no
    faster. On Apple's graphics, where nobody has measured it, only where slots are asked for.

    Args:
        batch: As set.
        device: Which kind.
        takes_int8: Whether the model's matrices may be `Int8Matrix`.
    """
    if not batch.enabled:
        return False
    if batch.slots is not None:
        return batch.slots >= MIN_SLOTS
    return device == "cuda" or (device == "cpu" and takes_int8 and _may_take_int8(batch))


def _may_take_int8(batch: BatchOptions) -> bool:
    """Without torch, as it is asked before a model is loaded."""
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return is_x86 and not batch.float32


def known_slots(
    runner: LineRunner | None, batch: BatchOptions, device: str | None, *, takes_int8: bool = False
) -> int:
    """Slots of the batch, 0 where each line is generated alone; an estimate without a runner."""
    if runner is not None:
        return runner.slots
    batches = should_batch(batch, likely_device(device), takes_int8=takes_int8)
    return (batch.slots or DEFAULT_SLOTS) if batches else 0


def start_runner(
    runner: SlotModelRunner[Any],
    codec: Callable[[], CodecWorker],
    batch: BatchOptions,
    *,
    title: str,
) -> BatchedRunner:
    """Start an engine on a model's runner; see `start_engine`.

    Raises:
        BatchingUnavailable: There is no memory for the graphs or for the codec.
    """
    from studio.backends.batching.batch_engine import start_engine

    try:
        with speech_faults(title):
            engine, slots = start_engine(runner, codec, batch, title=title)
    except OutOfMemory as error:
        raise BatchingUnavailable(_NO_MEMORY) from error
    return BatchedRunner(engine, slots, title=title)


def describe_capacity(
    plan_of: Callable[[str], MemoryPlan],
    batch: BatchOptions,
    wanted_device: str | None,
    *,
    takes_int8: bool = False,
) -> str:
    """How many lines fit beside the weights on the wanted or the best device; imports torch."""
    try:
        device = choose_device(wanted_device)
        if not should_batch(batch, device, takes_int8=takes_int8):
            untried = ", which nobody has tried on a Mac yet" if device == "mps" else ""
            return (
                f"one line at a time on {device}{untried}; TTS_BATCH_SIZE decodes several together"
            )
        return describe_plan(check_slots(plan_of(device)), device)
    except BatchingUnavailable as error:
        return f"one line at a time on {device}: {error}"
    except ModelUnavailable as error:
        return str(error)


def describe_plan(plan: MemoryPlan, device: str) -> str:
    """Describe how many lines fit, as a sentence."""
    layout = plan.layout
    return (
        f"{layout.slots} lines at once on {device}, of {layout.positions:,} positions each; "
        f"beside the weights {plan.slots_bytes / 1e9:.1f} GB for the lines, "
        f"{plan.sound_bytes / 1e9:.1f} GB for their sound, {plan.kept_bytes / 1e9:.1f} GB for "
        "what is kept of the voices"
    )


_NO_MEMORY = (
    "There is not enough memory on the device to decode lines together. Unload other models, or "
    "set TTS_BATCH_SIZE or TTS_BATCH_POSITIONS to a smaller number."
)


def check_slots(plan: MemoryPlan) -> MemoryPlan:
    """Check that a plan has enough slots to be worth an engine.

    Raises:
        BatchingUnavailable: It isn't.
    """
    if plan.layout.slots < MIN_SLOTS:
        raise BatchingUnavailable(_NO_MEMORY)
    return plan


def next_smaller_plan(plan: MemoryPlan, batch: BatchOptions) -> MemoryPlan:
    """The next smaller plan after one that ran out of memory.

    Raises:
        BatchingUnavailable: There is nothing smaller, or the number of slots is set.
    """
    fewer = None if batch.slots else plan.smaller()
    if fewer is None:
        raise BatchingUnavailable(_NO_MEMORY)
    return fewer
