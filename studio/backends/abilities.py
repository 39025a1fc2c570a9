"""What a backend may be able to do beside speaking; the engine asks which of these it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from studio.audio.clip import Clip
from studio.backends.base import Conditioning


@runtime_checkable
class FetchesWeights(Protocol):
    """A backend whose first load downloads something."""

    def to_fetch(self) -> str | None:
        """What a load would download, as a sentence with the remedy; None when all is here.

        Cheap: imports no model and asks no network.
        """
        ...


@runtime_checkable
class TellsLanguages(Protocol):
    """A loaded backend that reads some language worse than it could."""

    def lacks(self, language: str) -> str | None:
        """What a language lacks here, as a sentence with the remedy; None where it lacks nothing.

        Args:
            language: A BCP-47 code. Cheap: imports no model.
        """
        ...


@runtime_checkable
class KeepsConditioning(Protocol):
    """A backend whose conditioning is worth keeping on disk.

    Both are called in worker threads while the backend is loaded, and only for conditioning of
    the same revision.
    """

    def write_conditioning(self, conditioning: Conditioning, path: Path) -> None:
        """Write as safetensors; `path` is in an existing folder and may be overwritten."""
        ...

    def read_conditioning(self, path: Path) -> Conditioning:
        """Read what `write_conditioning` wrote.

        Any error means that the file is no use; the engine then computes it again.
        """
        ...


@runtime_checkable
class TellsMemory(Protocol):
    """A backend that knows what its model holds on an accelerator."""

    def memory_bytes(self) -> int:
        """Bytes held on the accelerator now; 0 on a CPU, whose memory the engine sees itself."""
        ...


@dataclass(frozen=True, slots=True)
class Health:
    """How a backend with a thread of its own is.

    Attributes:
        alive: Whether its thread runs; True when nothing is loaded.
        last_step_age_s: Seconds since it last made a frame; None when it never did.
        running: Lines in slots.
        waiting: Lines that wait for a slot.
        steps: Frames made since it was loaded, each of all running lines together.
        faults: Steps that failed since then.
    """

    alive: bool = True
    last_step_age_s: float | None = None
    running: int = 0
    waiting: int = 0
    steps: int = 0
    faults: int = 0


@runtime_checkable
class TellsHealth(Protocol):
    """A backend whose work is done by a thread of its own, which could die."""

    def health(self) -> Health:
        """How that thread is now; cheap, from any thread."""
        ...


@runtime_checkable
class TellsRoom(Protocol):
    """A backend that knows how much of its work fits into the memory there is."""

    def room(self) -> str | None:
        """What fits, as a sentence; None while it can't be told. Imports no model."""
        ...


@runtime_checkable
class ConvertsVoices(Protocol):
    """A backend that can say a recording again in a speaker's voice."""

    def convert(
        self,
        recording: Clip,
        conditioning: Conditioning,
        *,
        seed: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Clip:
        """Keep a recording's words and timing, change its voice; runs in a worker thread.

        Args:
            recording: Speech at any rate.
            conditioning: The voice, from this backend's `condition`.
            seed: Same seed, same sound; None for any.
            cancelled: Polled between steps.

        Raises:
            AudioRejected: The recording is too short or too long.
            OutOfMemory: The device has no room for it.
            Cancelled: `cancelled` became true.
        """
        ...
