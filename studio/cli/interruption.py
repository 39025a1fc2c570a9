"""Ctrl+C: the first one ends the studio in order, the second one at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType

EXIT_INTERRUPTED = 130

_STOPPING = "Stopping: what runs is brought to an end. Press Ctrl+C again to stop at once."


def until_interrupted() -> None:
    """Wait for Ctrl+C or a request to end; from then on the next one ends the process."""
    ended = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        if ended.is_set():
            # Nothing is cleaned up: what hangs there is what the second one is for. Edits, takes
            # and records are on the disk by then, each of them whole or not there.
            os._exit(EXIT_INTERRUPTED)
        ended.set()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    # A bare wait can't be interrupted by a signal on Windows.
    while not ended.wait(timeout=0.5):
        pass
    print(_STOPPING, file=sys.stderr, flush=True)
