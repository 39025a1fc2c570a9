"""`serve` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from serving import ROOT, command, serving

pytestmark = pytest.mark.slow


def test_a_name_and_password_guard_the_studios_own_routes(tmp_path: Path) -> None:
    with serving(tmp_path / "workspace", "--auth", "ida:secret") as (client, _):
        for path in ("/studio/state", "/studio/projects", "/studio/speakers/x/sample.wav"):
            assert client.get(path).status_code == 401, path
        assert client.post("/studio/projects", json={"text": "Ida: Hi."}).status_code == 401
        signed_in = client.post("/login", data={"username": "ida", "password": "secret"})
        assert signed_in.status_code == 200
        assert client.get("/studio/state").status_code == 200


@pytest.mark.skipif(os.name != "posix", reason="signals end a process otherwise on Windows")
def test_it_ends_cleanly_and_leaves_no_worker(tmp_path: Path) -> None:
    with serving(tmp_path / "workspace", fresh=True) as (client, process):
        project = client.post("/studio/projects", json={"text": "Ida: Hello.\n" * 2_000}).json()
        render = client.post(f"/studio/projects/{project['project_id']}/render", json={}).json()
        assert render["state"] == "running"
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        # They see their end of the pipe closed, and take a moment to.
        _, alive = psutil.wait_procs(workers, timeout=60)
        assert not alive


@pytest.fixture
def nowhere() -> Iterator[str]:
    """A port of this machine at which nobody answers."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{closed.getsockname()[1]}"


def no_network(folder: Path, nowhere: str) -> dict[str, str]:
    """Nothing outside is reached, whatever this machine has; and Gradio's tunnel isn't here yet."""
    return {"HTTPS_PROXY": f"http://{nowhere}", "HF_HOME": str(folder / "hub")}


def who_is_refused(folder: Path) -> None:
    """A tunnel program that says what Gradio's says when nobody answers it."""
    from gradio.tunneling import BINARY_FILENAME

    program = folder / "hub" / "gradio" / "frpc" / BINARY_FILENAME
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'login to server failed: connection refused'\n")
    program.chmod(0o755)


@pytest.mark.skipif(os.name != "posix", reason="the tunnel program of the test is a shell script")
@pytest.mark.parametrize("fails_at", ["asking for a server", "the download", "the connection"])
def test_a_tunnel_that_cannot_be_made_is_told_and_the_studio_runs_on(
    tmp_path: Path, nowhere: str, fails_at: str
) -> None:
    environ = no_network(tmp_path, nowhere)
    if fails_at != "asking for a server":
        environ["GRADIO_SHARE_SERVER_ADDRESS"] = nowhere
    if fails_at == "the connection":
        who_is_refused(tmp_path)
    with serving(tmp_path / "w", "--share", environ=environ, fresh=True) as (client, process):
        said = process.said()
        assert "The share link can't be made" in said
        assert "Traceback" not in said
        assert ("connection refused" in said) == (fails_at == "the connection")
        assert client.get("/healthz").status_code == 200
        assert client.get("/studio/state").status_code == 401  # a password was made
        entered = client.get(re.search(r"/studio/enter\?key=\S+", said)[0])
        assert entered.status_code == 200
        project = client.post("/studio/projects", json={"text": "Ida: Good evening."})
        assert project.status_code == 201
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how often a thread wakes")
def test_a_studio_that_nobody_uses_sleeps(tmp_path: Path) -> None:
    with serving(tmp_path / "workspace") as (client, process):
        assert client.get("/studio/state").status_code == 200
        # What begins with the first request may still be at work in the first of them.
        assert any(_wakes_a_second(process) < 400 for _ in range(8))


def _wakes_a_second(process: subprocess.Popen[bytes]) -> float:
    """How often all threads of a process are woken, over two seconds."""
    before = _wakes(process.pid)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=2.0)
    return (_wakes(process.pid) - before) / 2.0


def _wakes(pid: int) -> int:
    threads = Path(f"/proc/{pid}/task").glob("*/status")
    told = "".join(thread.read_text() for thread in threads)
    return sum(map(int, re.findall(r"^voluntary_ctxt_switches:\s+(\d+)", told, re.MULTILINE)))


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is a thing of POSIX systems")
def test_a_second_studio_leaves_the_files_that_the_first_is_making(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    making = [workspace / name / "made" / "scene.wav" for name in ("exports", "readings")]
    with serving(workspace) as (_, first):
        for path in making:
            path.parent.mkdir(parents=True)
            path.write_bytes(b"RIFF")
        with serving(workspace):
            assert all(path.exists() for path in making)
        first.kill()
        first.wait()
    with serving(workspace):
        assert not any(path.exists() for path in making), "of a studio that was killed"
