"""The end of a server by Ctrl+C or SIGTERM."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import sys
import threading
from types import FrameType

EXIT_INTERRUPTED = 130
_END_S = 2.0

_STOPPING = "Stopping: running work is ended. Press Ctrl+C again to stop at once."


def wait_for_interrupt() -> None:
    """Wait for Ctrl+C or SIGTERM; a second one ends the process at once."""
    is_over = False

    def end(_signal: int, _frame: FrameType | None) -> None:
        nonlocal is_over
        if is_over:
            # Without any cleanup, which may be what hangs. Edits, takes and records on disk are
            # whole or absent at any time.
            os._exit(EXIT_INTERRUPTED)
        is_over = True

    # A handler runs in this thread alone, and a lock that it waits for is woken only by a signal
    # that the system gave to it. Whichever thread has the signal writes to the socket.
    reader, writer = socket.socketpair()
    with reader, writer:
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, end)
        signal.signal(signal.SIGTERM, end)
        while not is_over:
            reader.recv(1)
        signal.set_wakeup_fd(before)
    sys.stderr.write(f"{_STOPPING}\n")
    sys.stderr.flush()


def end_in_time() -> None:
    """End the process with 0, soon, even if a thread that nobody can stop is then at work."""
    end = threading.Timer(_END_S, os._exit, (0,))
    end.daemon = True
    end.start()
    atexit.register(end.cancel)  # called once all threads have ended
