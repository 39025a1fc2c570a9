"""Checks what programs send to Gradio's queue before Gradio sees it.

Gradio downloads a URL that stands in an argument as a file would, before it calls the function.
"""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.server.error_responses import error_response

QUEUE_JOIN = "/gradio_api/queue/join"

RECORDING = "recording:"
"""What comes before a recording's id in the answer to its upload."""


class _UploadedFile(BaseModel, strict=True):
    """A file of Gradio's, which has to be one that was uploaded here; no URL of it is read."""

    path: Annotated[str, Field(pattern=rf"^{RECORDING}[0-9a-f]{{16}}$")]


_Argument = Annotated[
    str | int | float | bool | _UploadedFile | None, Field(union_mode="left_to_right")
]


class _Call(BaseModel, strict=True, allow_inf_nan=False):
    """A call of a function; what else it holds isn't passed on."""

    data: Annotated[list[_Argument], Field(max_length=10)]
    fn_index: int
    session_hash: Annotated[str, Field(max_length=100)]
    trigger_id: int | None = None

    def plain(self) -> bytes:
        """The call as JSON, with the id of each recording in its place."""
        body = self.model_dump(exclude={"data"})
        body["data"] = [
            one.path.removeprefix(RECORDING) if isinstance(one, _UploadedFile) else one
            for one in self.data
        ]
        return json.dumps(body).encode()


class GradioCallMiddleware:
    """Passes on calls of Gradio's functions with texts, numbers and uploaded recordings only."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse a call."""
        if scope["type"] != "http" or scope["path"] != QUEUE_JOIN:
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        try:
            call = _Call.model_validate_json(body)
        except ValidationError:
            message = (
                "The arguments of this function are texts, numbers and uploaded files, as JSON."
            )
            await error_response(QUEUE_JOIN, 400, message)(scope, receive, send)
            return
        # Written anew, so that Gradio reads nothing else in it than was checked.
        data = call.plain()
        scope["headers"] = [one for one in scope["headers"] if one[0] not in _BODY_HEADERS]
        scope["headers"] += [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(data)),
        ]
        await self._app(scope, _receive_once(data, receive), send)


_BODY_HEADERS = frozenset({b"content-type", b"content-length", b"transfer-encoding"})


def _receive_once(data: bytes, receive: Receive) -> Receive:
    """An ASGI `receive` that returns a whole body, then what follows the original one."""
    message: Message | None = {"type": "http.request", "body": data, "more_body": False}

    async def receive_body() -> Message:
        nonlocal message
        if message is None:
            return await receive()
        body, message = message, None
        return body

    return receive_body
