"""The one place where an error of the studio becomes an HTTP status."""

from __future__ import annotations

from fastapi import Request
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
    (SpeechFailed, 500),
    (ModelUnavailable, 503),
    (SetupFailed, 503),
    (StorageFailed, 507),
)


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


async def answer_too_large(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for a body that passed its limit while it came."""
    assert isinstance(error, HTTPException)
    body = {"error": {"message": error.detail, "line": None, "kind": "BadInput"}}
    return JSONResponse(body, error.status_code)


async def answer_error(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for `StudioError`."""
    assert isinstance(error, StudioError)
    return JSONResponse(error_body(error), status_of(error), headers=headers_of(error))
