"""Answers of the layers before the routes, in the shape that whoever asks expects."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from studio.api.errors import PlainJson, error_body, headers_of, status_of
from studio.api.v1.errors import body_of, speech_error
from studio.errors import StudioError


def refusal_of(path: str, error: StudioError) -> Response:
    """An error of the studio as the answer to a request for a path."""
    if _is_speech(path):
        return PlainJson(body_of(error), status_of(error), headers=headers_of(error))
    return PlainJson(error_body(error), status_of(error), headers=headers_of(error))


def refusal(
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
