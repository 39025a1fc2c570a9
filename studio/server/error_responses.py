"""The one place where an error of the studio becomes an HTTP status."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

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
"""What is told of a fault that nobody foresaw."""


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
