"""How large a request's body may be, held to before and while it is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

_MB = 1_000_000
_UPLOADS = re.compile(
    r"/studio/(uploads|speakers/import|speakers/[^/]+/act|projects/import|projects/[^/]+/audio)/?"
)


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Bytes of a body, by what it is for."""

    login_bytes: int = 10_000
    gradio_bytes: int = 2 * _MB
    json_bytes: int = 12 * _MB
    reference_bytes: int = 17 * _MB
    upload_bytes: int = 200 * _MB
    project_bytes: int = 100_000 * _MB  # the owner's; the route holds visitors to `upload_bytes`

    def of(self, path: str) -> int:
        """The limit of one request."""
        if path.startswith("/login"):
            return self.login_bytes
        if path == "/v1/audio/speech":
            return self.reference_bytes
        if path.rstrip("/") == "/studio/projects/import":
            return self.project_bytes
        if is_upload(path):
            return self.upload_bytes
        return self.gradio_bytes if path.startswith("/gradio_api") else self.json_bytes


def is_upload(path: str) -> bool:
    """Whether a file is sent there."""
    return _UPLOADS.fullmatch(path) is not None


def too_large(limit_bytes: int) -> str:
    """What a person reads."""
    return f"This is larger than the {limit_bytes / _MB:g} MB that are taken here."


def stated_bytes(headers: Headers) -> int | None:
    """The length a request states; None when it states none.

    Raises:
        ValueError: It is no length.
    """
    stated = headers.get("content-length")
    if stated is None:
        return None
    if not (stated.isascii() and stated.isdigit()):
        raise ValueError(stated)
    return int(stated)


def counted(receive: Receive, limit_bytes: int) -> Receive:
    """Hold a body to its limit while it comes, for one that stated no length or a wrong one."""
    come = 0

    async def receive_counted() -> Message:
        nonlocal come
        message = await receive()
        come += len(message.get("body", b""))
        if come > limit_bytes:
            raise HTTPException(413, too_large(limit_bytes))
        return message

    return receive_counted
