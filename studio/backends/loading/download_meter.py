"""How far a download of several files is, in bytes and speed."""

from __future__ import annotations

import time
from collections.abc import Callable

from studio.backends.base import LoadProgress

_REPORT_EVERY_S = 0.2


class DownloadMeter:
    """Counts bytes and tells them, at most five times a second.

    The report is also where a download is cancelled: it may raise.
    """

    def __init__(
        self,
        report: Callable[[LoadProgress], None],
        *,
        total_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start at zero of `total_bytes`."""
        self._report = report
        self._total_bytes = total_bytes
        self._clock = clock
        self._done_bytes = 0
        self._came_bytes = 0
        self._began_s = clock()
        self._told_s = self._began_s
        self._file = ""

    def skip(self, size_bytes: int) -> None:
        """Count a file that is there already."""
        self._done_bytes += size_bytes

    def begin(self, file: str, *, have_bytes: int) -> None:
        """Turn to a file, of which a part may be there."""
        self._file = file
        self._done_bytes += have_bytes
        self._tell()

    def rewind(self, lost_bytes: int) -> None:
        """Take back bytes of the file that have to come again."""
        self._done_bytes -= lost_bytes

    def add(self, size_bytes: int) -> None:
        """Count bytes that came."""
        self._done_bytes += size_bytes
        self._came_bytes += size_bytes
        if self._clock() - self._told_s >= _REPORT_EVERY_S:
            self._tell()

    def say(self, message: str) -> None:
        """Tell why nothing comes at the moment."""
        self._report(LoadProgress(message, self._fraction))

    @property
    def _fraction(self) -> float | None:
        return min(1.0, self._done_bytes / self._total_bytes) if self._total_bytes else None

    def _tell(self) -> None:
        self._told_s = self._clock()
        elapsed_s = self._told_s - self._began_s
        speed = f", {self._came_bytes / elapsed_s / 1e6:.1f} MB/s" if elapsed_s > 0 else ""
        done_mb, total_mb = self._done_bytes / 1e6, self._total_bytes / 1e6
        self._report(
            LoadProgress(
                f"Downloading {self._file}: {done_mb:,.0f} of {total_mb:,.0f} MB{speed}",
                self._fraction,
            )
        )
