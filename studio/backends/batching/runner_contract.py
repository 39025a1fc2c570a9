"""The terms in which engine, scheduler and model runners speak of lines: slots, prompts, progress.

A runner has a fixed number of slots. A line is admitted to a free slot, every step makes one frame
of all lines in the first `bucket` slots, and a slot is freed when its line has stopped or is no
longer wanted. One thread calls all of it; nothing here blocks on another thread.

Begin reading here, then go on with `model_runner`, `slot_scheduler` and `batch_engine`. To run
another model, write a step that makes one frame of the slots' hidden states, a `SlotModelRunner`
that writes a line's settings, a `CodecWorker`, and a request whose `admission` lays out the prompt.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from studio.errors import ModelUnavailable

if TYPE_CHECKING:
    import torch


BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64)
"""Numbers of rows decoded together; on CUDA each is a graph of its own, so there are few."""


class BatchingUnavailable(ModelUnavailable):
    """Batched decoding isn't possible here; one line at a time is."""


class StopReason(Enum):
    """Why a line's generation has stopped."""

    ENDED = "ended"  # by itself
    BOUND = "bound"  # at its own `max_frames`
    FULL = "full"  # at the end of the slot's cache


@dataclass(frozen=True, slots=True)
class SlotLayout:
    """Sizes of a runner's slots; all but the prefix cache is allocated at once.

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
"""The most that a core keeps of what its lines begin with; to be left free besides the slots."""


class PromptEmbeds(Protocol):
    """The embeddings of a prompt."""

    @property
    def embeds(self) -> torch.Tensor:
        """[rows, positions, hidden]; lines of all models but those with guidance have one row."""

    @property
    def shared(self) -> int:
        """Length of the prefix that all prompts with the same `part` share, in positions."""

    @property
    def part(self) -> Hashable:
        """The prefix's key in the cache, valid as long as `voice` is held."""

    @property
    def voice(self) -> object:
        """The voice they were made from."""


@dataclass(frozen=True, slots=True, eq=False)
class SlotAdmission:
    """A line of any model, to be admitted to one slot.

    Attributes:
        slot: A free one.
        prompt: Read before the first frame; shorter than `SlotLayout.positions`.
        sampling: The model's own kind of parameters.
        seed: Any integer. The same seed gives the same noise alone, in any slot and in any batch.
        max_frames: The line's own bound, in [1, SlotLayout.max_frames].
    """

    slot: int
    prompt: PromptEmbeds
    sampling: Any
    seed: int
    max_frames: int


@dataclass(frozen=True, slots=True)
class SlotProgress:
    """Progress of the line in one slot.

    Attributes:
        frames: Made so far, the frame that held the end not counted.
        stop: Why it stopped; None while it goes on.
    """

    frames: int
    stop: StopReason | None = None
