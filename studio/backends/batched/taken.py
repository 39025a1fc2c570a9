"""What the host knows of a line in a slot, without asking the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from studio.backends.batched.choice import Breadth
from studio.backends.batched.core_contract import Progress, Prompted, Stop
from studio.backends.batched.state import State, Whole


@dataclass(frozen=True, slots=True)
class Taken:
    """One line that was admitted.

    Attributes:
        turn: Which admission it is, or which move.
        prompt: Positions.
        limit: Frames that it may have.
        own_bound: Whether that is the line's own bound rather than the cache's.
        breadth: What its sampling asks for.
        steps: Since it was admitted; never fewer than its frames.
        frames: That were told of.
    """

    turn: int
    prompt: int
    limit: int
    own_bound: bool
    breadth: Breadth
    steps: int = 0
    frames: int = 0

    @classmethod
    def by(cls, line: Prompted, turn: int, positions: int, breadth: Breadth) -> Taken:
        """A line that is being admitted.

        Args:
            line: It.
            turn: A number that no line had before.
            positions: Of a slot's cache.
            breadth: What its sampling asks for.
        """
        prompt = line.prompt.embeds.shape[1]
        room = positions - prompt
        limit, own_bound = min(line.max_frames, room), line.max_frames <= room
        return cls(turn, prompt, limit, own_bound, breadth)

    @property
    def positions(self) -> int:
        """Its cache is never longer."""
        return self.prompt + min(self.steps, self.limit)

    def told(self, row: Sequence[int]) -> Progress:
        """How far it is by its slot's numbers, which may be from before it came there."""
        if row[Whole.TURN] != self.turn:
            return Progress(self.frames)
        frames = row[Whole.FRAME]
        match State(row[Whole.STATE]):
            case State.ENDED:
                return Progress(frames, Stop.ENDED)
            case State.BOUND:
                return Progress(frames, Stop.BOUND if self.own_bound else Stop.FULL)
            case _:
                return Progress(frames)
