"""Dynamic time warping: which frame of one reading of a text is said when in another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from studio.hearing.cepstra import Frames

_WINDOW_ROWS = 3_000  # 30 s of the take are warped at once
_KEPT_ROWS = 2_000  # the rest is warped again, with more behind it
_HALF_BAND = 750  # frames of the reading to both sides of the way expected
_MOST_SLOPE = 2.5  # of a band, which may move by as many frames in a row as there are costs
_FREE = np.array([0.0, 0.0, 1.0, 2.0], dtype=np.float32)
_STEADY = np.array([3.0, 0.0, 3.0, 6.0], dtype=np.float32)
_PACES = (0.4, 2.5)
_FIRST_STRIDE = 3  # frames; a pace is found from fewer

Path = npt.NDArray[np.float64]
_Costs = npt.NDArray[np.float32]


_ROWS_AT_ONCE = 32  # whose distances are found by one product, which take 200 kB


def warp_at_any_pace(take: Frames, reading: Frames, pauses: npt.NDArray[np.bool_]) -> Path:
    """As `warp`, of a reading that is brought to the pace of the take.

    A first warp, to which any pace is as good as another, finds the pace; the second holds to it.
    """
    few = slice(None, None, _FIRST_STRIDE)
    pace = _measure_pace(warp(take[few], reading[few], pauses[few], _FREE), pauses[few])
    at = np.arange(0, len(reading) - 1 + pace, pace).clip(max=len(reading) - 1)
    numbers = at.astype(np.int64)
    share = (at - numbers).astype(np.float32)[:, None]
    paced, following = reading[numbers], reading[np.minimum(numbers + 1, len(reading) - 1)]
    following -= paced
    following *= share
    paced += following
    del following
    path = warp(take, paced, pauses[np.rint(at).astype(np.int64)], _STEADY)
    return at[path]


def _measure_pace(path: npt.NDArray[np.int64], pauses: npt.NDArray[np.bool_]) -> float:
    """Frames of the reading that are said in a frame of the take, pauses apart."""
    said = int((~pauses).sum())
    rows = int((~pauses[path]).sum())
    return min(_PACES[1], max(_PACES[0], said / max(1, rows)))


def warp(
    take: Frames, reading: Frames, pauses: npt.NDArray[np.bool_], costs: _Costs
) -> npt.NDArray[np.int64]:
    """The frame of the reading that each frame of the take says, [take frames], never falling.

    Memory doesn't grow with the recordings: 30 s are warped at once, in a band of 15 s.

    Args:
        take: Cepstra, [frames, n].
        reading: Cepstra of another voice's reading of the same text, [frames, n].
        pauses: Whether each frame of the reading is a pause, in which a take may stay.
        costs: Of 0 to 3 frames of the reading in one of the take.
    """
    path = np.zeros(len(take), dtype=np.int64)
    row = column = 0
    while row < len(take):
        rows = take[row : row + _WINDOW_ROWS]
        is_last = row + len(rows) == len(take)
        slope = (len(reading) - column) / (len(take) - row)
        band = _Band(column, slope, len(reading))
        found = _warp_window(rows, reading, pauses, costs, band, is_last=is_last)
        kept = len(rows) if is_last else _KEPT_ROWS
        path[row : row + kept] = found[:kept]
        column = int(found[kept - 1])
        row += kept
    return path


class _Band:
    """The columns that are looked at in each row of a window."""

    def __init__(self, first: int, slope: float, n_columns: int) -> None:
        self.first = first
        self._slope = min(slope, _MOST_SLOPE)
        self.width = min(2 * _HALF_BAND, n_columns)
        self._last_start = n_columns - self.width

    def start(self, row: int) -> int:
        middle = self.first + round(row * self._slope)
        return max(0, min(self._last_start, middle - _HALF_BAND))


def _warp_window(
    rows: Frames,
    reading: Frames,
    pauses: npt.NDArray[np.bool_],
    costs: _Costs,
    band: _Band,
    *,
    is_last: bool,
) -> npt.NDArray[np.int64]:
    # Of each place a bit for each step, whether it is better than all before it: the last counts.
    better = np.zeros((len(rows), band.width), dtype=np.uint8)
    margin = len(costs) - 1
    starts = [band.start(row) for row in range(len(rows))]
    staying = np.where(pauses[starts[0] : starts[-1] + band.width], 0, costs[0]).astype(np.float32)
    # total[margin + c] is the cheapest way to column starts[row] + c; what lies outside is closed.
    total = np.full(band.width + 2 * margin, np.inf, dtype=np.float32)
    total[margin + band.first - starts[0]] = 0
    best, option = np.empty((2, band.width), dtype=np.float32)
    is_better = np.empty(band.width, dtype=bool)
    for row, distances in enumerate(_iter_distances(rows, reading, starts, band.width)):
        place = margin + starts[row] - starts[max(0, row - 1)]
        stays = staying[starts[row] - starts[0] :][: band.width]
        np.add(total[place : place + band.width], stays, out=best)
        bits = better[row]
        for step in range(1, len(costs)):
            np.add(total[place - step :][: band.width], costs[step], out=option)
            np.less(option, best, out=is_better)
            bits += bits  # a masked copy of the step's number takes ten times as long
            bits += is_better
            np.minimum(best, option, out=best)
        np.add(best, distances, out=total[margin : margin + band.width])
    ways = total[margin : margin + band.width]
    # A take that ends far too early, such as one of silence, can't reach the end of the text.
    reached = np.flatnonzero(np.isfinite(ways))
    return _trace(better, starts, int(reached[-1] if is_last else ways.argmin()))


def _iter_distances(
    rows: Frames, reading: Frames, starts: list[int], width: int
) -> Iterator[Frames]:
    """The distances of each row from the columns of the band, [width]."""
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[first : first + _ROWS_AT_ONCE]
        block_starts = starts[first : first + _ROWS_AT_ONCE]
        columns = reading[block_starts[0] : block_starts[-1] + width]
        distances = (-2 * block) @ columns.T
        distances += _square(columns)
        distances += _square(block)[:, None]
        np.maximum(distances, 0, out=distances)
        np.sqrt(distances, out=distances)
        for of_row, start in zip(distances, block_starts, strict=True):
            yield of_row[start - block_starts[0] :][:width]


def _square(frames: Frames) -> Frames:
    squares: Frames = np.einsum("ij,ij->i", frames, frames)
    return squares


def _trace(better: npt.NDArray[np.uint8], starts: list[int], end: int) -> npt.NDArray[np.int64]:
    path = np.empty(len(better), dtype=np.int64)
    column = starts[-1] + end
    for row in range(len(better) - 1, -1, -1):
        path[row] = column
        column -= _LAST_STEP[better[row, column - starts[row]]]
    return path


_LAST_STEP = (0, 3, 2, 3, 1, 3, 2, 3)
"""Of the bits of steps 1 to 3, the first of which is the highest, the last that is set."""
