"""The end of a server by Ctrl+C or SIGTERM."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from types import FrameType

EXIT_INTERRUPTED = 130
_END_S = 2.0

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


def end_in_time() -> None:
    """End the process with 0, soon, even if a thread that nobody can stop is then at work."""
    end = threading.Timer(_END_S, os._exit, (0,))
    end.daemon = True
    end.start()
    atexit.register(end.cancel)  # called once all threads have ended
