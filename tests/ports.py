"""Ports for servers that tests start."""

from __future__ import annotations

import socket
import sys

_held: list[socket.socket] = []


def reserve_port() -> int:
    """A port that nobody else gets until this process ends; what is told it can listen there.

    The kernel gives a port that a socket is bound to neither to another one that asks for any nor
    to an outgoing connection. On Linux two may be bound to it if they allow it, until one listens.
    Elsewhere the port is only likely to stay free.
    """
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    port: int = probe.getsockname()[1]
    if sys.platform == "linux":
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _held.append(probe)
    else:
        probe.close()
    return port
