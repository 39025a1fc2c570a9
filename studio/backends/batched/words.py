"""What an engine says of its faults to the person at the page."""

from __future__ import annotations

from dataclasses import dataclass

from studio.backends.device import LOST, card_lost
from studio.errors import ModelUnavailable, OutOfMemory, SpeechFailed, StudioError


@dataclass(frozen=True, slots=True)
class Words:
    """In the name of one backend.

    Attributes:
        title: Its name.
    """

    title: str

    def gone(self) -> ModelUnavailable:
        """Why nothing is spoken any more."""
        if card_lost():
            return ModelUnavailable(LOST)
        return ModelUnavailable(f"{self.title} has stopped. Unload it and load it again.")

    def told(self, error: Exception) -> StudioError:
        """A fault of a step."""
        if isinstance(error, OutOfMemory):
            return self.full()
        if isinstance(error, StudioError):
            return error
        reason = f"{type(error).__name__}: {error}"
        return SpeechFailed(
            f"{self.title} failed on the lines in flight ({reason}). Generate this one again."
        )

    def full(self) -> OutOfMemory:
        """There is no memory for a line."""
        return OutOfMemory(
            f"{self.title} ran out of memory on this line. Make the line shorter, unload other "
            "models, or set TTS_BATCH_SIZE or TTS_BATCH_POSITIONS to a smaller number."
        )
