"""Starting and steering the speech servers of the tests."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from ports import reserve_port

ROOT = Path(__file__).resolve().parents[2]
START_S = 90


class SpeechServer:
    """A server's process and its control."""

    def __init__(self, kind: str, port: int | None = None) -> None:
        self.port = port or reserve_port()
        self.control = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", timeout=30, trust_env=False
        )
        script = Path(__file__).with_name("remote_server.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), str(self.port), kind],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stderr=subprocess.DEVNULL,
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def wait(self) -> None:
        deadline_s = time.monotonic() + START_S
        while time.monotonic() < deadline_s and self.process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                self.control.get("/seen")
                return
            time.sleep(0.05)
        raise AssertionError("the speech server did not start")

    def faults(self, *faults: dict[str, Any]) -> None:
        self.control.post("/faults", json=list(faults)).raise_for_status()

    def set(self, path: str, **params: Any) -> None:
        self.control.post(path, params=params).raise_for_status()

    def reset(self) -> None:
        self.set("/reset")

    def seen(self) -> dict[str, Any]:
        return self.control.get("/seen").json()

    @property
    def requests(self) -> list[dict[str, Any]]:
        return self.seen()["requests"]

    def wait_for(self, **wanted: int) -> None:
        """Wait until the server tells these figures."""
        deadline_s = time.monotonic() + START_S
        while time.monotonic() < deadline_s:
            seen = self.seen()
            if all(seen[name] == value for name, value in wanted.items()):
                return
            time.sleep(0.02)
        raise AssertionError(f"the speech server never told {wanted}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        self.control.close()


@contextlib.contextmanager
def serving(*kinds: str) -> Iterator[list[SpeechServer]]:
    """Servers of these kinds, started side by side."""
    servers = [SpeechServer(kind) for kind in kinds]
    try:
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.close()
