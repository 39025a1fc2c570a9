"""Work on untrusted files in a child process with bounded memory and time.

What reads a recording or a document is a large library. Here a file that makes it crash, hang, or
fill the memory or the disk ends a child, and nothing else. The child ends when nobody waits for it
any more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from studio.errors import Cancelled


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """The resources that a child process may use.

    Attributes:
        address_bytes: Address space, of which libraries reserve far more than they use; resident
            memory stays below a fifth of it.
        cpu_s: Seconds of work, in twice as many by the clock.
        file_bytes: Of the largest file that it writes: ten minutes of sound take 58 MB.
    """

    address_bytes: int = 1_500_000_000
    cpu_s: int = 60
    file_bytes: int = 70_000_000


DEFAULT_PROCESS_LIMITS = ProcessLimits()

_LOOK_S = 0.2

is_abandoned: ContextVar[Callable[[], bool]] = ContextVar("is_abandoned", default=lambda: False)
"""Whether nobody waits any more for what is read here; asked now and then, in that thread.

The server sets it for each request. Between the two lie the library, the cast and the projects,
which know no clients.
"""


def run_guarded(module: str, order: Iterable[bytes], timeout_s: float) -> int | None:
    """Let a child do an order, which it reads from standard input.

    Args:
        module: What it runs; it calls `apply_limits` first.
        order: Of any form; its parts one after the other.
        timeout_s: By the clock.

    Returns:
        Its exit code; None if it took too long.

    Raises:
        Cancelled: Nobody waits for it any more.
    """
    ends_s, is_gone = time.monotonic() + timeout_s, is_abandoned.get()
    with subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=Path(__file__).parents[2],
        env=build_child_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as child:
        try:
            assert child.stdin is not None
            with suppress(OSError), child.stdin:  # it may have ended already
                child.stdin.writelines(order)
            while child.poll() is None and time.monotonic() < ends_s:
                if is_gone():
                    raise Cancelled("Nobody waits for this file any more.")
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_LOOK_S)
            return child.returncode
        finally:
            child.kill()


def build_child_environment() -> dict[str, str]:
    """The variables that Python needs, without keys or tokens; libraries get one thread each."""
    kept = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "HOME", "LANG", "LD_LIBRARY_PATH")
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    given = {name: os.environ[name] for name in kept if name in os.environ}
    return given | threads | {"PYTHONUTF8": "1"}


def apply_limits(bounds: ProcessLimits) -> None:
    """Limit this process's resources, where the system can."""
    with suppress(ImportError):
        import resource  # noqa: PLC0415 - there is none on Windows

        for limit, most in (
            (resource.RLIMIT_AS, bounds.address_bytes),
            (resource.RLIMIT_CPU, bounds.cpu_s),
            (resource.RLIMIT_FSIZE, bounds.file_bytes),
            (resource.RLIMIT_CORE, 0),
        ):
            # Some systems know a limit but refuse to set it; the reader's own limits hold there.
            with suppress(OSError, ValueError):
                resource.setrlimit(limit, (most, most))
