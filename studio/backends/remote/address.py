"""Where a speech server is, and how it may be called in messages and logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base URL.

    Attributes:
        url: Ends in the API's version, as in "http://127.0.0.1:8091/v1"; holds no credentials.
        credentials: Name and password that stood in the URL.
    """

    url: str
    credentials: tuple[str, str] | None = field(default=None, repr=False)

    @classmethod
    def read(cls, text: str) -> Address:
        """Read a base URL as a person writes it: with or without `/v1`, slash or password."""
        parts = urlsplit(text)
        place = parts.netloc.rpartition("@")[2]
        path = parts.path.rstrip("/") or "/v1"
        credentials = (unquote(parts.username or ""), unquote(parts.password or ""))
        return cls(
            urlunsplit((parts.scheme, place, path, "", "")),
            credentials if "@" in parts.netloc else None,
        )

    @property
    def shown(self) -> str:
        """The name in messages: host and port."""
        return urlsplit(self.url).netloc

    def at(self, path: str) -> str:
        """The URL of a path below the version, such as "audio/speech"."""
        return f"{self.url}/{path}"

    def documents(self) -> tuple[str, ...]:
        """Where the server may describe its API: beside the version, and below it."""
        return f"{self.url.rpartition('/')[0]}/openapi.json", self.at("openapi.json")
