"""A decoding core of any model: slots, the step that advances them, and who is in which."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic

import torch

from studio.backends.batched.beginnings import Beginnings
from studio.backends.batched.choice import Breadth
from studio.backends.batched.core_contract import BEGINNINGS_BYTES, Layout, Progress
from studio.backends.batched.graphs import Replays
from studio.backends.batched.news import News
from studio.backends.batched.prefill import (
    LENGTHS_ON_CUDA,
    TOGETHER_ON_CUDA,
    LineT,
    passes,
    reach,
    read,
)
from studio.backends.batched.slot_step import Shape
from studio.backends.batched.state import SlotState, Whole
from studio.backends.batched.taken import Taken
from studio.backends.batched.transformer import Backbone
from studio.errors import SpeechFailed

BUCKETS = (1, 2, 4, 8, 16, 24, 32, 48, 64)
_USUAL_POSITIONS = (256, 512)  # of most lines with their prompts; what warming prepares
_SMALLEST_WINDOW = 256
_WINDOW_STEP = 64  # of a CPU, which captures nothing


class SlotCore(ABC, Generic[LineT]):
    """Many lines of one checkpoint, decoded together.

    On CUDA and on a CPU the same step runs; see `studio.backends.batched.core_contract.Core` for
    what each method promises.
    """

    _too_long = (
        "The speaker's sample and this line are too long together. Cut the sample to "
        "under 30 s, or split the line."
    )

    def __init__(
        self,
        layout: Layout,
        stack: Backbone,
        slots: SlotState,
        step: Callable[[Shape], None],
        *,
        prefill_positions: int | None = None,
        usual: Breadth | None = None,
    ) -> None:
        """Begin with free slots.

        Args:
            layout: How much `slots` holds.
            stack: Reads prompts.
            slots: All state; stays where it is.
            step: Advances them.
            prefill_positions: See `studio.backends.batched.prefill.passes`; None for the device's.
            usual: What is asked of the choice while no line asks for more.
        """
        device = slots.whole.device
        together = TOGETHER_ON_CUDA if device.type == "cuda" else 0
        self._layout = layout
        self._together = together if prefill_positions is None else prefill_positions
        self._lengths = LENGTHS_ON_CUDA if device.type == "cuda" else 1
        self._usual = usual or Breadth()
        self._stack = stack
        self._slots = slots
        usual_bytes = BEGINNINGS_BYTES[device.type]
        kept_bytes = usual_bytes if layout.kept_bytes is None else layout.kept_bytes
        self._beginnings = Beginnings(stack, slots, kept_bytes, lengths=self._lengths)
        self._replays = Replays(step, device)
        self._news = News(slots.whole)
        self._taken: dict[int, Taken] = {}
        self._dirty = [0] * layout.slots  # positions of each cache that were ever written
        self._turns = 0

    @property
    def layout(self) -> Layout:
        """What it was made with."""
        return self._layout

    @property
    def device(self) -> torch.device:
        """Where the slots are."""
        return self._slots.whole.device

    @property
    def buckets(self) -> tuple[int, ...]:
        """Numbers of slots that a step can take."""
        return buckets_of(self._layout.slots)

    def admit(self, lines: Sequence[LineT]) -> None:
        """Read the prompts and put the lines into their slots."""
        self._check(lines)
        taken = {
            line.slot: Taken.by(line, self._turns + n, self._layout.positions, self._breadth(line))
            for n, line in enumerate(lines, start=1)
        }
        with torch.inference_mode():
            for line in lines:
                self._slots.wipe(line.slot, self._dirty[line.slot])
                self._dirty[line.slot] = self._layout.positions
            for group in passes(lines, self._together):
                self._read(group)
            turns = [entry.turn for entry in taken.values()]
            self._put(lines, turns, [entry.limit for entry in taken.values()])
        self._turns += len(lines)
        written = min(reach(lines, self._lengths), self._layout.positions)
        for slot, entry in taken.items():
            self._taken[slot] = entry
            self._dirty[slot] = written

    def step(self, bucket: int) -> None:
        """Make one frame of every running line in the first slots."""
        if bucket not in self.buckets:
            raise ValueError(f"{bucket} slots are no bucket; there are {self.buckets}.")
        running = {slot: entry for slot, entry in self._taken.items() if slot < bucket}
        with torch.inference_mode():
            self._replays.run(self._shape(bucket, running))
            self._news.send()
        for slot, entry in running.items():
            self._taken[slot] = replace(entry, steps=entry.steps + 1)
            self._dirty[slot] = max(self._dirty[slot], self._taken[slot].positions)

    def progress(self, *, latest: bool = False) -> dict[int, Progress]:
        """How far the line of every taken slot is."""
        rows = self._news.read(latest=latest)
        told = {slot: entry.told(rows[slot]) for slot, entry in self._taken.items()}
        for slot, progress in told.items():
            self._taken[slot] = replace(self._taken[slot], frames=progress.frames)
        return told

    def codes(self, slot: int, start: int, end: int) -> torch.Tensor:
        """Frames of a slot's line, copied."""
        return self._slots.codes[slot, start:end].clone()

    def free(self, slot: int) -> None:
        """Take a line out of its slot."""
        if self._taken.pop(slot, None) is not None:
            with torch.inference_mode():
                self._slots.free(slot)

    def move(self, source: int, target: int) -> None:
        """Carry a running line to a free slot."""
        if source not in self._taken or target in self._taken:
            raise ValueError(f"Slot {source} can't move to {target}: it is free, or that isn't.")
        entry = self._taken[source]
        self._turns += 1
        with torch.inference_mode():
            self._slots.wipe(target, self._dirty[target])
            self._slots.copy(source, target, self._dirty[source])
            self._slots.whole[target, Whole.TURN] = self._turns
        self._dirty[target] = self._dirty[source]
        self.free(source)
        self._taken[target] = replace(entry, turn=self._turns)

    def reset(self) -> None:
        """Free all slots and forget their state."""
        self._taken.clear()
        self._dirty = [0] * self._layout.slots
        self._beginnings.forget()  # the fault may have been that memory is short
        with torch.inference_mode():
            self._slots.reset()

    def warm(self, buckets: Sequence[int]) -> None:
        """Capture the graphs that a line of usual length needs; all slots must be free."""
        assert not self._taken, "warming would advance the lines in the slots"
        windows = {self._window(positions) for positions in _USUAL_POSITIONS}
        for bucket, window in itertools.product(buckets, sorted(windows)):
            with torch.inference_mode():
                self._replays.prepare(Shape(bucket, window, self._usual))

    def close(self) -> None:
        """Give up graphs and state."""
        self._taken.clear()
        self._replays.close()
        del self._replays, self._slots, self._stack, self._news, self._beginnings

    def state_bytes(self) -> int:
        """Bytes of caches and state."""
        return self._slots.size_bytes

    @property
    def beginnings(self) -> Beginnings:
        """What is kept of what lines begin with."""
        return self._beginnings

    def _read(self, lines: Sequence[LineT]) -> None:
        """Read prompts of about the same length into their slots, what they share once."""
        self._beginnings.give(lines)
        begun = [line.prompt.shared for line in lines]
        read(self._stack, self._slots, lines, begun=begun, lengths=self._lengths)

    @abstractmethod
    def _put(self, lines: Sequence[LineT], turns: Sequence[int], limits: Sequence[int]) -> None:
        """Write what lines ask for into their slots, where their prompts were read already."""

    @abstractmethod
    def _breadth(self, line: LineT) -> Breadth:
        """What a line asks of the choice of codes."""

    def _check_line(self, line: LineT) -> None:
        """Refuse what this model's step can't do.

        Raises:
            ValueError: It is out of range.
        """

    def _check(self, lines: Sequence[LineT]) -> None:
        wanted = [line.slot for line in lines]
        if len(set(wanted)) < len(wanted) or not self._taken.keys().isdisjoint(wanted):
            raise ValueError(f"Slots {wanted} are not all free and different.")
        for line in lines:
            if not 0 <= line.slot < self._layout.slots:
                raise ValueError(f"There is no slot {line.slot}.")
            if not 1 <= line.max_frames <= self._layout.max_frames:
                raise ValueError(f"A bound of {line.max_frames} frames is out of range.")
            self._check_line(line)
            if line.prompt.embeds.shape[1] >= self._layout.positions:
                raise SpeechFailed(self._too_long)

    def _shape(self, bucket: int, running: dict[int, Taken]) -> Shape:
        """The smallest shape that is enough for these lines."""
        entries = running.values()
        needed = 1 + max((entry.positions for entry in entries), default=0)
        breadths = [entry.breadth for entry in entries]
        return Shape(
            rows=bucket,
            window=self._window(min(needed, self._layout.positions)),
            breadth=Breadth(
                max((breadth.candidates for breadth in breadths), default=self._usual.candidates),
                any(breadth.shares for breadth in breadths),
                any(breadth.greedy for breadth in breadths),
            ),
        )

    def _window(self, needed: int) -> int:
        """On CUDA few windows, since each is a capture of its own."""
        if self._slots.whole.is_cuda:
            window = _SMALLEST_WINDOW
            while window < needed:
                window *= 2
        else:
            window = -(-needed // _WINDOW_STEP) * _WINDOW_STEP
        return min(window, self._layout.positions)


def buckets_of(slots: int) -> tuple[int, ...]:
    """The numbers of slots that a step of so many can take."""
    beyond = range(BUCKETS[-1] * 2, slots, BUCKETS[-1])
    return (*(n for n in (*BUCKETS, *beyond) if n < slots), slots)
