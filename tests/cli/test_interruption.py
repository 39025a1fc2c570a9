"""Ctrl+C, once and twice, on processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="it signals processes as POSIX does"),
]

ROOT = Path(__file__).parents[2]

# Stands for a studio whose end hangs, say in a download that doesn't answer.
HANGS = """
import signal, threading, time
from studio.server.interrupt import wait_for_interrupt

def tell():
    # Who starts a process in the background may let it begin with Ctrl+C ignored.
    before = (signal.default_int_handler, signal.SIG_IGN, signal.SIG_DFL)
    while signal.getsignal(signal.SIGINT) in before:
        time.sleep(0.01)
    print("runs", flush=True)

threading.Thread(target=tell).start()
wait_for_interrupt()
threading.Event().wait()
"""

# A thread that starts a process as the signal comes may be given it, in place of the main thread.
ELSEWHERE = """
import signal, threading, time
from studio.server.interrupt import wait_for_interrupt

def be_told():
    print("runs", flush=True)
    time.sleep(1)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    threading.Event().wait()

threading.Thread(target=be_told, daemon=True).start()
wait_for_interrupt()
"""

# Stands for the studio under its launcher: takes a second to end in order.
PARENT = """
import os, sys
from studio.setup.launcher import run_out
sys.exit(run_out([sys.executable, "-c", sys.argv[1]], env=os.environ))
"""
CHILD = """
import signal, sys, time
def end(*_):
    time.sleep(1)
    sys.exit(5)
signal.signal(signal.SIGINT, end)
print("runs", flush=True)
signal.pause()
"""


@contextmanager
def begun(script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "runs\n"
            yield process
        finally:
            process.kill()


def test_the_first_one_is_answered_and_the_second_ends_what_hangs() -> None:
    with begun(HANGS) as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Stopping")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130


def test_one_that_another_thread_is_given_is_answered_as_well() -> None:
    with begun(ELSEWHERE) as process:
        assert process.wait(timeout=60) == 0


def test_the_launcher_waits_for_a_studio_that_ends_in_order() -> None:
    with begun(PARENT, CHILD) as process:
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) == 5
