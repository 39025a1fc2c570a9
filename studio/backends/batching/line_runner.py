"""How a loaded model speaks its lines: many in one pass, or each alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from studio.audio.clip import Samples
from studio.backends.base import Health
from studio.backends.batching.memory_plan import MemoryPlan
from studio.backends.batching.runner_contract import BatchingUnavailable
from studio.backends.device import choose_device, give_back, likely_device
from studio.backends.faults import speech_faults
from studio.backends.options import BatchOptions
from studio.errors import ModelUnavailable, OutOfMemory

if TYPE_CHECKING:
    from studio.backends.batching.batch_engine import BatchEngine
    from studio.backends.batching.codec_worker import CodecWorker
    from studio.backends.batching.model_runner import SlotModelRunner
    from studio.backends.batching.runner_contract import SlotLayout
    from studio.backends.batching.sequence import TtsRequest

# Which of the two runs is decided once per load and never per line: the same seed has to give the
# same audio alone and among others, and the two draw their noise differently.

DEFAULT_SLOTS = 8
"""Taken for granted until a load has found out how many fit."""

MIN_SLOTS = 2
"""With fewer, the engine has nothing to gain over one line at a time."""

log = logging.getLogger(__name__)

ModelT = TypeVar("ModelT")
RunnerT = TypeVar("RunnerT")


class LineRunner(Protocol):
    """What speaks the lines of a loaded model."""

    @property
    def slots(self) -> int:
        """Lines decoded together; 0 where each is made alone."""
        ...

    def speak(self, request: Any) -> Iterator[Samples]:
        """A line's chunks.

        Args:
            request: A `TtsRequest` of the runner's model.
        """
        ...

    def health(self) -> Health:
        """How its threads are; all is well where it has none."""
        ...

    def close(self) -> None:
        """End what runs, and give the threads and the model up."""
        ...


class BatchedRunner:
    """Speaks all lines in flight together; a `LineRunner`."""

    def __init__(self, engine: BatchEngine, slots: int, *, title: str) -> None:
        """Take over a running engine.

        Args:
            engine: Closed with the runner.
            slots: Of the engine.
            title: The backend's name, for messages.
        """
        self._engine = engine
        self._slots = slots
        self._title = title

    @property
    def slots(self) -> int:
        """Lines decoded together."""
        return self._slots

    def speak(self, request: TtsRequest) -> Iterator[Samples]:
        """A line's chunks; closing it early frees the slot within one frame."""
        from studio.backends.batching.sequence import stream_chunks

        with speech_faults(self._title):
            yield from stream_chunks(self._engine.submit, request)

    def health(self) -> Health:
        """How the engine's threads are."""
        return self._engine.health()

    def close(self) -> None:
        """End what runs, stop the threads and give the model's runner up."""
        self._engine.close()


class SequentialRunner:
    """Speaks each line alone, in the thread that asks for it; a `LineRunner`."""

    slots = 0

    def __init__(self, speak: Callable[[Any], Iterator[Samples]], *, title: str) -> None:
        """Speak by a model's own loop.

        Args:
            speak: Makes the audio of one request.
            title: The backend's name, for messages.
        """
        self._speak = speak
        self._title = title

    def speak(self, request: TtsRequest) -> Iterator[Samples]:
        """A line's chunks."""
        with speech_faults(self._title):
            yield from self._speak(request)

    def health(self) -> Health:
        """It has no threads, so all is well."""
        return Health()

    def close(self) -> None:
        """Nothing runs by itself."""


def should_batch(batch: BatchOptions, device: str) -> bool:
    """Whether lines are to be decoded together, where that is possible.

    On a CPU, and on Apple's graphics, where nobody has measured it, only where slots are asked for:
    a line alone would be no faster.

    Args:
        batch: What is set.
        device: Where the model is loaded.
    """
    if not batch.enabled:
        return False
    return device == "cuda" if batch.slots is None else batch.slots >= MIN_SLOTS


