"""Turns errors into HTTP responses: in the studio's own shape, and in OpenAI's under `/v1`."""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from fastapi import Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from studio import errors
from studio.storage.disk import is_full_error

log = logging.getLogger(__name__)

_STATUS: tuple[tuple[type[errors.StudioError], int], ...] = (
    (errors.BadInput, 400),
    (errors.NotAllowed, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.Cancelled, 409),
    (errors.EngineBusy, 429),
    (errors.OutOfMemory, 500),
    (errors.SpeechFailed, 422),  # a text that a voice can't speak is the caller's
    (errors.ModelUnavailable, 503),
    (errors.SetupFailed, 503),
    (errors.FileDamaged, 409),
    (errors.FormatNewer, 409),
    (errors.DiskFull, 507),
    (errors.NoRoom, 507),
    (errors.StorageFailed, 503),
)

_MAX_PLACE_CHARS = 100

FAULT = "The studio failed at this, and its log says why. Try again, or reload the page."
"""The message of an unexpected error."""


class PlainJson(JSONResponse):
    """JSON of what a request may have held: half a surrogate pair, or a number that is none."""

    def render(self, content: Any) -> bytes:
        """Escape everything that isn't ASCII, and write NaN and infinities as null."""
        try:
            text = json.dumps(content, separators=(",", ":"), allow_nan=False)
        except ValueError:
            finite = json.loads(json.dumps(content), parse_constant=lambda _: None)
            text = json.dumps(finite, separators=(",", ":"))
        return text.encode("ascii")


class SpeechErrorDetail(BaseModel):
    """The error of a response under `/v1`; `message` names the remedy."""

    message: str
    type: str
    param: str | None
    code: str | None


class SpeechErrorBody(BaseModel):
    """An error in OpenAI's shape."""

    error: SpeechErrorDetail


