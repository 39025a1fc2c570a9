"""nginx in front of a studio, as a process of its own."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ports import reserve_port

from studio.setup.nginx import find_nginx

NGINX = find_nginx()
needs_nginx = pytest.mark.skipif(
    NGINX is None, reason="no nginx found; `launch.py test` unpacks Debian's where it may"
)

STRIPS = "proxy_pass http://{studio}/; proxy_set_header Host $http_host;"
"""The path under which the studio is goes no further than the proxy."""

KEEPS = "proxy_pass http://{studio}; proxy_set_header X-Forwarded-Host $http_host;"
"""The studio gets the path, and its own name as Host."""

_START_TIMEOUT_S = 30
_CONFIG = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location {path}/ {{
            {forward}
            client_max_body_size 0;
        }}
    }}
}}
"""


@contextlib.contextmanager
def proxying(folder: Path, studio: str, path: str, forward: str) -> Iterator[str]:
    """Start nginx in front of a studio; the address that browsers get.

    Args:
        folder: For what nginx writes.
        studio: Its host and port.
        path: Below which the proxy has it, such as "/tts".
        forward: `STRIPS` or `KEEPS`, or further lines of a location.
    """
    folder.mkdir(parents=True)
    port = reserve_port()
    config = folder / "nginx.conf"
    forward = forward.format(studio=studio)
    config.write_text(_CONFIG.format(folder=folder, port=port, path=path, forward=forward))
    errors = folder / "error.log"
    command = [str(NGINX), "-p", str(folder), "-c", str(config), "-e", str(errors)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_up(process, port, errors)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait_until_up(process: subprocess.Popen[bytes], port: int, errors: Path) -> None:
    deadline_s = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline_s and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    pytest.fail(f"nginx did not start:\n{errors.read_text() if errors.exists() else ''}")
