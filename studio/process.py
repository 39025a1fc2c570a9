"""What a process that serves many people for days sets for itself before its first thread."""

from __future__ import annotations

import ctypes
import sys

_THREADS_TAKE_TURNS_S = 0.0005
_HEAPS = 2
_M_ARENA_MAX = -8
"""As `malloc.h` of glibc names it."""


def settle_in() -> None:
    """Let threads make way for each other soon, and share few heaps.

    Python's own 5 ms between turns is what each answer would wait for every time a thread computes.
    And glibc gives threads up to eight heaps for each processor, every one of which keeps its own
    gaps: fifty people who write for ten minutes leave a third less behind in two.
    """
    sys.setswitchinterval(_THREADS_TAKE_TURNS_S)
    if sys.platform.startswith("linux"):
        set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has one that does nothing
        if set_option is not None:
            set_option(_M_ARENA_MAX, _HEAPS)
