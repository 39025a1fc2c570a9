"""A project's document: its lines, cast and settings, and what values a line may have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from studio.dialog.attributes import check_audio_path, check_language, check_param, check_seed
from studio.dialog.line_text import paragraph
from studio.dialog.model import MAX_PAUSE_S, Audio, Dialog, ParamValue, Silence, Speech
from studio.dialog.model import Line as DialogLine
from studio.dialog.names import clean_name
from studio.dialog.pronunciation import Pronunciation
from studio.engine.job import MAX_TRIES
from studio.errors import BadInput


class LineKind(StrEnum):
    """What a line is made of."""

    SPEECH = "speech"
    SILENCE = "silence"
    AUDIO = "audio"


@dataclass(frozen=True, slots=True)
class ProjectLine:
    """A line of a dialog as a project keeps it.

    Attributes:
        line_id: 12 hex digits, made by whoever makes the line; it stays for good.
        speaker: Of speech only, as are text, language, seed and params.
        duration_s: Of a silence only.
        path: Of reused audio only: the name of a file in the project's audio folder.
        locked: Its take stays whatever happens to the text; renders leave it out.
        chosen: The take that is heard, None before the first.
    """

    line_id: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]  # a folder's name: nothing else
    kind: LineKind = LineKind.SPEECH
    speaker: str | None = None
    text: str = ""
    language: str | None = None
    seed: int | None = None
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    duration_s: float | None = None
    path: str | None = None
    locked: bool = False
    chosen: str | None = None

    def spoken(self, line_number: int = 0) -> DialogLine:
        """The line as the dialog layer knows it."""
        match self.kind:
            case LineKind.SILENCE:
                return Silence(self.duration_s or 0.0, line_number)
            case LineKind.AUDIO:
                return Audio(self.path or "", line_number)
            case LineKind.SPEECH:
                return Speech(
                    self.speaker or "",
                    self.text,
                    self.language,
                    self.seed,
                    self.params,
                    line_number,
                )


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """What holds for every line that doesn't say otherwise.

    Attributes:
        backend: None for the studio's own choice.
        seed: For lines without one; None gives each line a seed of its own that never changes.
        language: BCP-47 code, for lines whose voice has none either; None leaves it to the voice.
        tries: How often a line that names no seed is spoken at most while its take is doubtful.
    """

    backend: str | None = None
    seed: int | None = None
    language: str | None = None
    tries: Annotated[int, Field(ge=1, le=MAX_TRIES)] = 1


@dataclass(frozen=True, slots=True)
class Document:
    """A project at one moment. Nothing in it is ever changed; an edit makes a new one.

    Attributes:
        lines: By id; exactly those in `order`.
        order: Line ids as they are heard.
        cast: Ids of the library's speakers by the name they speak for; None for nobody.
        first_names: What renamed speakers were called at first, by their names now: that name
            still chooses their voice on a backend with a built-in one for each name.
        locked_takes: Takes that may not be deleted.
        deleted_takes: Takes that were deleted; their files stay until they are freed, so that undo
            brings them back.
        accepted_takes: Takes that somebody heard and found right, whatever seemed doubtful.
        pronunciations: How words are said, by the word as it is written.
    """

    name: str = ""
    lines: Mapping[str, ProjectLine] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    cast: Mapping[str, str | None] = field(default_factory=dict)
    settings: ProjectSettings = field(default_factory=ProjectSettings)
    locked_takes: tuple[str, ...] = ()
    deleted_takes: tuple[str, ...] = ()
    first_names: Mapping[str, str] = field(default_factory=dict)
    accepted_takes: tuple[str, ...] = ()
    pronunciations: Mapping[str, Pronunciation] = field(default_factory=dict)

    def __iter__(self) -> Iterator[ProjectLine]:
        """Iterate over the lines in order."""
        return (self.lines[line_id] for line_id in self.order)

    def dialog(self) -> Dialog:
        """The lines as a script would have them."""
        return Dialog(tuple(line.spoken(number) for number, line in enumerate(self, start=1)))


LINE_ADAPTER: TypeAdapter[ProjectLine] = TypeAdapter(ProjectLine)
SETTINGS_ADAPTER: TypeAdapter[ProjectSettings] = TypeAdapter(ProjectSettings)
PRONUNCIATIONS_ADAPTER: TypeAdapter[tuple[Pronunciation, ...]] = TypeAdapter(
    tuple[Pronunciation, ...]
)
_DOCUMENT_ADAPTER: TypeAdapter[Document] = TypeAdapter(Document)


def encode_line(line: ProjectLine) -> dict[str, Any]:
    """A line as files hold it; what has its default is left out."""
    record = {name: getattr(line, name) for name in _LINE_DEFAULTS}
    record["params"] = dict(line.params)
    return {key: value for key, value in record.items() if value != _LINE_DEFAULTS[key]}


def encode_document(document: Document) -> dict[str, Any]:
    """A document as files hold it, readable."""
    entries = [asdict(one) for one in document.pronunciations.values()]
    return {
        "name": document.name,
        "cast": dict(document.cast),
        "first_names": dict(document.first_names),
        "settings": asdict(document.settings),
        "lines": [encode_line(line) for line in document],
        "locked_takes": list(document.locked_takes),
        "deleted_takes": list(document.deleted_takes),
        "accepted_takes": list(document.accepted_takes),
        **({"pronunciations": entries} if entries else {}),
    }


def read_document(record: Mapping[str, Any]) -> Document:
    """Read what `encode_document` wrote.

    Raises:
        ValueError: It holds something else.
        KeyError: It lacks something.
    """
    lines = [LINE_ADAPTER.validate_python(line) for line in record["lines"]]
    by_id = {line.line_id: line for line in lines}
    if len(by_id) != len(lines):
        raise ValueError("two lines have the same id")
    entries = PRONUNCIATIONS_ADAPTER.validate_python(record.get("pronunciations", ()))
    return _DOCUMENT_ADAPTER.validate_python(
        {
            **record,
            "lines": by_id,
            "order": tuple(line.line_id for line in lines),
            "pronunciations": {one.written: one for one in entries},
        }
    )


_LINE_DEFAULTS: dict[str, Any] = asdict(ProjectLine(""))
"""No line has the id "", so that every line's own is written."""


