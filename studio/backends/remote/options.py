"""Which servers there are, and how they may be used."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """The same for all servers.

    Attributes:
        urls: Base URLs, with or without `/v1` at the end; they may hold a name and password.
        model: The model to ask for; None for what each server has.
        key: Sent as bearer token; None where none is needed.
        concurrency: Requests in flight on each server, from 1.
        timeout_s: For one try at one line, from the request to its last byte.
        retry_s: Pause before the second try at a line; later ones are longer.
        patience_s: How long lines wait while no server answers; a server with a large model takes
            minutes to start again.
    """

    urls: tuple[str, ...] = field(default=(), repr=False)
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    concurrency: int = 4
    timeout_s: float = 120.0
    retry_s: float = 0.2
    patience_s: float = 180.0
