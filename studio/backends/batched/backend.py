"""The qwen3-batched backend: Qwen3-TTS with many lines in one pass.

Voices, languages and parameters are those of `qwen3`; what differs is who makes the frames.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from studio.audio.clip import Clip, Samples
from studio.backends.base import Capabilities, LoadProgress, SpeechRequest
from studio.backends.batched.core_contract import BEGINNINGS_BYTES
from studio.backends.batched.dimensions import USUAL, Dimensions, dimensions_in, weights_bytes
from studio.backends.batched.many_lines import ManyLines
from studio.backends.batched.memory import Beside, Room, free_memory_bytes, room_for
from studio.backends.loading.weights import weights_at_hand
from studio.backends.options import BackendOptions
from studio.backends.qwen3.backend import Qwen3Backend, voice_of
from studio.backends.qwen3.checkpoint import NEEDS
from studio.backends.qwen3.request import frame_bound, sampling_of, speakable

if TYPE_CHECKING:
    from studio.backends.batched.line import LineTask
    from studio.backends.qwen3.model import Qwen3Model


class Qwen3BatchedBackend(ManyLines, Qwen3Backend):
    """Qwen3-TTS as a backend that decodes as many lines at once as the memory holds."""

    name = "qwen3-batched"
    title = "Qwen3-TTS (many lines at once)"

    def __init__(self, options: BackendOptions) -> None:
        """Load nothing yet."""
        super().__init__(options)
        self._begin(options)

    @property
    def capabilities(self) -> Capabilities:
        """What the checkpoint can do, and how many lines at once; known when it is loaded."""
        return replace(super().capabilities, slots=self._slots, beyond_slots=self._slots)

    def _usual_room(self, device: str) -> Room:
        """What fits beside the weights, which may be in memory already, or not even here."""
        folder = weights_at_hand(self._source, NEEDS)
        folder = None if self._at_hand() is None else folder
        dimensions = USUAL if folder is None else dimensions_in(folder)
        taken = 0 if self._engine else weights_bytes(folder, device)
        return self._room(dimensions, free_memory_bytes(device) - taken, device)

    def _room(self, dimensions: Dimensions, free_bytes: int, device: str) -> Room:
        beside = Beside(kept_bytes=BEGINNINGS_BYTES[device])
        return room_for(dimensions, free_bytes, device, self._batch, beside=beside)

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
        yield from self._spoken(self._line(request))

    async def infer(self, request: SpeechRequest) -> Clip:
        """Speak one segment without a thread of its own; cancelling it frees its slot.

        Raises:
            StudioError: As from `speak`.
        """
        return await self._inferred(self._line(request))

    def _line(self, request: SpeechRequest) -> LineTask:
        from studio.backends.batched.line import LineTask

        text = speakable(request.text)
        bound = frame_bound(text)
        return LineTask(
            tokens=self._loaded().tokens.line(text),
            voice=voice_of(request.conditioning),
            language=self._language(request.language),
            sampling=sampling_of(request, self._checkpoint().sampling),
            rest=self._checkpoint().rest,
            seed=secrets.randbits(63) if request.seed is None else request.seed,
            max_frames=bound,
            expected_frames=bound,
            cancelled=request.cancelled,
            urgency=request.urgency,
        )

    def _read_model(self, folder: Path, progress: Callable[[LoadProgress], None]) -> Qwen3Model:
        """Load the package's model, and start the engine on it."""
        from studio.backends.batched.assembly import assembled
        from studio.backends.batched.core import BatchedCore
        from studio.backends.batched.parts import chosen
        from studio.backends.qwen3.model import load_model

        parts = chosen(self._device, compiles=self._batch.compiles, fuses=self._batch.fuses)

        def room_of(_model: Qwen3Model) -> Room:
            free_bytes = free_memory_bytes(self._device)
            return self._room(dimensions_in(folder), free_bytes, self._device)

        model, core, room = self._fitted(
            # Anew for each try: a core takes the model's own layers away while it is made.
            lambda: load_model(folder, self._device, graphs=False),
            room_of,
            lambda model, layout: BatchedCore(model.package, layout, release=True, parts=parts),
        )
        progress(LoadProgress(f"Preparing {room.layout.slots} lines at once"))
        self._engine, self._slots = assembled(model, core, room, self._batch, title=self.title)
        return model
