"""Chatterbox backends whose names end in -batched: many lines in one pass.

Voices, languages and parameters are those of the backend without that ending; what differs is who
makes the speech tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from studio.audio.clip import Clip, Samples
from studio.backends.base import Capabilities, LoadProgress, SpeechRequest
from studio.backends.batched.many_lines import ManyLines
from studio.backends.batched.memory import Room, free_memory_bytes
from studio.backends.batched_chatterbox.memory import (
    USUAL,
    TokenDimensions,
    stored_bytes,
    token_room,
)
from studio.backends.chatterbox.backend import ChatterboxBackend, seed_of
from studio.backends.chatterbox.text import check_speakable, max_tokens
from studio.backends.chatterbox.variants import Variant
from studio.backends.loading.weights import weights_at_hand
from studio.backends.options import BackendOptions
from studio.errors import Cancelled

if TYPE_CHECKING:
    from studio.backends.batched.core_contract import Layout
    from studio.backends.batched_chatterbox.core import TokenCore
    from studio.backends.batched_chatterbox.token_line import TokenTask
    from studio.backends.chatterbox.model import ChatterboxModel


class ChatterboxBatchedBackend(ManyLines, ChatterboxBackend):
    """A Chatterbox variant that decodes as many lines at once as the memory holds."""

    def __init__(self, variant: Variant, options: BackendOptions) -> None:
        """Load nothing yet."""
        super().__init__(variant, options)
        self._begin(options)

    @property
    def name(self) -> str:
        """Name in `TTS_BACKEND` and on the command line."""
        return f"{self._variant.name}-batched"

    @property
    def title(self) -> str:
        """Name on the page."""
        return f"{self._variant.title} (many lines at once)"

    @property
    def capabilities(self) -> Capabilities:
        """What the variant can do, and how many lines at once; known when it is loaded."""
        return replace(self._variant.capabilities, slots=self._slots, beyond_slots=self._slots)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment beside all others in flight, in one piece.

        Raises:
            SpeechFailed: As from `ChatterboxBackend.speak`, or a step failed.
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

    def _line(self, request: SpeechRequest) -> TokenTask:
        from studio.backends.batched_chatterbox.token_line import TokenSampling, TokenTask

        if request.cancelled():
            raise Cancelled("The line was stopped before it was finished.")
        check_speakable(request.text)
        params = self._params(request)
        exaggeration = params.pop("exaggeration", 0.0)
        bound = max_tokens(request.text)
        return TokenTask(
            text=self._loaded().text_tokens(request.text, request.language),
            voice=request.conditioning.payload,  # type: ignore[arg-type]
            exaggeration=float(exaggeration),
            sampling=TokenSampling(**params),
            seed=seed_of(request.seed),
            max_frames=bound,
            expected_frames=bound,
            cancelled=request.cancelled,
            urgency=request.urgency,
        )

    def _open(
        self, folder: Path, device: str, progress: Callable[[LoadProgress], None]
    ) -> ChatterboxModel:
        """Load the package's model, and start the engine on it."""
        from studio.backends.batched.assembly import started
        from studio.backends.batched_chatterbox.sound_thread import S3GenThread

        opened = super()._open
        model, core, room = self._fitted(
            # Anew for each try: a core takes the model's own layers away while it is made.
            lambda: opened(folder, device, progress),
            self._room,
            self._core,
        )
        progress(LoadProgress(f"Preparing {room.layout.slots} lines at once"))
        sound = partial(S3GenThread, model, title=self.title)
        self._engine, self._slots = started(core, sound, self._batch, title=self.title)
        return model

    def _core(self, model: ChatterboxModel, layout: Layout) -> TokenCore:
        from studio.backends.batched_chatterbox.core import TokenCore

        return TokenCore(model.t3, layout, dtype=model.dtype, release=True, ends=model.ends)

    def _room(self, model: ChatterboxModel) -> Room:
        dimensions = TokenDimensions.of(model.t3, half=model.dtype.itemsize == 2)
        free_bytes = free_memory_bytes(model.device)
        return token_room(self._variant, dimensions, free_bytes, model.device, self._batch)

    def _usual_room(self, device: str) -> Room:
        """What fits beside the weights, which may be in memory already, or not even here."""
        folder = weights_at_hand(self._source, self._variant.needs)
        taken = 0 if self._engine else stored_bytes(self._variant, folder)
        dimensions = USUAL[self._variant.name]
        free_bytes = free_memory_bytes(device) - taken
        return token_room(self._variant, dimensions, free_bytes, device, self._batch)
