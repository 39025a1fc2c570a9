"""`serve` as a process of its own, for tests of what stands between a client and the routes.

Where the start itself isn't looked at, the process is forked from one that has imported the studio:
the imports are most of what a start costs.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.forkserver
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import httpx
import pytest
from ports import reserve_port

START = "import sys; from studio.app import main; sys.exit(main(sys.argv[1:]))"
ROOT = Path(__file__).parents[1]
_CLOSED = "--no-browser"
_START_TIMEOUT_S = 120


_FORKS = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
_FORKS.set_forkserver_preload(["serving", "studio.app", "studio.server.studio_server"])


class Process:
    """A process that remembers where it says what it says; used as one of `subprocess`."""

    def __init__(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        log: Path,
        *,
        script: Path | None = None,
        most_files: int | None = None,
    ) -> None:
        """Start the studio, or a script in its place, with arguments of its own."""
        self.log = log
        self._process = _FORKS.Process(
            target=_run, args=(script, list(arguments), dict(environ), log, most_files)
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("serve", timeout)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


class FreshProcess(subprocess.Popen):
    """The same from the interpreter's start on, where just that is looked at."""

    log: Path

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")


def _run(
    script: Path | None,
    arguments: list[str],
    environ: dict[str, str],
    log: Path,
    most_files: int | None,
) -> None:
    """Be the process that a shell would have started."""
    if most_files is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(ROOT)
    if script is not None:
        sys.argv = [str(script), *arguments]
        runpy.run_path(str(script), run_name="__main__")
        return
    from studio.app import main

    sys.argv = ["-c", *arguments]
    sys.exit(main(arguments))


def end_forks() -> None:
    """End the process from which servers are forked; nobody would wait for it otherwise."""
    if sys.platform == "linux":
        multiprocessing.forkserver._forkserver._stop()


def _arguments(workspace: Path, *options: str) -> list[str]:
    fixed = ["serve", _CLOSED, "--backend", "draft", "--workspace", str(workspace)]
    return [*fixed, *options]


def command(workspace: Path, *options: str) -> list[str]:
    return [sys.executable, "-c", START, *_arguments(workspace, *options)]


@contextlib.contextmanager
def serving(
    workspace: Path,
    *options: str,
    environ: Mapping[str, str] | None = None,
    wait_for: str = "The studio:",
    fresh: bool = False,
    opens: bool = False,
    most_files: int | None = None,
) -> Iterator[tuple[httpx.Client, Process | FreshProcess]]:
    """Start a server; a client of it, and its process. What it says is beside its workspace.

    Args:
        fresh: With an interpreter of its own, for what is read or done while modules are imported.
        opens: Whether it opens the page in a browser, as it does for people.
        most_files: Its limit of open files, which it can't raise.
    """
    port = reserve_port()
    workspace.mkdir(parents=True, exist_ok=True)
    log = workspace.with_suffix(".log")
    log.write_bytes(b"")
    options = ("--port", str(port), *options)
    settings = os.environ | dict(environ or {})
    process: Process | FreshProcess
    if fresh:
        with log.open("ab") as output:
            process = FreshProcess(
                [one for one in command(workspace, *options) if not (opens and one == _CLOSED)],
                cwd=ROOT,
                env=settings,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        process.log = log
    else:
        process = Process(_arguments(workspace, *options), settings, log, most_files=most_files)
    try:
        base_url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=base_url, follow_redirects=True, timeout=60) as client:
            _wait_until_up(process, wait_for)
            yield client, process
    finally:
        process.kill()
        process.wait()


def _wait_until_up(process: Process | FreshProcess, wait_for: str) -> None:
    deadline_s = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline_s and process.poll() is None:
        if wait_for in process.said():
            return
        time.sleep(0.05)
    pytest.fail(f"the studio did not start:\n{process.said()}")
