"""The end of a server by Ctrl+C or SIGTERM."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

EXIT_INTERRUPTED = 130

_STOPPING = "Stopping: running work is ended. Press Ctrl+C again to stop at once."


def wait_for_interrupt() -> None:
    """Wait for Ctrl+C or SIGTERM; a second one ends the process at once."""
    ended = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        if ended.is_set():
            # Without any cleanup, which may be what hangs. Edits, takes and records on disk are
            # whole or absent at any time.
            os._exit(EXIT_INTERRUPTED)
        ended.set()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    # A wait without an end can't be interrupted by a signal on Windows.
    while not ended.wait(timeout=0.5 if os.name == "nt" else None):
        pass
    sys.stderr.write(f"{_STOPPING}\n")
    sys.stderr.flush()
