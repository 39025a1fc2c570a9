"""The qwen3-batched backend: Qwen3-TTS with many lines in one pass.

Voices, languages and parameters are those of `qwen3`; what differs is who makes the frames.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from studio.audio.clip import Clip, Samples
from studio.backends.base import Capabilities, Health, LoadProgress, SpeechRequest
from studio.backends.batched.memory import (
    USUAL,
    Room,
    dimensions_in,
    free_memory_bytes,
    room_for,
    weights_bytes,
)
from studio.backends.device import choose_device
from studio.backends.faults import speech_faults
from studio.backends.loading.weights import weights_at_hand
from studio.backends.options import BackendOptions
from studio.backends.qwen3.backend import Qwen3Backend, voice_of
from studio.backends.qwen3.checkpoint import NEEDS
from studio.backends.qwen3.request import frame_bound, sampling_of, speakable
from studio.errors import ModelUnavailable, OutOfMemory

if TYPE_CHECKING:
    from studio.backends.batched.core import BatchedCore
    from studio.backends.batched.line import LineTask
    from studio.backends.batched.thread import Engine
    from studio.backends.qwen3.model import Qwen3Model

_SLOTS_UNTIL_KNOWN = 8


class Qwen3BatchedBackend(Qwen3Backend):
    """Qwen3-TTS as a backend that decodes as many lines at once as the memory holds."""

    name = "qwen3-batched"
    title = "Qwen3-TTS, many lines at once"

    def __init__(self, options: BackendOptions) -> None:
        """Load nothing yet."""
        super().__init__(options)
        self._batch = options.batch
        self._engine: Engine | None = None
        self._slots = options.batch.slots or _SLOTS_UNTIL_KNOWN

    @property
    def capabilities(self) -> Capabilities:
        """What the checkpoint can do, and how many lines at once; known when it is loaded."""
        return replace(super().capabilities, slots=self._slots, beyond_slots=self._slots)

    def unload(self) -> None:
        """Stop the threads and give all memory back. Safe when not loaded."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        del engine
        super().unload()

    def health(self) -> Health:
        """How the threads are; all is well when there are none."""
        engine = self._engine
        return Health() if engine is None else engine.health()

    def room(self) -> str | None:
        """How many lines fit beside the weights; None while the packages are missing."""
        if self.unavailable() is not None:
            return None
        try:
            device = choose_device(self._wanted_device)
            return _told(self._room(device), device)
        except ModelUnavailable as error:
            return str(error)

    def _room(self, device: str) -> Room:
        """What fits beside the weights, which may be in memory already, or not even here."""
        folder = weights_at_hand(self._source, NEEDS)
        folder = None if self._at_hand() is None else folder
        dimensions = USUAL if folder is None else dimensions_in(folder)
        taken = 0 if self._engine else weights_bytes(folder, device)
        return room_for(dimensions, free_memory_bytes(device) - taken, device, self._batch)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment beside all others in flight.

        A line at the play-head comes chunk by chunk, the first one a single frame; others come
        whole. A line that doesn't stop within `frame_bound` of its text is cut there: what was
        made is yielded, then `SpeechFailed` marks the line.

        Raises:
            SpeechFailed: As from `qwen3`, or a step failed.
            OutOfMemory: The line doesn't fit beside the others.
            Cancelled: `request.cancelled` became true.
        """
        from studio.backends.batched.infer import chunks

        yield from self._shielded(chunks(self._running().submit, self._line(request)))

    async def infer(self, request: SpeechRequest) -> Clip:
        """Speak one segment without a thread of its own; cancelling it frees its slot.

        Raises:
            StudioError: As from `speak`.
        """
        from studio.backends.batched.infer import infer

        return Clip(await infer(self._running().submit, self._line(request)))

    def _shielded(self, spoken: Generator[Samples]) -> Iterator[Samples]:
        with speech_faults(self.title):
            yield from spoken

    def _line(self, request: SpeechRequest) -> LineTask:
        from studio.backends.batched.line import LineTask

        text = speakable(request.text)
        bound = frame_bound(text)
        return LineTask(
            tokens=self._loaded().tokens.line(text),
            voice=voice_of(request.conditioning),
            language=self._language(request.language),
            sampling=sampling_of(request),
            seed=secrets.randbits(63) if request.seed is None else request.seed,
            max_frames=bound,
            expected_frames=bound,
            cancelled=request.cancelled,
            urgency=request.urgency,
        )

    def _running(self) -> Engine:
        if self._engine is None:
            raise ModelUnavailable(f"{self.title} is not loaded. Load it and try again.")
        return self._engine

    def _read_model(self, folder: Path, progress: Callable[[LoadProgress], None]) -> Qwen3Model:
        """Load the package's model, and start the engine on it."""
        from studio.backends.batched.assembly import assembled

        model, core, room = self._core(folder)
        progress(LoadProgress(f"Preparing {room.layout.slots} lines at once"))
        self._engine, self._slots = assembled(model, core, room, self._batch, title=self.title)
        return model

    def _core(self, folder: Path) -> tuple[Qwen3Model, BatchedCore, Room]:
        """The model and a core for as many lines as fit; fewer where fewer do after all."""
        from studio.backends.batched.core import BatchedCore
        from studio.backends.qwen3.model import load_model

        room: Room | None = None
        while True:
            # Anew for each try: a core takes the model's own layers away while it is made.
            model = load_model(folder, self._device, graphs=False)
            if room is None:
                free_bytes = free_memory_bytes(self._device)
                room = room_for(dimensions_in(folder), free_bytes, self._device, self._batch)
            try:
                with speech_faults(self.title):
                    return model, BatchedCore(model.package, room.layout, release=True), room
            except OutOfMemory:
                del model
                room = self._smaller(room)

    def _smaller(self, room: Room) -> Room:
        """What to try when a choice doesn't fit after all.

        Raises:
            ModelUnavailable: There is nothing smaller, or the number of slots is set.
        """
        smaller = None if self._batch.slots else room.smaller()
        if smaller is None:
            raise ModelUnavailable(
                "There is not enough memory on the device to decode lines together. Unload other "
                "models, or set TTS_BATCH_SIZE or TTS_BATCH_POSITIONS to a smaller number."
            )
        return smaller


def _told(room: Room, device: str) -> str:
    layout = room.layout
    return (
        f"{layout.slots} lines at once on {device}, of {layout.positions:,} positions each "
        f"({room.slots_bytes / 1e9:.1f} GB beside the weights)"
    )
