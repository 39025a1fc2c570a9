"""What was heard of a line, so that no try is heard twice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from studio.audio.clip import STUDIO_RATE_HZ, Samples

Hear = Callable[[Samples], None]
"""Takes float32 [samples] at the studio's rate, never empty, each not heard before."""

_SAME_SOUND = 0.01  # energy of the difference to that of the sound; -20 dB


class Differs(Exception):
    """A second try doesn't begin with what was heard of the first, so they can't be joined."""


class Heard:
    """Passes on what is new of each try at a line.

    A second try with the same seed should begin with the same samples: those are skipped.
    """

    def __init__(self, hear: Hear) -> None:
        """Hear nothing yet."""
        self._hear = hear
        self._chunks: list[Samples] = []
        self._again: list[Samples] = []
        self._to_skip = 0

    @property
    def heard_s(self) -> float:
        """Seconds that were passed on."""
        return sum(map(len, self._chunks)) / STUDIO_RATE_HZ

    def begin(self) -> None:
        """A try begins, with the line's first sample."""
        self._to_skip = sum(map(len, self._chunks))
        self._again = []

    def take(self, chunk: Samples) -> None:
        """Take what comes next of the try.

        Raises:
            Differs: It isn't what was heard here.
        """
        known, fresh = chunk[: self._to_skip], chunk[self._to_skip :]
        if len(known):
            self._again.append(known)
            self._to_skip -= len(known)
            if not self._to_skip and not self._same():
                raise Differs
        if len(fresh):
            self._chunks.append(fresh)
            self._hear(fresh)

    def end(self) -> None:
        """The try is whole.

        Raises:
            Differs: It ended before the place that was heard.
        """
        if self._to_skip:
            raise Differs

    def _same(self) -> bool:
        one, other = np.concatenate(self._again), np.concatenate(self._chunks)
        return bool(np.sum((one - other) ** 2) <= _SAME_SOUND * np.sum(other**2))