_TYPES = {
    401: "invalid_request_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}

DOCUMENTED: dict[int | str, dict[str, Any]] = {
    status: {"model": SpeechErrorBody, "description": why}
    for status, why in (
        (400, "The request can't be used."),
        (401, "The key is missing or wrong."),
        (403, "This caller may not do that."),
        (404, "It isn't there."),
        (405, "The address has no such method."),
        (408, "The rest of the request didn't come."),
        (409, "The state of things forbids it now."),
        (413, "The body is too large."),
        (422, "The voice can't speak this text."),
        (429, "Too much is waiting; Retry-After says when to come back."),
        (500, "It could not be spoken."),
        (503, "The model can't be used, or the disk can't be read or written."),
        (507, "The disk is full."),
    )
}
"""The errors that any operation under `/v1` may answer with, for its OpenAPI document."""


def status_of(error: errors.StudioError) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def error_body(error: errors.StudioError) -> dict[str, Any]:
    """An error in the studio's shape, for its own routes."""
    line = error.line if isinstance(error, errors.ScriptError) else None
    body = _studio_error(str(error), type(error).__name__, line)
    if isinstance(error, errors.EditConflict):
        body |= {"rev": error.rev, "conflicts": error.conflicts}
    return body


def speech_error_body(error: errors.StudioError) -> dict[str, Any]:
    """An error in OpenAI's shape, for the routes under `/v1`."""
    code = type(error).__name__
    return _speech_error(str(error), status_of(error), param=error.param, code=code)


def response_for_error(path: str, error: errors.StudioError) -> Response:
    """The response to a request for a path that failed with an error of the studio."""
    body = speech_error_body(error) if _is_speech(path) else error_body(error)
    headers: dict[str, str] = {}
    if isinstance(error, errors.EngineBusy):
        headers["Retry-After"] = str(max(1, round(error.retry_after_s)))
    return PlainJson(body, status_of(error), headers=headers)


def error_response(
    path: str,
    status: int,
    message: str,
    *,
    kind: str = "Refused",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The response to a request that is refused before any code of the studio raises an error."""
    is_speech = _is_speech(path)
    body = _speech_error(message, status) if is_speech else _studio_error(message, kind)
    return PlainJson(body, status, headers=headers)


def busy_response(path: str, message: str, retry_after_s: int) -> Response:
    """The response to a request for which there is no place now."""
    headers = {"Retry-After": str(retry_after_s)}
    return error_response(path, 429, message, kind="EngineBusy", headers=headers)


async def answer_error(request: Request, error: Exception) -> Response:
    """Exception handler for `StudioError`."""
    assert isinstance(error, errors.StudioError)
    return response_for_error(request.url.path, error)


async def answer_refused(request: Request, error: Exception) -> Response:
    """Exception handler for an `HTTPException`, such as of a body that is too large or too slow."""
    assert isinstance(error, HTTPException)
    kind = "EngineBusy" if error.status_code == 429 else "BadInput"
    path, status, message = request.url.path, error.status_code, str(error.detail)
    if status == 405:
        message = f"{request.method} can't be used at this address."
    return error_response(path, status, message, kind=kind, headers=error.headers)


async def answer_other(request: Request, error: Exception) -> Response:
    """Exception handler for an `HTTPException` of any route, such as of a malformed form."""
    if not _is_own(request.url.path):
        assert isinstance(error, HTTPException)
        return await http_exception_handler(request, error)  # as Gradio's own page reads it
    return await answer_refused(request, error)


async def answer_invalid(request: Request, error: Exception) -> Response:
    """Exception handler for a body that doesn't fit its schema; reports the first fault only.

    The message never quotes what was sent.
    """
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = _find_place(first["loc"][1:], error.body, is_missing=first["type"] == "missing")
    place = place[:_MAX_PLACE_CHARS]
    why = _MESSAGES.get(first["type"], str(first["msg"]).removeprefix("Value error, "))
    if first["type"] == "json_invalid":  # whose place is a character
        place, why = "", f"The body is no JSON: {first['ctx']['error']} at character {place}"
    message = f"“{place}” can't be used: {why}." if place else f"{why}."
    if _is_speech(request.url.path):
        return PlainJson(_speech_error(message, 400, param=place or None), 400)
    return PlainJson(_studio_error(message, "BadInput"), 422)


_MESSAGES = {
    "model_attributes_type": "Input should be an object",
    "model_type": "Input should be an object",
    "dict_type": "Input should be an object",
}
"""Instead of messages that name what only Python has."""


def _find_place(loc: Sequence[str | int], body: Any, *, is_missing: bool) -> str:
    """The names and indices in a body of a fault's place, without the validators' own names."""
    parts: list[str | int] = []
    for part in loc:
        is_key = isinstance(body, dict) and part in body
        is_index = isinstance(body, list) and isinstance(part, int) and part < len(body)
        if is_key or is_index:
            body = body[part]
            parts.append(part)
    if is_missing and loc[-1:] != tuple(parts[-1:]):
        parts.append(loc[-1])
    if loc and not parts:
        parts.append(loc[0])
    return ".".join(map(str, parts))


async def answer_refused_by_system(request: Request, error: Exception) -> Response:
    """Exception handler for an `OSError` that nothing else explained: of the disk, or its limits.

    Raises:
        OSError: It is another one, a fault of the studio itself.
    """
    assert isinstance(error, OSError)
    if error.errno not in _SYSTEM_ERRORS:
        raise error
    log.error("%s: %s", request.url.path, error, exc_info=error)
    reason = error.strerror or os.strerror(error.errno or 0)
    kind = errors.DiskFull if is_full_error(error) else errors.StorageFailed
    failure = kind(f"The system refused this: {reason}. Try again later.")
    return response_for_error(request.url.path, failure)


_SYSTEM_ERRORS = frozenset(
    {errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EMFILE, errno.ENFILE}
    | {errno.EFBIG, errno.ENOMEM, errno.ENOLCK, getattr(errno, "EDQUOT", errno.ENOSPC)}
)
"""What the system says of a disk, of rights on it, or of too much in use, and not of an address."""


async def answer_fault(request: Request, error: Exception) -> Response:
    """Exception handler for a fault of the studio itself; the traceback goes to the log."""
    kind = type(error).__name__
    is_speech = _is_speech(request.url.path)
    body = _speech_error(FAULT, 500, code=kind) if is_speech else _studio_error(FAULT, kind)
    return PlainJson(body, 500)


async def answer_left(_request: Request, _error: Exception) -> Response:
    """Exception handler for a client that has left before its whole body was there."""
    return Response(status_code=400)


Handlers = dict[Any, Callable[[Request, Any], Coroutine[Any, Any, Response]]]

_COMMON: Handlers = {
    errors.StudioError: answer_error,
    ClientDisconnect: answer_left,
    OSError: answer_refused_by_system,
    RequestValidationError: answer_invalid,
    Exception: answer_fault,
}

HANDLERS: Handlers = {
    **_COMMON,
    HTTPException: answer_other,
    **dict.fromkeys((408, 413, 429), answer_refused),
}
"""The exception handlers of the server; Gradio's own routes keep FastAPI's for other statuses."""

SPEECH_HANDLERS: Handlers = {**_COMMON, HTTPException: answer_refused}
"""The exception handlers of the application under `/v1`."""


def _studio_error(message: str, kind: str, line: int | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "line": line, "kind": kind}}


def _speech_error(
    message: str, status: int, *, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    fallback = "invalid_request_error" if status < 500 else "server_error"
    return {
        "error": {
            "message": message,
            "type": _TYPES.get(status, fallback),
            "param": param,
            "code": code or _CODES.get(status),
        }
    }


def _is_speech(path: str) -> bool:
    return f"{path}/".startswith("/v1/")


def _is_own(path: str) -> bool:
    return _is_speech(path) or f"{path}/".startswith("/studio/")
