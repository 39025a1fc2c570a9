"""`serve` as a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

START = "import sys; from studio.app import main; sys.exit(main(sys.argv[1:]))"
ROOT = Path(__file__).parents[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command(workspace: Path, *options: str) -> list[str]:
    fixed = ["serve", "--no-browser", "--backend", "draft", "--workspace", str(workspace)]
    return [sys.executable, "-c", START, *fixed, *options]


@contextlib.contextmanager
def serving(workspace: Path, *options: str) -> Iterator[tuple[httpx.Client, subprocess.Popen]]:
    port = free_port()
    process = subprocess.Popen(command(workspace, "--port", str(port), *options), cwd=ROOT)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", follow_redirects=True) as client:
            _wait_until_up(client, process)
            yield client, process
    finally:
        process.kill()
        process.wait()


def _wait_until_up(client: httpx.Client, process: subprocess.Popen) -> None:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s and process.poll() is None:
        try:
            client.get("/studio/state")
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the studio did not start")


def test_a_name_and_password_guard_the_studios_own_routes(tmp_path: Path) -> None:
    with serving(tmp_path / "workspace", "--auth", "ida:secret") as (client, _):
        for path in ("/studio/state", "/studio/jobs/x", "/studio/speakers/x/sample.wav"):
            assert client.get(path).status_code == 401, path
        assert client.post("/studio/script", json={"text": "Ida: Hi."}).status_code == 401
        signed_in = client.post("/login", data={"username": "ida", "password": "secret"})
        assert signed_in.status_code == 200
        assert client.get("/studio/state").status_code == 200


@pytest.mark.skipif(os.name != "posix", reason="signals end a process otherwise on Windows")
def test_it_ends_cleanly_and_leaves_no_worker(tmp_path: Path) -> None:
    import psutil

    with serving(tmp_path / "workspace") as (client, process):
        job = client.post("/studio/jobs", json={"text": "Ida: Hello.\n" * 200}).json()
        assert job["state"] == "running"
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        assert not any(worker.is_running() for worker in workers)


def test_a_new_workspace_has_the_speakers_of_the_sample_scene(tmp_path: Path) -> None:
    with serving(tmp_path / "workspace") as (client, _):
        speakers = client.get("/studio/state").json()["speakers"]
        assert [speaker["name"] for speaker in speakers] == ["Captain", "Maud", "Pip"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "70000"], "1 to 65535"),
        (["--auth", "ida"], "NAME:PASSWORD"),
        (["--host", "no.such.host.invalid", "--port", "7999"], "--port"),
    ],
)
def test_an_option_that_cannot_be_used_ends_with_one_message(
    tmp_path: Path, options: list[str], message: str
) -> None:
    done = subprocess.run(
        command(tmp_path / "workspace", *options), cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_port_in_use_ends_with_one_message(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            command(tmp_path / "workspace", "--port", port),
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 2
    assert f"port {port} can't be used" in done.stderr
    assert "--port" in done.stderr
