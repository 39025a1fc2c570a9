"""What the decoding core promises to whoever schedules lines on it.

The core has a fixed number of slots. A line is admitted to a free slot, every step makes one frame
of all lines in the first `bucket` slots, and a slot is freed when its line has stopped or is no
longer wanted. One thread calls all of it; nothing here blocks on another thread.

Begin reading here, then go on with `slot_scheduler` and `batch_engine`. To run another model, write
a step that makes one frame of the slots' hidden states, a `SlotModelRunner` that writes a line's
settings, a `CodecWorker`, and a request whose `admission` lays out the prompt.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from studio.errors import ModelUnavailable

if TYPE_CHECKING:
    import torch


BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64)
"""Numbers of rows decoded together; on CUDA each is a graph of its own, so there are few."""


class BatchingUnavailable(ModelUnavailable):
    """Lines can't be decoded together here; one at a time they can."""


class StopReason(Enum):
    """Why a line makes no more frames."""

    ENDED = "ended"  # by itself
    BOUND = "bound"  # at its own `max_frames`
    FULL = "full"  # at the end of the slot's cache


@dataclass(frozen=True, slots=True)
class SlotLayout:
    """How much the core holds; all of it but what is kept is allocated at once.

    Attributes:
        slots: Lines at a time, at least 1.
        positions: Of the cache of one slot: prompt and frames together; a multiple of 64.
        max_frames: The most of one line; what its codes have room for.
        kept_bytes: The most that is kept of what lines begin with; None for the device's.
    """

    slots: int
    positions: int = 2_048
    max_frames: int = 1_250
    kept_bytes: int | None = None


PREFIX_CACHE_BYTES = {"cuda": 512_000_000, "mps": 128_000_000, "cpu": 128_000_000}
"""The most that a core keeps of what its lines begin with; to be left free beside the slots."""


class PromptEmbeds(Protocol):
    """A prompt as embeddings."""

    @property
    def embeds(self) -> torch.Tensor:
        """[rows, positions, hidden]; lines of all models but those with guidance have one row."""
        ...

    @property
    def shared(self) -> int:
        """Positions at the start that all prompts of `part` have, fewer than there are."""
        ...

    @property
    def part(self) -> Hashable:
        """What they are known by, as long as `voice` is held."""
        ...

    @property
    def voice(self) -> object:
        """What they were made from."""
        ...


class SlotAdmission(Protocol):
    """A line of any model for one slot."""

    @property
    def slot(self) -> int:
        """A free one."""
        ...

    @property
    def prompt(self) -> PromptEmbeds:
        """What is read before the first frame."""
        ...

    @property
    def max_frames(self) -> int:
        """The line's own bound."""
        ...


@dataclass(frozen=True, slots=True)
class SlotProgress:
    """How far the line in one slot is.

    Attributes:
        frames: Made so far, the frame that held the end not counted.
        stop: Why it stopped; None while it goes on.
    """

    frames: int
    stop: StopReason | None = None


class ModelRunner(Protocol):
    """Decodes many lines together; see `studio.backends.batching.model_runner.SlotModelRunner`.

    What a line brings with it is each model's own; `TtsRequest.admission` makes it.
    """

    @property
    def layout(self) -> SlotLayout:
        """What it was made with."""
        ...

    @property
    def buckets(self) -> tuple[int, ...]:
        """Numbers of slots that a step can take, rising; the last one is all slots."""
        ...

    def admit(self, lines: Sequence[Any]) -> None:
        """Read the prompts, together where that pays, and put the lines into their slots.

        What was in the slots before is forgotten. On an error none of the lines is admitted.

        Raises:
            SpeechFailed: A prompt leaves no room for a frame.
            ValueError: A slot isn't free or named twice; a bound, or a limit of the model's own,
                is out of range.
            torch.OutOfMemoryError: Reading them takes more than there is; admit fewer.
        """
        ...

    def step(self, bucket: int) -> None:
        """Make one frame of every running line in slots [0, bucket); others rest.

        Returns as soon as the work is queued. On CUDA it is one replay of a graph, captured when
        a bucket is needed for the second time; elsewhere the same step runs at once.

        Args:
            bucket: One of `buckets`.

        Raises:
            torch.OutOfMemoryError: This bucket takes more than there is. No frame was made, no
                line is lost, and a smaller bucket may do.
        """
        ...

    def progress(self, *, latest: bool = False) -> dict[int, SlotProgress]:
        """How far the line of every taken slot is.

        On CUDA this is as of the step before the last one, so that nobody waits; elsewhere it is
        as of the last one. A line that has stopped stays as it is, whatever steps follow.

        Args:
            latest: Wait for the last step instead.
        """
        ...

    def codes(self, slot: int, start: int, end: int) -> torch.Tensor:
        """Frames [start, end) of a slot's line: int64 [end - start, groups].

        A copy on the core's device, made in the order of the current stream: a consumer on
        another stream waits for an event of this one first. `end` is at most the `frames` that
        `progress` told.
        """
        ...

    def free(self, slot: int) -> None:
        """Take a line out of its slot, whether it stopped or not; safe on a free slot.

        Takes effect before the next step.
        """
        ...

    def move(self, source: int, target: int) -> None:
        """Carry a running line to a free slot, so that a smaller bucket will do.

        Raises:
            ValueError: `source` is free, or `target` isn't.
        """
        ...

    def reset(self) -> None:
        """Free all slots and forget their state, after an error inside a step too."""
        ...

    def warm(self, buckets: Sequence[int]) -> None:
        """Do now what the first step of these buckets would wait for. All slots must be free.

        Raises:
            torch.OutOfMemoryError: As from `step`.
        """
        ...

    def close(self) -> None:
        """Give up graphs and state; the core is of no use afterwards."""
        ...

    def state_bytes(self) -> int:
        """Bytes of caches and state on the device, without weights and graphs."""
        ...
