"""How large a request's body may be, and its buffering before the request takes a place."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope

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


def limit_body(receive: Receive, limit_bytes: int) -> Receive:
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


_BUSY = "Too much is being sent to this studio now. Try again in 5 s."
_SILENT = "The rest of the request didn't come. Send it again."


class RequestBuffer:
    """How many bodies may be on their way at once, all together and of one sender.

    On the server's loop only.
    """

    def __init__(self, at_once: int = 64, *, of_one: int = 16, silent_s: float = 30.0) -> None:
        """Nothing comes yet.

        Args:
            at_once: Bodies on their way together; each may have megabytes in memory.
            of_one: Of those, of one browser, or of all programs together.
            silent_s: How long the next piece of a body may take.
        """
        self._at_once = at_once
        self._of_one = of_one
        self._silent_s = silent_s
        self._coming: Counter[str] = Counter()

    @property
    def coming(self) -> int:
        """Bodies on their way now."""
        return self._coming.total()

    def begin(
        self, scope: Scope, receive: Receive, whole: Callable[[], Awaitable[None]]
    ) -> BufferedBody:
        """Let a body come.

        Args:
            scope: The request.
            receive: Brings its pieces.
            whole: Awaited between the last piece and the handler that waits for it.

        Raises:
            HTTPException: Too many are on their way; 429.
        """
        sender = Headers(scope=scope).get("cookie", "")
        if self.coming >= self._at_once or self._coming[sender] >= self._of_one:
            raise HTTPException(429, _BUSY, headers={"Retry-After": "5"})
        self._coming[sender] += 1

        def end() -> None:
            self._coming[sender] -= 1
            if not self._coming[sender]:
                del self._coming[sender]

        return BufferedBody(receive, whole, end, silent_s=self._silent_s)


class BufferedBody:
    """A request's body; called for its pieces as ASGI's `receive` is."""

    def __init__(
        self,
        receive: Receive,
        whole: Callable[[], Awaitable[None]],
        end: Callable[[], None],
        *,
        silent_s: float,
    ) -> None:
        """Nothing came yet; `end` is called once, when no more of it is waited for."""
        self._receive = receive
        self._whole = whole
        self._end = end
        self._silent_s = silent_s
        self._is_over = False

    async def __call__(self) -> Message:
        """The next piece.

        Raises:
            HTTPException: It doesn't come; 408.
        """
        if self._is_over:
            return await self._receive()
        try:
            async with asyncio.timeout(self._silent_s):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, _SILENT, headers={"Connection": "close"}) from None
        if message["type"] != "http.request":
            self.close()
        elif not message.get("more_body"):
            self.close()
            await self._whole()
        return message

    def close(self) -> None:
        """Wait for no more of it."""
        if not self._is_over:
            self._is_over = True
            self._end()


def has_body(scope: Scope) -> bool:
    """Whether a request says that a body follows."""
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
