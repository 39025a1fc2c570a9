"""Dynamic time warping: which frame of one reading of a text is said when in another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from studio.hearing.cepstra import Frames

_WINDOW_ROWS = 3_000  # 30 s of the take are warped at once
_KEPT_ROWS = 2_000  # the rest is warped again, with more behind it
_HALF_BAND = 750  # frames of the reading to both sides of the way expected
_STEPS = (0, 1, 2, 3)
_COSTS = np.array([0.3, 0.0, 0.3, 0.6], dtype=np.float32)

Path = npt.NDArray[np.int64]


def warp(take: Frames, reading: Frames, pauses: npt.NDArray[np.bool_]) -> Path:
    """The frame of the reading that each frame of the take says, [take frames], never falling.

    Memory doesn't grow with the recordings: 30 s are warped at once, in a band of 15 s.

    Args:
        take: Cepstra, [frames, n].
        reading: Cepstra of another voice's reading of the same text, [frames, n].
        pauses: Whether each frame of the reading is a pause, in which a take may stay.
    """
    path = np.zeros(len(take), dtype=np.int64)
    row = column = 0
    while row < len(take):
        rows = take[row : row + _WINDOW_ROWS]
        is_last = row + len(rows) == len(take)
        slope = (len(reading) - column) / (len(take) - row)
        band = _Band(column, slope, len(reading))
        found = _warp_window(rows, reading, pauses, band, is_last=is_last)
        kept = len(rows) if is_last else _KEPT_ROWS
        path[row : row + kept] = found[:kept]
        column = int(found[kept - 1])
        row += kept
    return path


class _Band:
    """The columns that are looked at in each row of a window."""

    def __init__(self, first: int, slope: float, n_columns: int) -> None:
        self.first = first
        self._slope = min(slope, _STEPS[-1] - 0.5)
        self.width = min(2 * _HALF_BAND, n_columns)
        self._last_start = n_columns - self.width

    def start(self, row: int) -> int:
        middle = self.first + round(row * self._slope)
        return max(0, min(self._last_start, middle - _HALF_BAND))


def _warp_window(
    rows: Frames, reading: Frames, pauses: npt.NDArray[np.bool_], band: _Band, *, is_last: bool
) -> Path:
    steps = np.empty((len(rows), band.width), dtype=np.int8)
    staying = np.where(pauses, 0, _COSTS[0]).astype(np.float32)
    squares = np.einsum("ij,ij->i", reading, reading)
    margin = len(_STEPS) - 1
    starts = [band.start(row) for row in range(len(rows))]
    # total[margin + c] is the cheapest way to column starts[row] + c; what lies outside is closed.
    total = np.full(band.width + 2 * margin, np.inf, dtype=np.float32)
    total[margin + band.first - starts[0]] = 0
    for row, start in enumerate(starts):
        before = starts[max(0, row - 1)]
        moved = min(start - before, margin)
        options = np.stack(
            [total[margin + moved - step :][: band.width] for step in _STEPS]
        )
        options[1:] += _COSTS[1:, None]
        options[0] += staying[start : start + band.width]
        columns = reading[start : start + band.width]
        distance = squares[start : start + band.width] - 2 * (columns @ rows[row])
        distance += rows[row] @ rows[row]
        best = options.argmin(axis=0)
        steps[row] = best
        total[margin : margin + band.width] = options[best, np.arange(band.width)] + np.sqrt(
            np.maximum(distance, 0)
        )
    ways = total[margin : margin + band.width]
    # A take that ends far too early, such as one of silence, can't reach the end of the text.
    reached = np.flatnonzero(np.isfinite(ways))
    return _trace(steps, starts, int(reached[-1] if is_last else ways.argmin()))


def _trace(steps: npt.NDArray[np.int8], starts: list[int], end: int) -> Path:
    path = np.empty(len(steps), dtype=np.int64)
    column = starts[-1] + end
    for row in range(len(steps) - 1, -1, -1):
        path[row] = column
        column -= int(steps[row, column - starts[row]])
    return path
