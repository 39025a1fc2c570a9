"""The path of reused audio, as dialogs write it."""

from __future__ import annotations

import json

import regex

from studio.dialog.attributes import quoted
from studio.errors import ScriptError

_UNUSABLE = regex.compile(r"[\x00\p{Cs}]")


def checked_path(path: str) -> str:
    """Hold a path to something a file can have; it is not resolved here.

    Raises:
        ScriptError: It is blank or holds characters no path can have.
    """
    if not path.strip() or _UNUSABLE.search(path):
        raise ScriptError("Audio needs the path of a file, such as [audio: bell.wav].")
    return path


def read_path(written: str) -> str:
    """Read a path as it stands in a script, in quotes or without.

    Raises:
        ScriptError: As `checked_path`, or the closing quotation mark is missing.
    """
    if not written.startswith('"'):
        return checked_path(written)
    try:
        path = json.loads(written)
    except ValueError as error:
        raise ScriptError(f"The path {written[:80]} lacks its closing quotation mark.") from error
    return checked_path(path)


def write_path(path: str) -> str:
    """Write a path as `read_path` reads it, in quotes where it would be mistaken otherwise."""
    plain = path.isprintable() and path == path.strip() and not set('[]|"').intersection(path)
    return path if plain else quoted(path)
