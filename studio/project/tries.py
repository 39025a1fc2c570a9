"""Further takes of a doubtful line, each with a seed that follows from the one before."""

from __future__ import annotations

from collections.abc import Sequence

from studio.engine.speaking import further_seed
from studio.project.take import Take


def next_seed(take: Take, takes: Sequence[Take], most: int) -> int | None:
    """The seed of the try after a take.

    Args:
        take: A doubtful one, just made.
        takes: All of its line.
        most: How many tries there may be, the first included.

    Returns:
        None when there were as many already, or that one was made before.
    """
    seeds = {one.seed for one in takes if one.key == take.key}
    follows = further_seed(take.seed)
    if follows in seeds or _number(take, takes) >= most:
        return None
    return follows


def is_further(take: Take, takes: Sequence[Take]) -> bool:
    """Whether a take was made since another one was doubtful."""
    return _number(take, takes) > 1


def _number(take: Take, takes: Sequence[Take]) -> int:
    """Which try a take is, from 1."""
    before = {further_seed(one.seed): one.seed for one in takes if one.key == take.key}
    number, seed = 1, take.seed
    while seed in before and number <= len(before):
        seed = before[seed]
        number += 1
    return number
