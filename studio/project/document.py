"""What a project holds at one moment: its lines, its cast and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from studio.dialog.model import Audio, Dialog, ParamValue, Silence, Speech
from studio.dialog.model import Line as DialogLine
from studio.dialog.pronouncing import Pronunciation
from studio.engine.job import MAX_TRIES


class LineKind(StrEnum):
    """What a line is made of."""

    SPEECH = "speech"
    SILENCE = "silence"
    AUDIO = "audio"


@dataclass(frozen=True, slots=True)
class Line:
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
    lines: Mapping[str, Line] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    cast: Mapping[str, str | None] = field(default_factory=dict)
    settings: ProjectSettings = field(default_factory=ProjectSettings)
    locked_takes: tuple[str, ...] = ()
    deleted_takes: tuple[str, ...] = ()
    first_names: Mapping[str, str] = field(default_factory=dict)
    accepted_takes: tuple[str, ...] = ()
    pronunciations: Mapping[str, Pronunciation] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Line]:
        """Iterate over the lines in order."""
        return (self.lines[line_id] for line_id in self.order)

    def dialog(self) -> Dialog:
        """The lines as a script would have them."""
        return Dialog(tuple(line.spoken(number) for number, line in enumerate(self, start=1)))


LINE: TypeAdapter[Line] = TypeAdapter(Line)
SETTINGS: TypeAdapter[ProjectSettings] = TypeAdapter(ProjectSettings)
PRONUNCIATIONS: TypeAdapter[tuple[Pronunciation, ...]] = TypeAdapter(tuple[Pronunciation, ...])
_DOCUMENT: TypeAdapter[Document] = TypeAdapter(Document)


def line_record(line: Line) -> dict[str, Any]:
    """A line as files hold it; what has its default is left out."""
    record = {name: getattr(line, name) for name in _DEFAULTS}
    record["params"] = dict(line.params)
    return {key: value for key, value in record.items() if value != _DEFAULTS[key]}


def document_record(document: Document) -> dict[str, Any]:
    """A document as files hold it, readable."""
    entries = [asdict(one) for one in document.pronunciations.values()]
    return {
        "name": document.name,
        "cast": dict(document.cast),
        "first_names": dict(document.first_names),
        "settings": asdict(document.settings),
        "lines": [line_record(line) for line in document],
        "locked_takes": list(document.locked_takes),
        "deleted_takes": list(document.deleted_takes),
        "accepted_takes": list(document.accepted_takes),
        **({"pronunciations": entries} if entries else {}),
    }


def read_document(record: Mapping[str, Any]) -> Document:
    """Read what `document_record` wrote.

    Raises:
        ValueError: It holds something else.
        KeyError: It lacks something.
    """
    lines = [LINE.validate_python(line) for line in record["lines"]]
    by_id = {line.line_id: line for line in lines}
    if len(by_id) != len(lines):
        raise ValueError("two lines have the same id")
    entries = PRONUNCIATIONS.validate_python(record.get("pronunciations", ()))
    return _DOCUMENT.validate_python(
        {
            **record,
            "lines": by_id,
            "order": tuple(line.line_id for line in lines),
            "pronunciations": {one.written: one for one in entries},
        }
    )


_DEFAULTS: dict[str, Any] = asdict(Line(""))
"""No line has the id "", so that every line's own is written."""
