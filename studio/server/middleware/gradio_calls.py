"""Checks what programs send to Gradio's functions before Gradio sees it.

Gradio downloads a URL that stands in an argument as a file would, before it calls the function.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.errors import BadInput
from studio.server.error_responses import error_response
from studio.server.middleware.admission import BODY_HEADERS, receive_once

_QUEUE_JOIN = "/gradio_api/queue/join"
_CALL = "/gradio_api/call/"
_CALL_BY_NAMES = f"{_CALL}v2/"

RECORDING = "recording:"
"""What comes before a recording's id in the answer to its upload."""


CountInputs = Callable[[str | int], int]
"""How many arguments a function takes, by its name or number; 0 of one that isn't there."""


class _UploadedFile(BaseModel, strict=True):
    """A file of Gradio's, which has to be one that was uploaded here; no URL of it is read."""

    path: Annotated[str, Field(pattern=rf"^{RECORDING}[0-9a-f]{{16}}$")]


_MOST_ARGUMENTS = 10

_Argument = Annotated[
    str | int | float | bool | _UploadedFile | None, Field(union_mode="left_to_right")
]


class _Call(BaseModel, strict=True, allow_inf_nan=False):
    """A call of a function named by the path; what else it holds isn't passed on."""

    data: Annotated[list[_Argument], Field(max_length=_MOST_ARGUMENTS)]


class _QueuedCall(_Call):
    """A call as Gradio's clients send it."""

    fn_index: int
    session_hash: Annotated[str, Field(max_length=100)]
    trigger_id: int | None = None


_Name = Annotated[str, Field(max_length=100)]
_CALL_WITH_NAMES: TypeAdapter[dict[str, _Argument]] = TypeAdapter(
    Annotated[dict[_Name, _Argument], Field(max_length=_MOST_ARGUMENTS)],
    config=ConfigDict(strict=True, allow_inf_nan=False),
)


def is_call(path: str) -> bool:
    """Whether a path takes calls of functions."""
    return path == _QUEUE_JOIN or path.startswith(_CALL)


def _read_call(path: str, body: bytes, count_inputs: CountInputs) -> bytes:
    """A call as JSON, with the id of each recording in its place.

    Raises:
        ValidationError: It holds something else than is checked here.
        BadInput: Arguments lack; Gradio would print those that came, whatever their length.
    """
    if path.startswith(_CALL_BY_NAMES):
        named = _CALL_WITH_NAMES.validate_json(body)
        return json.dumps({name: _plain(one) for name, one in named.items()}).encode()
    kind = _QueuedCall if path == _QUEUE_JOIN else _Call
    call = kind.model_validate_json(body)
    function = call.fn_index if isinstance(call, _QueuedCall) else path.split("/")[3]
    if len(call.data) < (count := count_inputs(function)):
        raise BadInput(f"This function takes {count} arguments; {len(call.data)} came.")
    data = [_plain(one) for one in call.data]
    return json.dumps(call.model_dump(exclude={"data"}) | {"data": data}).encode()


def _plain(argument: object) -> object:
    if isinstance(argument, _UploadedFile):
        return argument.path.removeprefix(RECORDING)
    return argument


class GradioCallMiddleware:
    """Passes on calls of Gradio's functions with texts, numbers and uploaded recordings only."""

    def __init__(self, app: ASGIApp, count_inputs: CountInputs) -> None:
        self._app = app
        self._count_inputs = count_inputs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse a call."""
        if scope["type"] != "http" or scope["method"] != "POST" or not is_call(scope["path"]):
            await self._pass_on(scope, receive, send)
            return
        try:
            body = await Request(scope, receive).body()
            data = _read_call(scope["path"], body, self._count_inputs)
        except ValidationError:
            message = (
                "The arguments of this function are texts, numbers and uploaded files, as JSON."
            )
            await error_response(scope["path"], 400, message)(scope, receive, send)
            return
        except BadInput as error:
            await error_response(scope["path"], 400, str(error))(scope, receive, send)
            return
        # `data` is written anew, so that Gradio reads nothing else in it than was checked.
        scope["headers"] = [one for one in scope["headers"] if one[0] not in BODY_HEADERS]
        scope["headers"] += [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(data)),
        ]
        await self._app(scope, receive_once(data, receive), send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; of an unknown event Gradio tells in a stream, and raises then."""
        try:
            await self._app(scope, receive, send)
        except RuntimeError as error:  # Starlette's, as the response has started
            if not isinstance(error.__cause__, HTTPException):
                raise
            await send({"type": "http.response.body", "body": b""})
