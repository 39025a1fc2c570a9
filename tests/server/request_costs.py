"""What one request costs a server that runs as a process of its own: processor time and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

T = TypeVar("T")

_QUIET_S = 0.25
_LOOPS, _ORDINARY_S = 3_000_000, 0.055  # CPython 3.11 where the figures of the docs are from


@dataclass(frozen=True, slots=True)
class Cost:
    """What a request took.

    Attributes:
        cpu_s: Processor time of the server and its children, until they are quiet again.
        kernel_s: That part of it which the kernel took.
        slowness: How many times as long a loop of Python took beside it as on an ordinary machine.
        memory_bytes: The highest memory of all of them together, above that before.
    """

    cpu_s: float
    kernel_s: float
    memory_bytes: int
    slowness: float = 1.0

    @property
    def ordinary_s(self) -> float:
        """The processor time that it would take on an ordinary machine."""
        return self.cpu_s / self.slowness


class CostMeter:
    """Measures requests to a server; only on Linux, where the peak can be reset."""

    def __init__(self, pid: int) -> None:
        """Measure the process and its children."""
        self._server = psutil.Process(pid)

    def measure(self, send: Callable[[], T]) -> tuple[T, Cost]:
        """Send a request and read its whole response; its cost until the server is quiet again."""
        self._settle()
        before = {one.pid: _rss_bytes(one.pid) for one in self._family()}
        for pid in before:
            _reset_peak(pid)
        slowness = measure_slowness()
        begun = self._cpu_times()
        answer = send()
        self._settle()
        ended = self._cpu_times()
        peaks = {}
        for one in self._family():
            with suppress(OSError):  # it has ended
                peaks[one.pid] = _peak_bytes(one.pid)
        total_s, kernel_s = (b - a for a, b in zip(begun, ended, strict=True))
        slowness = (slowness + measure_slowness()) / 2
        return answer, Cost(total_s, kernel_s, _count_growth(before, peaks), slowness)

    def measure_cpu_s(self) -> float:
        """Processor time of all that run and of those that have ended."""
        return self._cpu_times()[0]

    def _family(self) -> list[psutil.Process]:
        return [self._server, *self._server.children(recursive=True)]

    def _cpu_times(self) -> tuple[float, float]:
        """Of all that run and of those that have ended: in all, and in the kernel."""
        user_s = kernel_s = 0.0
        for one in self._family():
            with suppress(psutil.Error):
                times = one.cpu_times()
                user_s += times.user + times.children_user
                kernel_s += times.system + times.children_system
        return user_s + kernel_s, kernel_s

    def _settle(self) -> None:
        """Wait until the server does nothing any more, so that work after the response counts."""
        spent_s = self.measure_cpu_s()
        while True:
            time.sleep(_QUIET_S)
            now_s = self.measure_cpu_s()
            # On a busy machine it may only wait for its turn.
            if now_s - spent_s < 0.03 and not any(_is_running(one.pid) for one in self._family()):
                return
            spent_s = now_s


def measure_slowness() -> float:
    """How many times as long this machine takes now as an ordinary one; 1 on a faster one.

    A processor that is shared takes more time for the same work, by up to seven times.
    """
    begun_s, total = time.process_time(), 0
    for number in range(_LOOPS):
        total += number
    return max(1.0, (time.process_time() - begun_s) / _ORDINARY_S)


def _count_growth(before: dict[int, int], peaks: dict[int, int]) -> int:
    """How far processes rose above what they had; one that replaces another starts from its memory.

    The voice's workers are replaced after a while.
    """
    stayed = sum(peaks[pid] - bytes_ for pid, bytes_ in before.items() if pid in peaks)
    came = sum(bytes_ for pid, bytes_ in peaks.items() if pid not in before)
    went = sum(bytes_ for pid, bytes_ in before.items() if pid not in peaks)
    return max(0, stayed + max(0, came - went))


def _is_running(pid: int) -> bool:
    """Whether a thread of a process runs or waits for a processor."""
    for task in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):  # it has ended
            if task.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "R":
                return True
    return False


def _status_bytes(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    row = next(row for row in status.splitlines() if row.startswith(name))
    return int(row.split()[1]) * 1024


def _rss_bytes(pid: int) -> int:
    return _status_bytes(pid, "VmRSS")


def _peak_bytes(pid: int) -> int:
    return _status_bytes(pid, "VmHWM")


def _reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
