"""Errors in OpenAI's shape under `/v1`, and which shape a response before routing takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from studio.errors import StudioError
from studio.server.error_responses import (
    FAULT,
    PlainJson,
    error_body,
    first_fault,
    headers_of,
    status_of,
)
from studio.server.v1.speech_bodies import SpeechErrorBody

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
"""What every operation may answer beside what it is for."""


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


def body_of(error: StudioError) -> dict[str, Any]:
    """The body of an error of the studio."""
    return speech_error(str(error), status_of(error), code=type(error).__name__)


async def answer_studio_error(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for `StudioError`."""
    assert isinstance(error, StudioError)
    return PlainJson(body_of(error), status_of(error), headers=headers_of(error))


async def answer_http_error(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for what the framework refuses."""
    assert isinstance(error, HTTPException)
    body = speech_error(str(error.detail), error.status_code)
    return PlainJson(body, error.status_code, headers=error.headers)


async def answer_invalid(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for a body that doesn't fit; tells the first thing that is wrong."""
    assert isinstance(error, RequestValidationError)
    place, message = first_fault(error)
    return PlainJson(speech_error(message, 400, param=place or None), 400)


async def answer_fault(_: Request, error: Exception) -> JSONResponse:
    """Exception handler for a fault of the studio itself; its log has the rest."""
    return PlainJson(speech_error(FAULT, 500, code=type(error).__name__), 500)


def response_for_error(path: str, error: StudioError) -> Response:
    """An error of the studio as the answer to a request for a path."""
    if _is_speech(path):
        return PlainJson(body_of(error), status_of(error), headers=headers_of(error))
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
