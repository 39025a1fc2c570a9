"""Faults between the studio and a speech server, and reading them from a server's answer."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from pydantic import BaseModel, ValidationError

# What can go wrong between the studio and a speech server; `LineTries` ends all of it.
#
# RemoteError
# ├── ServerFault      this try failed; another may do better
# │   ├── Busy         full: says when to come back
# │   ├── Unreachable  no answer at all, or it broke off: the server counts as down
# │   └── Garbled      an answer, but no speech
# └── Refused          no try will do better; the message is for the person
#     └── Declined     not on this server; another one may take it


class RemoteError(Exception):
    """Base; the message is a clause without a full stop, free of keys and recordings."""


class ServerFault(RemoteError):
    """This try failed; another may do better."""


class Busy(ServerFault):
    """The server is full."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unreachable(ServerFault):
    """The server doesn't answer, or broke off in the middle."""


class Garbled(ServerFault):
    """The server answered with an error of its own, or with something that isn't whole speech."""


class Refused(RemoteError):
    """The server won't do this, however often it is asked."""


class Declined(Refused):
    """This server won't do it; another one may.

    Attributes:
        always: Whether it would decline any line: its key, path or model isn't the one asked for.
    """

    def __init__(self, message: str, *, always: bool = False) -> None:
        super().__init__(message)
        self.always = always


MAX_MESSAGE_CHARS = 300
_LONGEST_WORD = 80  # beyond, it is a recording or a key and not a word
_AUDIO_TYPES = ("audio/", "application/octet-stream", "binary/octet-stream")
_DOWN = {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
_SHUT_OUT = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_NOT_THERE = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
_ONCE_MORE = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY}


class _Detail(BaseModel):
    message: str


class _OpenAIError(BaseModel):
    error: _Detail


class _OtherError(BaseModel):
    detail: object


def fault_of(
    status: int, headers: Mapping[str, str], body: bytes, secrets: Sequence[str]
) -> RemoteError:
    """The fault behind a status other than 200; `secrets` are cut from the server's words."""
    words = words_of(body, secrets)
    why = f"answered {status}" + (f": {words}" if words else "")
    if status == HTTPStatus.TOO_MANY_REQUESTS or (
        status == HTTPStatus.SERVICE_UNAVAILABLE and "retry-after" in headers
    ):
        return Busy(why, retry_after_s(headers))
    if status in _DOWN:
        return Unreachable(why)
    if status in _SHUT_OUT:
        return Declined(f"{why}. Set TTS_REMOTE_KEY to a key that it takes", always=True)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _ONCE_MORE:
        return Garbled(why)
    return Declined(why, always=status in _NOT_THERE)


def check_audio(headers: Mapping[str, str]) -> None:
    """Make sure that an answer says it is audio.

    Raises:
        Garbled: It is something else.
    """
    kind = headers.get("content-type", "")
    if not kind.lower().startswith(_AUDIO_TYPES):
        raise Garbled(f"answered with {kind or 'an unknown kind of content'} instead of audio")


def words_of(body: bytes, secrets: Sequence[str]) -> str:
    """The server's own message, on one line, without the key, recordings and their like."""
    text = _message(body)
    for secret in secrets:
        text = text.replace(secret, "…")
    words = (word if len(word) <= _LONGEST_WORD else "…" for word in re.split(r"\s+", text))
    return " ".join(words).strip().rstrip(".")[:MAX_MESSAGE_CHARS]


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds until a server wants to be asked again; None when it doesn't say."""
    value = headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _message(body: bytes) -> str:
    for shape in (_OpenAIError, _OtherError):
        try:
            answer = shape.model_validate_json(body)
        except ValidationError:
            continue
        return answer.error.message if isinstance(answer, _OpenAIError) else str(answer.detail)
    text = body.decode("utf-8", errors="replace")
    return "" if text.lstrip().startswith("<") else text
