"""What backends have in common that decode many lines together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from studio.audio.clip import Clip, Samples
from studio.backends.base import Health
from studio.backends.batching.memory_plan import MemoryPlan
from studio.backends.device import choose_device
from studio.backends.faults import speech_faults
from studio.backends.options import BackendOptions, BatchOptions
from studio.errors import ModelUnavailable, OutOfMemory

if TYPE_CHECKING:
    from studio.backends.batching.batch_engine import BatchEngine
    from studio.backends.batching.runner_contract import SlotLayout
    from studio.backends.batching.sequence import TtsRequest

DEFAULT_SLOTS = 8

ModelT = TypeVar("ModelT")
CoreT = TypeVar("CoreT")


class BatchedBackendMixin:
    """Holds an engine while a backend is loaded; for a backend to inherit."""

    if TYPE_CHECKING:

        @property
        def title(self) -> str:
            """Name on the page; the backend's."""

        def unavailable(self) -> str | None:
            """Why it can't run here; the backend's."""

    _engine: BatchEngine | None
    _slots: int

    def _begin(self, options: BackendOptions) -> None:
        """Start nothing yet."""
        self._batch = options.batch
        self._asked_device = options.device
        self._engine = None
        self._slots = options.batch.slots or DEFAULT_SLOTS

    def unload(self) -> None:
        """Stop the threads and give all memory back. Safe when not loaded."""
        self._stop()
        super().unload()  # type: ignore[misc]  # of the backend that this is mixed into

    def room(self) -> str | None:
        """How many lines fit beside the weights; None while the packages are missing."""
        if self.unavailable() is not None:
            return None
        try:
            device = choose_device(self._asked_device)
            return describe_plan(self._usual_room(device), device)
        except ModelUnavailable as error:
            return str(error)

    def _usual_room(self, device: str) -> MemoryPlan:
        """What fits beside the weights, which may be in memory already, or not even here.

        Raises:
            ModelUnavailable: Nothing does.
        """
        raise NotImplementedError

    def _stop(self) -> None:
        """End what runs, and give the threads and the core up."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def health(self) -> Health:
        """How the threads are; all is well when there are none."""
        engine = self._engine
        return Health() if engine is None else engine.health()

    def _running(self) -> BatchEngine:
        if self._engine is None:
            raise ModelUnavailable(f"{self.title} is not loaded. Load it and try again.")
        return self._engine

    def _spoken(self, task: TtsRequest) -> Iterator[Samples]:
        """A line's chunks; closing it early frees the slot within one frame."""
        from studio.backends.batching.sequence import stream_chunks

        with speech_faults(self.title):
            yield from stream_chunks(self._running().submit, task)

    def _fitted(
        self,
        load: Callable[[], ModelT],
        room_of: Callable[[ModelT], MemoryPlan],
        core_of: Callable[[ModelT, SlotLayout], CoreT],
    ) -> tuple[ModelT, CoreT, MemoryPlan]:
        """A model and a core for as many lines as fit; for fewer where fewer do after all.

        Args:
            load: Brings the model into memory; called again for each try.
            room_of: Chooses slots for the memory that is free then.
            core_of: Makes a core of the model's weights.

        Raises:
            ModelUnavailable: There is nothing smaller, or the number of slots is set.
        """
        room: MemoryPlan | None = None
        while True:
            model = load()
            room = room or room_of(model)
            try:
                with speech_faults(self.title):
                    return model, core_of(model, room.layout), room
            except OutOfMemory:
                del model
                room = _next_smaller_plan(room, self._batch)

    async def _inferred(self, task: TtsRequest) -> Clip:
        """A line as a whole, without a thread of its own; cancelling it frees its slot."""
        from studio.backends.batching.sequence import collect_samples

        return Clip(await collect_samples(self._running().submit, task))


def describe_plan(room: MemoryPlan, device: str) -> str:
    """What fits, as a sentence."""
    layout = room.layout
    return (
        f"{layout.slots} lines at once on {device}, of {layout.positions:,} positions each; "
        f"beside the weights {room.slots_bytes / 1e9:.1f} GB for the lines, "
        f"{room.sound_bytes / 1e9:.1f} GB for their sound, {room.kept_bytes / 1e9:.1f} GB for "
        "what is kept of the voices"
    )


def _next_smaller_plan(room: MemoryPlan, batch: BatchOptions) -> MemoryPlan:
    """What to try when a choice doesn't fit after all.

    Raises:
        ModelUnavailable: There is nothing smaller, or the number of slots is set.
    """
    fewer = None if batch.slots else room.smaller()
    if fewer is None:
        raise ModelUnavailable(
            "There is not enough memory on the device to decode lines together. Unload other "
            "models, or set TTS_BATCH_SIZE or TTS_BATCH_POSITIONS to a smaller number."
        )
    return fewer
