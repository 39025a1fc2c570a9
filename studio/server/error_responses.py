"""Where an error becomes an HTTP response: the studio's shape, and OpenAI's under `/v1`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from studio.errors import (
    BadInput,
    Cancelled,
    Conflict,
    EngineBusy,
    ModelUnavailable,
    NotAllowed,
    NotFound,
    OutOfMemory,
    ScriptError,
    SetupFailed,
    SpeechFailed,
    StorageFailed,
    StudioError,
)

_STATUS: tuple[tuple[type[StudioError], int], ...] = (
    (BadInput, 400),
    (NotAllowed, 403),
    (NotFound, 404),
    (Conflict, 409),
    (Cancelled, 409),
    (EngineBusy, 429),
    (OutOfMemory, 500),
    (SpeechFailed, 422),  # a text that a voice can't speak is the caller's
    (ModelUnavailable, 503),
    (SetupFailed, 503),
    (StorageFailed, 507),
)

_MAX_PLACE_CHARS = 100

FAULT = "The studio failed at this, and its log says why. Try again, or load the page anew."
"""The message of an unexpected error."""


class PlainJson(JSONResponse):
    """In ASCII: an error may quote what no other encoding can hold."""

    def render(self, content: Any) -> bytes:
        """Escape all that isn't ASCII, halves of characters too."""
        return json.dumps(content, separators=(",", ":")).encode("ascii")


def status_of(error: StudioError) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def error_body(error: StudioError) -> dict[str, object]:
    """The body every route answers an error with."""
    line = error.line if isinstance(error, ScriptError) else None
    return {"error": {"message": str(error), "line": line, "kind": type(error).__name__}}


def headers_of(error: StudioError) -> dict[str, str]:
    """The headers an error is answered with."""
    if isinstance(error, EngineBusy):
        return {"Retry-After": str(max(1, round(error.retry_after_s)))}
    return {}


def first_fault(error: RequestValidationError) -> tuple[str, str]:
    """Where a body doesn't fit first, and what is wrong there; never quotes what was sent."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])[:_MAX_PLACE_CHARS]
    return place, f"“{place}” can't be used: {first['msg']}." if place else f"{first['msg']}."


async def answer_refused(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for a body that is refused while it comes: too large, late, too many."""
    assert isinstance(error, HTTPException)
    kind = "EngineBusy" if error.status_code == 429 else "BadInput"
    body = {"error": {"message": error.detail, "line": None, "kind": kind}}
    return PlainJson(body, error.status_code, headers=error.headers)


async def answer_error(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for `StudioError`."""
    assert isinstance(error, StudioError)
    return PlainJson(error_body(error), status_of(error), headers=headers_of(error))


async def answer_invalid(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for a body that doesn't fit; tells the first thing that is wrong."""
    assert isinstance(error, RequestValidationError)
    _place, message = first_fault(error)
    body = {"error": {"message": message, "line": None, "kind": "BadInput"}}
    return PlainJson(body, 422)


async def answer_fault(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for a fault of the studio itself; its log has the rest."""
    body = {"error": {"message": FAULT, "line": None, "kind": type(error).__name__}}
    return PlainJson(body, 500)


HANDLERS: Mapping[Any, Callable[[Request, Exception], Awaitable[JSONResponse]]] = {
    StudioError: answer_error,
    RequestValidationError: answer_invalid,
    408: answer_refused,
    413: answer_refused,
    429: answer_refused,
    Exception: answer_fault,
}
"""What a server of the page's routes answers errors with."""


class SpeechErrorDetail(BaseModel):
    """What went wrong; `message` names the remedy."""

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
        (503, "The model can't be used."),
        (507, "The disk is full."),
    )
}
"""Errors that every operation may answer with."""


def speech_error(
    message: str, status: int, *, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """An error's body."""
    fallback = "invalid_request_error" if status < 500 else "server_error"
    return {
        "error": {
            "message": message,
            "type": _TYPES.get(status, fallback),
            "param": param,
            "code": code or _CODES.get(status),
        }
    }


def speech_error_body(error: StudioError) -> dict[str, Any]:
    """The body of an error of the studio."""
    return speech_error(str(error), status_of(error), code=type(error).__name__)


async def answer_speech_error(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for `StudioError`."""
    assert isinstance(error, StudioError)
    return PlainJson(speech_error_body(error), status_of(error), headers=headers_of(error))


async def answer_speech_http_error(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for what the framework refuses."""
    assert isinstance(error, HTTPException)
    body = speech_error(str(error.detail), error.status_code)
    return PlainJson(body, error.status_code, headers=error.headers)


async def answer_speech_invalid(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for a body that doesn't fit; tells the first thing that is wrong."""
    assert isinstance(error, RequestValidationError)
    place, message = first_fault(error)
    return PlainJson(speech_error(message, 400, param=place or None), 400)


async def answer_speech_fault(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for a fault of the studio itself; its log has the rest."""
    return PlainJson(speech_error(FAULT, 500, code=type(error).__name__), 500)


def response_for_error(path: str, error: StudioError) -> Response:
    """An error of the studio as the answer to a request for a path."""
    if _is_speech(path):
        return PlainJson(speech_error_body(error), status_of(error), headers=headers_of(error))
    return PlainJson(error_body(error), status_of(error), headers=headers_of(error))


def error_response(
    path: str,
    status: int,
    message: str,
    *,
    kind: str = "Refused",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A refusal that is no error of the studio."""
    if _is_speech(path):
        body = speech_error(message, status)
    else:
        body = {"error": {"message": message, "line": None, "kind": kind}}
    return PlainJson(body, status, headers=headers)


def _is_speech(path: str) -> bool:
    return path == "/v1" or path.startswith("/v1/")
