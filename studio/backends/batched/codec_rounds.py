"""Which frames of which lines are decoded together: lines of any lengths through equal rows."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_ROUND_COST_FRAMES = 16
"""What a round costs beside its frames: a card is hardly faster with fewer than these."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive frames of a line, decoded in one round.

    Attributes:
        line: Its index.
        start: The first frame.
        end: Behind the last.
        last: Whether the line ends with them.
    """

    line: int
    start: int
    end: int
    last: bool


@dataclass(frozen=True, slots=True)
class Round:
    """What is decoded at once.

    Attributes:
        pieces: One for each row from the first on.
        rows: That are decoded; beyond the pieces they are idle.
        frames: Of each row; beyond a piece's they are padding.
    """

    pieces: Sequence[Piece]
    rows: int
    frames: int


def rounds(lengths: Sequence[int], sizes: Sequence[int], frames: int) -> list[Round]:
    """Share lines out over rows, each row taking the next line when one has ended.

    Args:
        lengths: Frames of each line, at least one.
        sizes: Numbers of rows that a round can have, ascending; all of them are weighed.
        frames: Of each row in a round.

    Returns:
        In order; the cheapest there is among as many rows as each of the sizes.
    """
    ways = (list(_shared(lengths, sizes, frames, rows)) for rows in sizes)
    return min(ways, key=lambda way: sum(one.rows * frames + _ROUND_COST_FRAMES for one in way))


def padded_share(lengths: Sequence[int], way: Sequence[Round]) -> float:
    """The part of the decoded frames that no line has."""
    decoded = sum(one.rows * one.frames for one in way)
    return 1 - sum(lengths) / decoded if decoded else 0.0


def _shared(
    lengths: Sequence[int], sizes: Sequence[int], frames: int, rows: int
) -> Iterator[Round]:
    """Through so many rows.

    The longest line goes first and to the row that is free first, so that the rows end about
    together; the rows that go on longest come first, so that those with work are always the first.
    """
    queues: list[list[Piece]] = [[] for _ in range(min(rows, len(lengths)))]
    free = [(0, row) for row in range(len(queues))]  # rounds until a row is free
    for line in sorted(range(len(lengths)), key=lambda line: -lengths[line]):
        _, row = free[0]
        queues[row].extend(_pieces(line, lengths[line], frames))
        heapq.heapreplace(free, (len(queues[row]), row))
    queues.sort(key=len, reverse=True)
    for number in range(len(queues[0]) if queues else 0):
        pieces = [queue[number] for queue in queues if number < len(queue)]
        yield Round(pieces, next(size for size in sizes if size >= len(pieces)), frames)


def _pieces(line: int, length: int, frames: int) -> Iterator[Piece]:
    for start in range(0, length, frames):
        end = min(length, start + frames)
        yield Piece(line, start, end, last=end == length)
