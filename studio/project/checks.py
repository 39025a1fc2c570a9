"""The values of a line, held to what a dialog can have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from studio.dialog.attributes import checked_language, checked_param, checked_seed
from studio.dialog.audio_path import checked_path
from studio.dialog.model import MAX_PAUSE_S
from studio.dialog.names import clean_name
from studio.dialog.paragraph import paragraph
from studio.errors import BadInput
from studio.project.document import LINE, Line, LineKind

MAX_NAME_CHARS = 200
_LINE_ID = re.compile(r"[0-9a-f]{12}")


def checked_line(values: Mapping[str, Any]) -> Line:
    """Make a line of what a page sent.

    Raises:
        BadInput: It has no proper id, or a value that a dialog can't have.
    """
    if not _LINE_ID.fullmatch(str(values.get("line_id"))):
        raise BadInput("A line needs a line_id of 12 hexadecimal digits.")
    identity = {name: values[name] for name in ("line_id", "kind") if name in values}
    rest = {name: value for name, value in values.items() if name not in identity}
    try:
        line = LINE.validate_python(identity | checked_fields(rest))
    except ValidationError as error:
        raise BadInput(f"A line can't be used: {error.errors()[0]['msg']}.") from error
    if line.kind is LineKind.SPEECH and not line.speaker:
        raise BadInput("A line of speech needs a speaker.")
    if line.kind is LineKind.AUDIO and not line.path:
        raise BadInput("A line of audio needs the name of a file.")
    return line


def checked_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Hold values of a line to what a dialog can have.

    Raises:
        BadInput: There is no such value, or it can't be used.
    """
    checked: dict[str, Any] = {}
    for name, value in fields.items():
        check = _CHECKS.get(name)
        if check is None:
            raise BadInput(f"“{name}” is nothing that can be set of a line.")
        checked[name] = check(value)
    return checked


def check_bounds(line: Line) -> None:
    """See that a line from a file holds nothing that no edit could have made.

    Raises:
        BadInput: It does.
    """
    kept = {name: getattr(line, name) for name in ("seed", "params", "duration_s", "path")}
    checked_fields({name: value for name, value in kept.items() if value is not None})


def checked_project_name(name: str) -> str:
    """Bring a project's name to one line.

    Raises:
        BadInput: It is empty or too long.
    """
    name = paragraph(name)
    if not name:
        raise BadInput("A project needs a name with at least one character.")
    if len(name) > MAX_NAME_CHARS:
        raise BadInput(f"The name is too long; {MAX_NAME_CHARS} characters are the most.")
    return name


def file_name(path: str) -> str:
    """Hold the path of reused audio to a file of the project's audio folder.

    Raises:
        BadInput: It leads elsewhere, or no file can have that name.
    """
    name = checked_path(path)
    if PurePosixPath(name).name != name or "\\" in name or name.startswith("."):
        raise BadInput(f"“{name[:80]}” is no file of this project. Bring the audio in first.")
    return name


def _text(value: Any) -> str:
    return paragraph(_typed(value, str, "text"))


def _speaker(value: Any) -> str | None:
    return None if value is None else clean_name(_typed(value, str, "a name"))


def _language(value: Any) -> str | None:
    return checked_language(_typed(value, str, "a language code")) if value else None


def _seed(value: Any) -> int | None:
    return None if value is None else checked_seed(value)


def _params(value: Any) -> dict[str, Any]:
    params = _typed(value, Mapping, "a table of settings")
    for key, one in params.items():
        if not isinstance(one, float | int | str | bool | None):
            raise BadInput(f"The value of “{str(key)[:40]}” can't be used.")
    return {key: checked_param(key, one) for key, one in params.items() if one is not None}


def _duration(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput("A pause is a number of seconds.")
    if not 0 <= value <= MAX_PAUSE_S:
        raise BadInput(f"A pause lasts 0 to {MAX_PAUSE_S:g} seconds.")
    return float(value)


def _path(value: Any) -> str | None:
    # Any name a dialog can have is kept; only one of the project's own files can be heard.
    return None if value is None else checked_path(_typed(value, str, "a file's name"))


def _locked(value: Any) -> bool:
    return bool(_typed(value, bool, "true or false"))


def _typed(value: Any, kind: type, wanted: str) -> Any:
    if not isinstance(value, kind):
        raise BadInput(f"“{str(value)[:40]}” can't be used here; {wanted} can.")
    return value


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "speaker": _speaker,
    "text": _text,
    "language": _language,
    "seed": _seed,
    "params": _params,
    "duration_s": _duration,
    "path": _path,
    "locked": _locked,
    "chosen": lambda _: None,  # a new line has no takes yet
}
