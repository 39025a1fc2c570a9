"""What one request costs a server that runs as a process of its own: processor time and memory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import psutil

T = TypeVar("T")

_QUIET_S = 0.25

_YARDSTICK = """
import select, sys, time

def count():
    total = 0
    for number in range(300_000):
        total += number

spent_s, counts = 0.0, 0
while counts < 10 or not select.select([sys.stdin], [], [], 4 * spent_s / counts)[0]:
    begun_s = time.process_time()
    count()
    spent_s += time.process_time() - begun_s
    counts += 1
print(spent_s / counts)
"""
"""Counts a fifth of the time, so that it hardly slows what it runs beside."""

_ORDINARY_S = 0.0055  # a count, with CPython 3.11 where the figures of the docs are from


@dataclass(frozen=True, slots=True)
class Cost:
    """What a request took.

    Attributes:
        cpu_s: Processor time of the server and its children, until they are quiet again.
        kernel_s: That part of it which the kernel took.
        slowness: How many times as long Python took meanwhile as on an ordinary machine.
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


class Yardstick:
    """A process that tells how slow the machine is meanwhile.

    A processor that is shared takes up to seven times as long for the same work, and that changes
    from second to second.

    Attributes:
        slowness: How many times as long Python took as on an ordinary machine; 1 on a faster one.
    """

    slowness = 1.0

    def __enter__(self) -> Self:
        """Start counting."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _YARDSTICK],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it and read what it counted."""
        counted_s, _ = self._process.communicate()
        self.slowness = max(1.0, float(counted_s) / _ORDINARY_S)


class CostMeter:
    """Measures requests to a server; only on Linux, where the peak can be reset."""

    def __init__(self, pid: int) -> None:
        """Measure the process and its children."""
        self._server = psutil.Process(pid)

    def measure(self, send: Callable[[], T]) -> tuple[T, Cost]:
        """Send a request and read its whole response; its cost until the server is quiet again."""
        self._settle()
        before = {}
        for one in self._family():
            with suppress(OSError):  # it has ended
                before[one.pid] = _rss_bytes(one.pid)
                _reset_peak(one.pid)
        with Yardstick() as yardstick:
            begun = self._cpu_times()
            answer = send()
            self._settle()
            ended = self._cpu_times()
        peaks = {}
        for one in self._family():
            with suppress(OSError):  # it has ended
                peaks[one.pid] = _peak_bytes(one.pid)
        total_s, kernel_s = (b - a for a, b in zip(begun, ended, strict=True))
        return answer, Cost(total_s, kernel_s, _count_growth(before, peaks), yardstick.slowness)

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
