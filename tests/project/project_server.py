"""The studio's routes on servers of their own, without the page.

For each line `[workspace, port]` of its standard input it forks a server and prints its process
id: the process that the kill tests end. What it needs is imported once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from studio.backends.registry import create
from studio.errors import StudioError
from studio.server.error_responses import answer_error
from studio.server.route_table import studio_routes
from studio.services.studio import Studio, StudioOptions
from studio.setup.models_install import NothingToSetUp

ROOT = Path(__file__).parents[2]


def main(workspace: Path, port: int) -> None:
    with Studio.open(StudioOptions(workspace, "draft"), create) as studio:
        studio.projects.resume()
        routes = studio_routes(
            lambda _: studio, NothingToSetUp(), guard=lambda: None, assets=ROOT / "assets"
        )
        app = FastAPI(routes=routes, exception_handlers={StudioError: answer_error})
        uvicorn.run(app, port=port, log_level="warning")


def reap(*_: object) -> None:
    """Take note of every server that has ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, reap)
    for asked in sys.stdin:
        folder, port = json.loads(asked)
        if pid := os.fork():
            print(pid, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDWR), sys.stdin.fileno())
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        main(Path(folder), port)
        break
