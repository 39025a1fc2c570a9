"""Resumes a stream of audio whose source had to begin again, if that brings the same audio."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.errors import ReadingChanged

_SAME_SOUND = 0.01  # energy of the difference to that of the sound; -20 dB
_QUIET = 0.01  # of the mean energy: what is quieter is compared as if it were as loud
_WINDOW_SAMPLES = STUDIO_RATE_HZ // 10  # a reading may part from another one at its end


class StreamResume:
    """Passes on only those samples of a try that earlier tries haven't delivered.

    A further try with the same seed should begin with the same samples: those are skipped.

    Attributes:
        chunks: What was passed on, in order; joined, it is what a listener has.
    """

    def __init__(
        self, deliver: Callable[[Samples], object], delivered: Iterable[Samples] = ()
    ) -> None:
        self.chunks: list[Samples] = list(delivered)
        self._deliver = deliver
        self.begin()

    @property
    def delivered_s(self) -> float:
        return sum(map(len, self.chunks)) / STUDIO_RATE_HZ

    def begin(self) -> None:
        """Begin a try: the next samples are the line's first."""
        self._to_skip = sum(map(len, self.chunks))
        self._again: list[Samples] = []

    def take(self, chunk: Samples) -> None:
        """Take the next samples of the try.

        Raises:
            ReadingChanged: They aren't what was delivered.
        """
        known, fresh = chunk[: self._to_skip], chunk[self._to_skip :]
        if len(known):
            self._again.append(known)
            self._to_skip -= len(known)
            if not self._to_skip and not self._is_same():
                raise _changed()
        if len(fresh):
            self.chunks.append(fresh)
            self._deliver(fresh)

    def end(self) -> None:
        """End a try that is complete.

        Raises:
            ReadingChanged: It ended before the last sample delivered.
        """
        if self._to_skip:
            raise _changed()

    def _is_same(self) -> bool:
        """Whether all that was delivered came again, but for rounding."""
        other = np.concatenate(self.chunks)
        difference = _measure_windows(np.concatenate(self._again) - other)
        energy = _measure_windows(other)
        self._again = []
        return bool(np.all(difference <= _SAME_SOUND * np.maximum(energy, _QUIET * energy.mean())))


def _measure_windows(samples: Samples) -> npt.NDArray[np.float64]:
    """The energy of each window."""
    starts = np.arange(0, len(samples), _WINDOW_SAMPLES)
    return np.add.reduceat(samples.astype(np.float64) ** 2, starts)


def _changed() -> ReadingChanged:
    return ReadingChanged(
        "This line had to begin again, and came out otherwise than what was played of it. "
        "Generate it again."
    )
