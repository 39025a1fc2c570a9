from __future__ import annotations

import io

from studio.setup.launcher import Console
from studio.setup.pip import InstallProgress


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _console() -> tuple[Console, io.StringIO, Clock]:
    stream, clock = io.StringIO(), Clock()
    return Console(stream, clock), stream, clock


def test_new_messages_come_at_once_and_details_now_and_then():
    console, stream, clock = _console()
    console.show(InstallProgress("Downloading.", 0.1, "a"))
    console.show(InstallProgress("Downloading.", 0.2, "b"))
    clock.now_s += 6
    console.show(InstallProgress("Downloading.", 0.3, "c"))
    console.show(InstallProgress("Installing."))
    assert stream.getvalue().splitlines() == [
        "Downloading. 10% (a)",
        "Downloading. 30% (c)",
        "Installing.",
    ]


def test_the_same_step_is_not_printed_again():
    console, stream, clock = _console()
    for _ in range(3):
        console.show(InstallProgress("Installing.", 0.7, "x"))
        clock.now_s += 10
    assert stream.getvalue() == "Installing. 70% (x)\n"


def test_the_summary_counts_the_seconds_of_every_stage():
    console, stream, clock = _console()
    for took_s in (2, 3):
        with console.stage("studio part"):
            clock.now_s += took_s
    with console.stage("browser"):
        clock.now_s += 0.5
    console.summary()
    assert stream.getvalue() == "Set up: studio part 5.0 s, browser 0.5 s.\n"


def test_no_stage_no_summary():
    console, stream, _ = _console()
    console.summary()
    assert stream.getvalue() == ""
