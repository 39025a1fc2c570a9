"""What backends have in common whose lines are decoded together by an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from studio.audio.clip import Clip, Samples
from studio.backends.abilities import Health
from studio.backends.batched.memory import Room
from studio.backends.device import choose_device
from studio.backends.faults import speech_faults
from studio.backends.options import BackendOptions, BatchOptions
from studio.errors import ModelUnavailable, OutOfMemory

if TYPE_CHECKING:
    from studio.backends.batched.core_contract import Layout
    from studio.backends.batched.line import Task
    from studio.backends.batched.thread import Engine

SLOTS_UNTIL_KNOWN = 8

ModelT = TypeVar("ModelT")
CoreT = TypeVar("CoreT")


class ManyLines:
    """Holds an engine while a backend is loaded; for a backend to inherit."""

    if TYPE_CHECKING:

        @property
        def title(self) -> str:
            """Name on the page; the backend's."""

        def unavailable(self) -> str | None:
            """Why it can't run here; the backend's."""

    _engine: Engine | None
    _slots: int

    def _begin(self, options: BackendOptions) -> None:
        """Start nothing yet."""
        self._batch = options.batch
        self._asked_device = options.device
        self._engine = None
        self._slots = options.batch.slots or SLOTS_UNTIL_KNOWN

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
            return told(self._usual_room(device), device)
        except ModelUnavailable as error:
            return str(error)

    def _usual_room(self, device: str) -> Room:
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

    def _running(self) -> Engine:
        if self._engine is None:
            raise ModelUnavailable(f"{self.title} is not loaded. Load it and try again.")
        return self._engine

    def _spoken(self, task: Task) -> Iterator[Samples]:
        """A line's chunks; closing it early frees the slot within one frame."""
        from studio.backends.batched.infer import chunks

        with speech_faults(self.title):
            yield from chunks(self._running().submit, task)

    def _fitted(
        self,
        load: Callable[[], ModelT],
        room_of: Callable[[ModelT], Room],
        core_of: Callable[[ModelT, Layout], CoreT],
    ) -> tuple[ModelT, CoreT, Room]:
        """A model and a core for as many lines as fit; for fewer where fewer do after all.

        Args:
            load: Brings the model into memory; called again for each try.
            room_of: Chooses slots for the memory that is free then.
            core_of: Makes a core of the model's weights.

        Raises:
            ModelUnavailable: There is nothing smaller, or the number of slots is set.
        """
        room: Room | None = None
        while True:
            model = load()
            room = room or room_of(model)
            try:
                with speech_faults(self.title):
                    return model, core_of(model, room.layout), room
            except OutOfMemory:
                del model
                room = _smaller(room, self._batch)

    async def _inferred(self, task: Task) -> Clip:
        """A line as a whole, without a thread of its own; cancelling it frees its slot."""
        from studio.backends.batched.infer import infer

        return Clip(await infer(self._running().submit, task))


def told(room: Room, device: str) -> str:
    """What fits, as a sentence."""
    layout = room.layout
    return (
        f"{layout.slots} lines at once on {device}, of {layout.positions:,} positions each; "
        f"beside the weights {room.slots_bytes / 1e9:.1f} GB for the lines, "
        f"{room.sound_bytes / 1e9:.1f} GB for their sound, {room.kept_bytes / 1e9:.1f} GB for "
        "what is kept of the voices"
    )


def _smaller(room: Room, batch: BatchOptions) -> Room:
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