MAX_PROJECT_NAME_CHARS = 200
_LINE_ID_PATTERN = re.compile(r"[0-9a-f]{12}")


def parse_line(values: Mapping[str, Any]) -> ProjectLine:
    """Make a line of what a page sent.

    Raises:
        BadInput: It has no proper id, or a value that a dialog can't have.
    """
    if not _LINE_ID_PATTERN.fullmatch(str(values.get("line_id"))):
        raise BadInput("A line needs a line_id of 12 hexadecimal digits.")
    identity = {name: values[name] for name in ("line_id", "kind") if name in values}
    rest = {name: value for name, value in values.items() if name not in identity}
    try:
        line = LINE_ADAPTER.validate_python(identity | parse_fields(rest))
    except ValidationError as error:
        raise BadInput(f"A line can't be used: {error.errors()[0]['msg']}.") from error
    if line.kind is LineKind.SPEECH and not line.speaker:
        raise BadInput("A line of speech needs a speaker.")
    if line.kind is LineKind.AUDIO and not line.path:
        raise BadInput("A line of audio needs the name of a file.")
    return line


def parse_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Hold values of a line to what a dialog can have.

    Raises:
        BadInput: There is no such value, or it can't be used.
    """
    checked: dict[str, Any] = {}
    for name, value in fields.items():
        check = _FIELD_PARSERS.get(name)
        if check is None:
            raise BadInput(f"“{name}” is nothing that can be set of a line.")
        checked[name] = check(value)
    return checked


def check_line(line: ProjectLine) -> None:
    """See that a line from a file holds nothing that no edit could have made.

    Raises:
        BadInput: It does.
    """
    kept = {name: getattr(line, name) for name in ("seed", "params", "duration_s", "path")}
    parse_fields({name: value for name, value in kept.items() if value is not None})


def clean_project_name(name: str) -> str:
    """Bring a project's name to one line.

    Raises:
        BadInput: It is empty or too long.
    """
    name = paragraph(name)
    if not name:
        raise BadInput("A project needs a name with at least one character.")
    if len(name) > MAX_PROJECT_NAME_CHARS:
        raise BadInput(f"The name is too long; {MAX_PROJECT_NAME_CHARS} characters are the most.")
    return name


def check_audio_name(path: str) -> str:
    """Hold the path of reused audio to a file of the project's audio folder.

    Raises:
        BadInput: It leads elsewhere, or no file can have that name.
    """
    name = check_audio_path(path)
    if PurePosixPath(name).name != name or "\\" in name or name.startswith("."):
        raise BadInput(f"“{name[:80]}” is no file of this project. Bring the audio in first.")
    return name


def _parse_text(value: Any) -> str:
    return paragraph(_require_type(value, str, "text"))


def _parse_speaker(value: Any) -> str | None:
    return None if value is None else clean_name(_require_type(value, str, "a name"))


def _parse_language(value: Any) -> str | None:
    return check_language(_require_type(value, str, "a language code")) if value else None


def _parse_seed(value: Any) -> int | None:
    return None if value is None else check_seed(value)


def _parse_params(value: Any) -> dict[str, Any]:
    params = _require_type(value, Mapping, "a table of settings")
    for key, one in params.items():
        if not isinstance(one, float | int | str | bool | None):
            raise BadInput(f"The value of “{str(key)[:40]}” can't be used.")
    return {key: check_param(key, one) for key, one in params.items() if one is not None}


def _parse_duration(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput("A pause is a number of seconds.")
    if not 0 <= value <= MAX_PAUSE_S:
        raise BadInput(f"A pause lasts 0 to {MAX_PAUSE_S:g} seconds.")
    return float(value)


def _parse_path(value: Any) -> str | None:
    # Any name a dialog can have is kept; only one of the project's own files can be heard.
    return None if value is None else check_audio_path(_require_type(value, str, "a file's name"))


def _parse_locked(value: Any) -> bool:
    return bool(_require_type(value, bool, "true or false"))


def _require_type(value: Any, kind: type, wanted: str) -> Any:
    if not isinstance(value, kind):
        raise BadInput(f"“{str(value)[:40]}” can't be used here; {wanted} can.")
    return value


_FIELD_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "speaker": _parse_speaker,
    "text": _parse_text,
    "language": _parse_language,
    "seed": _parse_seed,
    "params": _parse_params,
    "duration_s": _parse_duration,
    "path": _parse_path,
    "locked": _parse_locked,
    "chosen": lambda _: None,  # a new line has no takes yet
}
