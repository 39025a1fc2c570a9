"""The process in which a word aligner works, among the others of a process of tests."""

from __future__ import annotations

import psutil


def find_aligner() -> psutil.Process:
    """The one that was started last: those of former tests may not be gone yet."""
    ours = [
        one for one in psutil.Process().children() if "studio.hearing.word_aligner" in line(one)
    ]
    return max(ours, key=psutil.Process.create_time)


def line(process: psutil.Process) -> list[str]:
    """Its command line; of one that has ended meanwhile nothing."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []
