"""Connections that send nothing, or too slowly, keep nobody out; who works is never refused."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from serving import serving

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.slow

HALF_SENT = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-More: "
HEARTBEAT = b"GET /gradio_api/heartbeat/x HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.contextmanager
def opened(base_url: str, count: int, data: bytes, host: str = "") -> Iterator[list[socket.socket]]:
    """That many connections, each of which sends something once and then nothing more."""
    parts = urlsplit(base_url)
    assert parts.hostname is not None
    with contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(count):
            one = stack.enter_context(socket.socket())
            one.settimeout(30)
            if host:
                one.bind((host, 0))
            one.connect((parts.hostname, parts.port))
            with contextlib.suppress(OSError):  # closed already, to make room for another
                one.sendall(data)
            sockets.append(one)
        yield sockets


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4_000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip("this process may not open as many sockets")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def page_s(client: httpx.Client) -> float:
    """How long the page takes on a connection of its own."""
    with httpx.Client(base_url=client.base_url, timeout=30) as newcomer:
        began_s = time.monotonic()
        answer = newcomer.get("/")
        took_s = time.monotonic() - began_s
    assert answer.status_code == 200
    return took_s


KINDS = {"silent": b"", "half_sent": HALF_SENT, "heartbeats": HEARTBEAT}


def test_1100_silent_connections_leave_the_page_answering(tmp_path: Path) -> None:
    with serving(tmp_path / "workspace", most_files=1_024) as (client, process):
        page_s(client)
        project = client.post("/studio/projects", json={"name": "x", "text": "Ida: Hello."}).json()
        path = f"/studio/projects/{project['project_id']}/events"
        events = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        for name, data in (KINDS | {"events": events}).items():
            with opened(str(client.base_url), 1_100, data):
                took_s = [page_s(client) for _ in range(3)]
            print(f"1,100 {name}: the page takes {max(took_s):.3f} s at most")
            assert min(took_s) < 1
        assert "Traceback" not in process.said()
        assert process.said().count("accepted for now") <= 1
