"""How fast each voice engine speaks on this machine, measured as it speaks and kept on disk."""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from studio.errors import FormatNewer, StorageFailed
from studio.storage.disk import Disk, read_file
from studio.storage.records import RecordFormat

log = logging.getLogger(__name__)

SPEEDS_FILE = "speech-speeds.json"
_FORMAT = RecordFormat("The file of measured speeds")
_KEPT = 5
"""Measurements of which the median counts: the first after a load is slower than the rest."""

_LEAST_S = 1.5
"""Seconds of speech that say something of the speed: shorter ones are mostly overhead."""

_ENOUGH_S = 20.0
"""Seconds of speech after which a measurement ends, although lines are still in flight."""

_NEWS = 0.25
"""Relative change of a speed that is worth a write."""


def describe_machine(device: str) -> str:
    """What speeds depend on: processor, system and kind of device; the same at every start."""
    cores = os.cpu_count() or 1
    return f"{cores} {platform.machine()} {platform.system()} {_processor()} {device}".lower()


def _processor() -> str:
    try:
        rows = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((row.partition(":")[2].strip() for row in rows if row.startswith("model name")), "")


@dataclass(slots=True)
class _Stretch:
    """Lines of one engine that were spoken without a pause, from the first one's beginning."""

    n_spoken: int = 0
    began_s: float = 0.0
    audio_s: float = 0.0
    busy_s: float = 0.0


class SpeechSpeeds:
    """Seconds of speech that each engine makes in a second, over all lines in flight.

    The renderer measures every line. Safe from any thread. A file that can't be read or written
    costs new measurements, and never a line.

    Attributes:
        device: The kind of device that models run on.
    """

    def __init__(
        self,
        path: Path | None,
        device: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        notify: Callable[[], None] = lambda: None,
    ) -> None:
        """Read what was measured on this machine before.

        Args:
            path: The file; None for memory only.
            device: The kind of device that models run on, as far as one knows at the start; what
                was measured on another one, or on another machine, isn't read.
            clock: Monotonic seconds.
            notify: Called when a backend has its first speed, in whatever thread. Later ones are
                seen whenever all is read; each line has another.
        """
        self.device = device
        self._path = path
        self._machine = describe_machine(device)
        self._clock = clock
        self.notify = notify
        self._disk = Disk()
        # Guards the three tables.
        self._lock = threading.Lock()
        self._measured: dict[str, list[float]] = _read(path, self._machine) if path else {}
        self._kept = {
            name: median(measured) for name, measured in self._measured.items() if measured
        }
        self._stretches: dict[str, _Stretch] = {}

    def get(self, name: str) -> float | None:
        """The speed of a backend on this machine; None if it hasn't spoken here yet."""
        with self._lock:
            measured = self._measured.get(name)
            return median(measured) if measured else None

    @contextmanager
    def span(self, name: str, spoken_s: Callable[[], float]) -> Iterator[None]:
        """Measure a line of a backend while it is spoken.

        Args:
            name: The backend.
            spoken_s: Asked at the end for the seconds of speech that came.
        """
        self._begin(name)
        try:
            yield
        finally:
            self._end(name, spoken_s())

    def _begin(self, name: str) -> None:
        with self._lock:
            stretch = self._stretches.setdefault(name, _Stretch())
            if not stretch.n_spoken:
                stretch.began_s = self._clock()
            stretch.n_spoken += 1

    def _end(self, name: str, audio_s: float) -> None:
        with self._lock:
            stretch = self._stretches[name]
            now_s = self._clock()
            stretch.n_spoken -= 1
            stretch.audio_s += audio_s
            is_over = not stretch.n_spoken
            if is_over or stretch.audio_s >= _ENOUGH_S:
                stretch.busy_s += now_s - stretch.began_s
                stretch.began_s = now_s
            if stretch.audio_s < (_LEAST_S if is_over else _ENOUGH_S) or stretch.busy_s <= 0:
                return
            speed = stretch.audio_s / stretch.busy_s
            stretch.audio_s = stretch.busy_s = 0.0
            is_first = name not in self._kept
            is_news = self._add(name, speed)
        if is_news:
            self._write()
        if is_first:
            self.notify()

    def forget(self, name: str) -> None:
        """Forget a backend, whose weights were removed."""
        with self._lock:
            known = self._measured.pop(name, None)
            self._kept.pop(name, None)
        if known:
            self._write()

    def _add(self, name: str, speed: float) -> bool:
        measured = self._measured.setdefault(name, [])
        measured[:] = [*measured, speed][-_KEPT:]
        now, kept = median(measured), self._kept.get(name, 0.0)
        if abs(now - kept) <= _NEWS * kept:
            return False
        self._kept[name] = now
        return True

    def _write(self) -> None:
        if self._path is None:
            return
        with self._lock:
            speeds = {
                name: [round(speed, 3) for speed in measured]
                for name, measured in self._measured.items()
            }
        try:
            record = {"machine": self._machine, "speeds": speeds}
            # After a power failure they are measured again.
            _FORMAT.write(self._disk, self._path, record, synced=False)
        except StorageFailed as error:
            log.warning("the measured speeds can't be kept: %s", error)


def _read(path: Path, machine: str) -> dict[str, list[float]]:
    try:
        record = _FORMAT.decode(read_file(path))
        if record["machine"] != machine:
            return {}
        return {
            str(name): [float(speed) for speed in measured if speed > 0][-_KEPT:]
            for name, measured in record["speeds"].items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, FormatNewer) as error:
        log.warning("%s can't be read, so speeds are measured again: %s", path, error)
        return {}
