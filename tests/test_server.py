"""`serve` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from serving import ROOT, command, serving


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


def test_a_tunnel_that_cannot_be_made_is_told_and_the_studio_runs_on(tmp_path: Path) -> None:
    # A closed port of this machine stands in for the tunnel's server.
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"127.0.0.1:{closed.getsockname()[1]}"
        environ = {"GRADIO_SHARE_SERVER_ADDRESS": nowhere}
        with serving(tmp_path / "w", "--share", environ=environ, wait_for="The studio:") as (
            client,
            process,
        ):
            said = process.said()
            assert "The share link can't be made" in said
            assert client.get("/healthz").status_code == 200
            assert client.get("/studio/state").status_code == 401  # a password was made
            entered = client.get(re.search(r"/studio/enter\?key=\S+", said)[0])
            assert entered.status_code == 200
            assert "password" not in said.lower()


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
