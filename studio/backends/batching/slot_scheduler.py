"""Assigns waiting lines to slots by priority. Pure: no torch, no threads.

A line is waiting, then running in a slot, then gone. `admit` moves lines from the first to the
second state, `free` and `discard` out of the second, and `requeue` back.

Two ways to batch. Continuous: a freed slot is refilled before the next frame. Batch-and-wait: all
slots run empty before the next batch is admitted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from studio.backends.base import Priority

MAX_ADMITTED_WITH_LISTENER = 4
"""Lines admitted beside a line somebody listens to: reading prompts halts its frames."""

MAX_ADMITTED = 16
"""Lines admitted where nobody listens: who begins to meanwhile waits for their prompts."""


class Schedulable(Protocol):
    """What the scheduler needs to know about a line."""

    @property
    def has_delivered(self) -> bool:
        """Whether audio of it was delivered, so that it should not begin again."""

    def priority(self) -> Priority:
        """Its present priority."""


SchedulableT = TypeVar("SchedulableT", bound=Schedulable)


class SlotScheduler(Generic[SchedulableT]):
    """Assigns lines to slots.

    The lowest free slot is filled first: the number of slots that a frame has to touch is the
    highest running one plus one.

    Attributes:
        slots: Lines that may run at once now.
        max_slots: The most of them.
        refilled: Lines so far that were admitted while others ran on.
    """

    def __init__(
        self,
        slots: int,
        *,
        continuous: bool = True,
        max_wait_s: float = 0.05,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with nothing waiting and all slots free.

        Args:
            slots: Lines that may run at once, at least 1.
            continuous: Whether freed slots are refilled while others run.
            max_wait_s: How long the first line waits for others before an idle engine begins.
            clock: Seconds, never going back.
        """
        assert slots >= 1
        self.slots = self.max_slots = slots
        self.refilled = 0
        self._continuous = continuous
        self._max_wait_s = max_wait_s
        self._clock = clock
        self._waiting: list[SchedulableT] = []
        self._running: dict[int, SchedulableT] = {}
        self._oldest_s = 0.0  # when the first waiting line came; meaningless if none waits

    @property
    def running(self) -> dict[int, SchedulableT]:
        """Slot to line; a copy, ascending by slot."""
        return dict(sorted(self._running.items()))

    @property
    def waiting(self) -> tuple[SchedulableT, ...]:
        """Waiting lines in order of arrival."""
        return tuple(self._waiting)

    @property
    def span(self) -> int:
        """Slots that the next step covers: the highest running one plus one."""
        return max(self._running, default=-1) + 1

    def submit(self, line: SchedulableT) -> None:
        """Queue a line."""
        if not self._waiting:
            self._oldest_s = self._clock()
        self._waiting.append(line)

    def admit(self) -> list[tuple[int, SchedulableT]]:
        """Move lines from waiting to running; returns their slots, ascending, if it is time."""
        if self.wait_s() != 0.0:
            return []
        # Stable: lines of equal priority stay in order of arrival.
        ranked = sorted(self._waiting, key=lambda line: line.priority())
        admitted = list(zip(self._free(), ranked[: self._at_once(ranked[0])], strict=False))
        self.refilled += len(admitted) if self._running else 0
        self._running.update(admitted)
        taken = {id(line) for _, line in admitted}
        self._waiting = [line for line in self._waiting if id(line) not in taken]
        return admitted

    def _at_once(self, first: SchedulableT) -> int:
        """The lines to admit together; one at the play-head is admitted before, by itself."""
        if not self._continuous:  # whoever isn't among them waits for a whole batch
            return self.slots
        if _is_at_play_head(first):
            return 1
        if _any_listener([first, *self._running.values()]):
            return MAX_ADMITTED_WITH_LISTENER
        return MAX_ADMITTED

    def find_preemptible(self, frames_of: Callable[[int], int]) -> int | None:
        """The slot to preempt for a line at the play-head; None if none has to be.

        It is that of the line with the fewest frames to which nobody listens or has listened: that
        loses the least work, and its seed brings the same line back.

        Args:
            frames_of: Returns the frames of the line in a slot.
        """
        if not self._continuous or self._free():
            return None
        if not any(map(_is_at_play_head, self._waiting)):
            return None
        idle = [
            slot
            for slot, line in self._running.items()
            if not line.priority().is_listened and not line.has_delivered
        ]
        return min(idle, key=frames_of, default=None)

    def preempt(self, slot: int, line: SchedulableT) -> None:
        """Free a slot whose line is replaced by another, which goes to the head of the queue."""
        del self._running[slot]
        self._waiting.insert(0, line)

    def wait_s(self) -> float | None:
        """Seconds until `admit` admits a line; None if that needs another event.

        An idle engine waits for further lines, so that a script's first lines begin in one batch; a
        line that somebody listens to waits for nothing.
        """
        if not self._waiting or not self._free():
            return None
        if self._running:
            return 0.0 if self._continuous else None
        if len(self._waiting) >= self.slots or _any_listener(self._waiting):
            return 0.0
        return max(0.0, self._oldest_s + self._max_wait_s - self._clock())

    def free(self, slot: int) -> SchedulableT:
        """Free the slot of a finished line."""
        return self._running.pop(slot)

    def discard(self, line: SchedulableT) -> int | None:
        """Remove a waiting or running line; returns its slot if it was running."""
        if line in self._waiting:
            self._waiting.remove(line)
            return None
        slot = next((slot for slot, one in self._running.items() if one is line), None)
        if slot is not None:
            del self._running[slot]
        return slot

    def requeue(self, lines: Sequence[SchedulableT]) -> None:
        """Free all slots and queue these lines before those that never ran."""
        self._running.clear()
        self._waiting = [*lines, *self._waiting]
        self._oldest_s = self._clock() - self._max_wait_s

    def compact(self, span: int) -> list[tuple[int, int]]:
        """Move running lines into the first slots, if they fit.

        Returns:
            Moves from a slot to a free lower one, which have been made here.
        """
        if not len(self._running) <= span < self.span:
            return []
        free = [slot for slot in range(span) if slot not in self._running]
        high = [slot for slot in sorted(self._running) if slot >= span]
        moves = list(zip(high, free, strict=False))
        for source, target in moves:
            self._running[target] = self._running.pop(source)
        return moves

    def limit(self, slots: int) -> None:
        """Use 1 to `max_slots` slots from now on; lines running above them finish."""
        assert 1 <= slots <= self.max_slots
        self.slots = slots

    def _free(self) -> list[int]:
        return [slot for slot in range(self.slots) if slot not in self._running]


def _is_at_play_head(line: Schedulable) -> bool:
    return line.priority().ahead == 0


def _any_listener(lines: Sequence[Schedulable]) -> bool:
    return any(line.priority().is_listened for line in lines)