def known_slots(runner: LineRunner | None, batch: BatchOptions, device: str | None) -> int:
    """Lines that are decoded together; 0 where each is made alone.

    Args:
        runner: None while nothing is loaded: then it is what is likely.
        batch: What is set.
        device: What is set; None for the best there is.
    """
    if runner is not None:
        return runner.slots
    return (batch.slots or DEFAULT_SLOTS) if should_batch(batch, likely_device(device)) else 0


def open_model(
    device: str,
    batch: BatchOptions,
    *,
    title: str,
    batched: Callable[[], tuple[ModelT, LineRunner]],
    sequential: Callable[[], tuple[ModelT, LineRunner]],
) -> tuple[ModelT, LineRunner]:
    """Load a model with the runner that suits it, the device and what is set.

    Args:
        device: Where to.
        batch: What is set.
        title: The backend's name, for the log.
        batched: Loads the model and starts an engine on it.
        sequential: Loads it to speak one line at a time.
    """
    if should_batch(batch, device):
        try:
            return batched()
        except BatchingUnavailable as error:
            log.warning("%s speaks one line at a time: %s", title, error)
        give_back(device)  # the model's own layers may be taken away already
    return sequential()


def fit_runner(
    load: Callable[[], ModelT],
    plan_of: Callable[[ModelT], MemoryPlan],
    runner_of: Callable[[ModelT, SlotLayout], RunnerT],
    batch: BatchOptions,
    *,
    title: str,
) -> tuple[ModelT, RunnerT, MemoryPlan]:
    """Load a model and make a runner for as many lines as fit.

    Args:
        load: Brings the model into memory. Called again for each try, since a runner takes the
            model's own layers away while it is made.
        plan_of: Chooses slots for the memory that is free then.
        runner_of: Makes a runner of the model's weights.
        batch: What is set.
        title: The backend's name, for messages.

    Raises:
        BatchingUnavailable: Fewer than two lines fit, the number of slots is set and doesn't fit,
            or the checkpoint isn't one that can be batched.
    """
    plan: MemoryPlan | None = None
    while True:
        model = load()
        plan = _check_slots(plan or plan_of(model))
        try:
            with speech_faults(title):
                return model, runner_of(model, plan.layout), plan
        except OutOfMemory:
            del model
            plan = _next_smaller_plan(plan, batch)


def start_runner(
    runner: SlotModelRunner[Any],
    codec: Callable[[], CodecWorker],
    batch: BatchOptions,
    *,
    title: str,
) -> BatchedRunner:
    """Start an engine on a model's runner.

    Args:
        runner: All its slots are free.
        codec: Starts the threads that turn its frames into audio.
        batch: How lines are gathered.
        title: The backend's name, for messages.

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


def describe_room(
    plan_of: Callable[[str], MemoryPlan], batch: BatchOptions, wanted_device: str | None
) -> str:
    """How many lines fit beside the weights, as a sentence; imports torch.

    Args:
        plan_of: Chooses slots on a device.
        batch: What is set.
        wanted_device: What is set; None for the best there is.
    """
    try:
        device = choose_device(wanted_device)
        if not should_batch(batch, device):
            return f"one line at a time on {device}; TTS_BATCH_SIZE decodes several together"
        return describe_plan(_check_slots(plan_of(device)), device)
    except BatchingUnavailable as error:
        return f"one line at a time on {device}: {error}"
    except ModelUnavailable as error:
        return str(error)


def describe_plan(plan: MemoryPlan, device: str) -> str:
    """What fits, as a sentence."""
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


def _check_slots(plan: MemoryPlan) -> MemoryPlan:
    """A plan that is worth an engine.

    Raises:
        BatchingUnavailable: It isn't.
    """
    if plan.layout.slots < MIN_SLOTS:
        raise BatchingUnavailable(_NO_MEMORY)
    return plan


def _next_smaller_plan(plan: MemoryPlan, batch: BatchOptions) -> MemoryPlan:
    """What to try when a choice doesn't fit after all.

    Raises:
        BatchingUnavailable: There is nothing smaller, or the number of slots is set.
    """
    fewer = None if batch.slots else plan.smaller()
    if fewer is None:
        raise BatchingUnavailable(_NO_MEMORY)
    return fewer
