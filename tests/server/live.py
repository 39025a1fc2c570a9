"""Real servers in a thread of this process, for clients that need an address."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

START_TIMEOUT_S = 60


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()

    async def startup(self, sockets=None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    def install_signal_handlers(self) -> None:
        """Signals belong to pytest."""


@contextmanager
def live(app: ASGIApp, **options: Any) -> Iterator[str]:
    """Serve an application, with options of uvicorn; gives its base address, without a slash."""
    fixed = {"port": 0, "log_level": "error", "lifespan": "off", "timeout_keep_alive": 60}
    config = uvicorn.Config(app, **fixed, **options)
    server = _Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert server.is_up.wait(START_TIMEOUT_S), "the server did not start"
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(START_TIMEOUT_S)
