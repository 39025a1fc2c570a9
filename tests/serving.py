"""`serve` as a process of its own, for tests of what stands between a client and the routes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

START = "import sys; from studio.app import main; sys.exit(main(sys.argv[1:]))"
ROOT = Path(__file__).parents[1]
_START_TIMEOUT_S = 120


class Process(subprocess.Popen):
    """A process that remembers where it says what it says."""

    log: Path

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command(workspace: Path, *options: str) -> list[str]:
    fixed = ["serve", "--no-browser", "--backend", "draft", "--workspace", str(workspace)]
    return [sys.executable, "-c", START, *fixed, *options]


@contextlib.contextmanager
def serving(
    workspace: Path,
    *options: str,
    environ: Mapping[str, str] | None = None,
    wait_for: str = "The studio:",
) -> Iterator[tuple[httpx.Client, Process]]:
    """Start a server; a client of it, and its process. What it says is beside its workspace."""
    port = free_port()
    workspace.mkdir(parents=True, exist_ok=True)
    log = workspace.with_suffix(".log")
    with log.open("wb") as output:
        process = Process(
            command(workspace, "--port", str(port), *options),
            cwd=ROOT,
            env=os.environ | dict(environ or {}),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    process.log = log
    try:
        base_url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=base_url, follow_redirects=True, timeout=60) as client:
            _wait_until_up(process, wait_for)
            yield client, process
    finally:
        process.kill()
        process.wait()


def _wait_until_up(process: Process, wait_for: str) -> None:
    deadline_s = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline_s and process.poll() is None:
        if wait_for in process.said():
            return
        time.sleep(0.05)
    pytest.fail(f"the studio did not start:\n{process.said()}")
