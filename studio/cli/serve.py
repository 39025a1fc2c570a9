"""The arguments of `serve`, checked before the page's packages are imported."""

from __future__ import annotations

import argparse
import socket
from dataclasses import dataclass

from studio.cli.arguments import parse_auth
from studio.errors import SettingError

DEFAULT_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ServeArguments:
    """How to serve; `host` and `port` None for Gradio's own choice and its variables."""

    host: str | None
    port: int | None
    share: bool
    auth: tuple[str, str] | None
    open_browser: bool

    @classmethod
    def check(cls, arguments: argparse.Namespace) -> ServeArguments:
        """Check all that can be checked before the server starts.

        Raises:
            SettingError: The port is in use, or an option can't be used.
        """
        if arguments.port is not None:
            _check_port(arguments.host or DEFAULT_HOST, arguments.port)
        return cls(
            host=arguments.host,
            port=arguments.port,
            share=arguments.share,
            auth=parse_auth(arguments.auth) if arguments.auth else None,
            open_browser=not arguments.no_browser,
        )


def _check_port(host: str, port: int) -> None:
    if not 1 <= port <= 65535:
        raise SettingError(f"--port {port} can't be used: it must be 1 to 65535.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise SettingError(
            f"{host} port {port} can't be used ({error.strerror}); choose another with --port, "
            "or leave it out to take the first free one from 7860 on."
        ) from error
