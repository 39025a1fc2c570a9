"""What a codec remembers of its lines: one row of numbers a line, cut into places.

All of it lies in one tensor, so that a line is begun, put aside and taken up again by a single
copy, and a captured step finds it where it was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a row something is kept.

    Attributes:
        start: The first number.
        shape: Of what is kept for one line.
    """

    start: int
    shape: tuple[int, ...]

    def of(self, state: torch.Tensor) -> torch.Tensor:
        """What is kept there: [rows, *shape], a view of `state`."""
        end = self.start + math.prod(self.shape)
        return state[:, self.start : end].view(len(state), *self.shape)


class Ledger:
    """Hands out places, one behind the other."""

    def __init__(self) -> None:
        """Begin with none."""
        self._numbers = 0

    @property
    def numbers(self) -> int:
        """Length of a row."""
        return self._numbers

    def place(self, *shape: int) -> Place:
        """One more place."""
        place = Place(self._numbers, shape)
        self._numbers += math.prod(shape)
        return place
