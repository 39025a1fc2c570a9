"""One speech server against two: the same dialog, rendered through the remote backend."""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import httpx

from studio.backends import registry
from studio.backends.options import OWN_VOICES, BackendOptions, RemoteOptions
from studio.dialog.model import Dialog, Speech
from studio.engine.job import JobSummary
from studio.errors import StudioError
from studio.services.studio import RenderOptions, Studio, StudioOptions

StartServers = Callable[[str, int], AbstractContextManager[tuple[str, ...]]]
"""Starts as many servers that speak with a backend, and gives their base URLs."""

_ROOT = Path(__file__).resolve().parents[1]
_START_S = 120.0
_IN_FLIGHT = 2  # one is spoken, the next one waits at the server's door
_SEED = 7
_TEXT = (
    "The harbour was quiet when boat number {} came in. I counted eleven lamps along the pier, "
    "and every one of them was lit. Then somebody has been here since the storm, and they knew "
    "where to look. Did you bring the key, or shall we try the window again?"
)


def remote_rows(
    lines: int, runs: int, backend_name: str, start: StartServers | None = None
) -> Iterator[dict[str, object]]:
    """Rows of the table, for one server and for two.

    Args:
        lines: Of the dialog, about 240 characters each.
        runs: Counted renders for each row, of which the median is taken; one more warms up.
        backend_name: What the servers speak with.
        start: Makes the servers; None for studios of our own, each of which speaks one line at a
            time, as a machine with one graphics card for it does.

    Raises:
        StudioError: A server doesn't start, or a line fails.
    """
    dialog = Dialog(tuple(Speech(f"Voice {idx % 4}", _TEXT.format(idx)) for idx in range(lines)))
    with (
        (start or own_servers)(backend_name, 2) as urls,
        tempfile.TemporaryDirectory(prefix="tableread-bench-") as folder,
    ):
        alone_s = 0.0
        for used in (urls[:1], urls):
            summaries = _render_server(dialog, used, runs, Path(folder) / str(len(used)))
            wall_s = statistics.median(summary.wall_s for summary in summaries)
            alone_s = alone_s or wall_s
            yield {
                "servers": len(used),
                "lines": lines,
                "audio s": f"{summaries[0].audio_s:.0f}",
                "in flight": summaries[0].max_in_flight,
                "wall s": f"{wall_s:.2f}",
                "times as fast": f"{alone_s / wall_s:.2f}",
            }


@contextmanager
def own_servers(backend_name: str, count: int) -> Iterator[tuple[str, ...]]:
    """Studios of our own in other processes, each with a workspace of its own."""
    with ExitStack() as stack:
        started = [stack.enter_context(studio_process(backend_name)) for _ in range(count)]
        for url, process in started:
            wait_until_up(url, process)
        yield tuple(url for url, _ in started)


@contextmanager
def studio_process(
    backend_name: str, own_voices: Path | None = None
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A studio that serves `/v1` at a URL, in a new workspace with somebody's own voices."""
    with tempfile.TemporaryDirectory(prefix="tableread-bench-") as folder:
        if own_voices is not None and own_voices.is_dir():
            shutil.copytree(own_voices, Path(folder) / OWN_VOICES)
        port = _free_port()
        command = [sys.executable, "-m", "studio", "serve", "--no-browser", "--port", str(port)]
        command += ["--backend", backend_name, "--workspace", folder]
        settings = {"TTS_MAX_CONCURRENCY": "1", "OMP_NUM_THREADS": "1", "TTS_REMOTE_URLS": ""}
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=os.environ | settings,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield f"http://127.0.0.1:{port}/v1", process
        finally:
            process.terminate()
            process.wait()


def _render_server(
    dialog: Dialog, urls: tuple[str, ...], runs: int, workspace: Path
) -> list[JobSummary]:
    options = BackendOptions(remote=RemoteOptions(urls=urls, concurrency=_IN_FLIGHT))
    studio_options = StudioOptions(workspace, "remote")
    with Studio.open(studio_options, lambda name: registry.create(name, options)) as studio:
        studio.engine.load(studio.backend_name)
        return [_render(studio, dialog) for _ in range(runs + 1)][1:]


def _render(studio: Studio, dialog: Dialog) -> JobSummary:
    job = studio.render(dialog, RenderOptions(seed=_SEED))
    for _ in job.events.follow():
        pass
    if job.list_failures():
        raise StudioError(job.list_failures()[0].message)
    return job.summarize()


def wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers; raises a StudioError if it doesn't."""
    deadline_s = time.monotonic() + _START_S
    with httpx.Client(timeout=5) as client:  # one: each reads all certificates
        while time.monotonic() < deadline_s and process.poll() is None:
            try:
                if client.get(f"{url}/models").is_success:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
    raise StudioError("A speech server for the benchmark didn't start.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
