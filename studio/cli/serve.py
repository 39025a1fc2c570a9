"""The arguments of `serve`, checked before the page's packages are imported."""

from __future__ import annotations

import argparse
import secrets
import socket
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from studio.cli.arguments import parse_auth
from studio.errors import SettingError

DEFAULT_HOST = "127.0.0.1"
SPACE_HOST = "0.0.0.0"  # noqa: S104 - a Space is reached through the platform's proxy only
GUEST = "guest"

# A port that was closed just before counts as free. On Windows SO_REUSEADDR means something else:
# it shares a port with the program that has it.
_BIND_OPTION: int = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The server's configuration from the environment.

    Attributes:
        auth: `NAME:PASSWORD` that the page asks for; None if it asks for nothing.
        api_key: The key that programs send; None if there is none.
        allowed_hosts: Host names by which the studio may be reached, besides its own.
        space_port: The port on which a Hugging Face Space serves; None if it isn't a Space.
        root_path: The path or the URL at which a reverse proxy has the studio; "" for the root.
        brings_voice: Whether a natural voice may be downloaded unasked.
        visitor_bytes: Most disk space of one visitor of a shared studio.
    """

    auth: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    space_port: int | None = None
    root_path: str = ""
    brings_voice: bool = False
    visitor_bytes: int = 2_000_000_000

    @property
    def is_space(self) -> bool:
        return self.space_port is not None

    @property
    def prefix(self) -> str:
        """The path under which the studio is reached, such as "/tts"; "" for the root."""
        return urlsplit(self.root_path).path

    @property
    def all_hosts(self) -> tuple[str, ...]:
        own = urlsplit(self.root_path).hostname
        return self.allowed_hosts if own is None else (*self.allowed_hosts, own)


@dataclass(frozen=True, slots=True)
class ServeArguments:
    """How to serve; with `host` and `port` None, Gradio and its variables choose.

    Attributes:
        brings_voice: Whether a natural voice is downloaded where there is none yet.
        made_password: Whether `auth` was generated, so that the terminal has to show it.
        config: The configuration from the environment.
    """

    host: str | None
    port: int | None
    share: bool
    auth: tuple[str, str] | None = field(repr=False)
    open_browser: bool
    brings_voice: bool = False
    made_password: bool = False
    config: ServerConfig = ServerConfig()

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches its port; others may come by a share link."""
        host = (self.host or DEFAULT_HOST).strip("[]")
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def is_open(self) -> bool:
        """Whether other machines reach it, and it asks for no password."""
        return not (self.is_local or self.auth or self.config.is_space)

    @property
    def is_shared(self) -> bool:
        return self.share or self.config.is_space

    @classmethod
    def check(cls, arguments: argparse.Namespace, config: ServerConfig) -> ServeArguments:
        """Check the arguments before the server starts.

        Raises:
            SettingError: The port is in use, or an option can't be used.
        """
        is_space = config.is_space
        host = arguments.host or (SPACE_HOST if is_space else None)
        port = arguments.port or config.space_port
        _check_address(host or DEFAULT_HOST, port)
        auth = _choose_auth(arguments.auth, config.auth)
        make_password = arguments.share and auth is None and not is_space
        return cls(
            host=host,
            port=port,
            share=arguments.share and not is_space,
            auth=(GUEST, secrets.token_urlsafe(12)) if make_password else auth,
            open_browser=not (arguments.no_browser or is_space),
            brings_voice=config.brings_voice and not arguments.no_voices,
            made_password=make_password,
            config=config,
        )


def _choose_auth(option: str | None, variable: str | None) -> tuple[str, str] | None:
    if option:
        return parse_auth(option)
    return parse_auth(variable, "TABLEREAD_AUTH", "=") if variable else None


def _check_address(host: str, port: int | None) -> None:
    """Bind a port, or any one: without a port Gradio tries 100, on whatever host."""
    if port is not None and not 1 <= port <= 65535:
        raise SettingError(f"--port {port} can't be used: it must be 1 to 65535.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port or 0, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, _BIND_OPTION, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", "no host has such a name")
        what = f"--host {host}" if port is None else f"{host} with --port {port}"
        raise SettingError(
            f"{what} can't be used ({reason}); choose another, or leave the option out."
        ) from error
