"""What `speaker.json` holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypedDict

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from studio.audio.atomic_file import replacing
from studio.dialog.names import clean_name
from studio.errors import BadInput, StorageFailed

_MAX_TEXT_CHARS = 10_000

_SHORTEN = f"Shorten it to {_MAX_TEXT_CHARS:,} characters."
_REMEDIES = {
    "transcript": _SHORTEN,
    "preset": _SHORTEN,
    "description": _SHORTEN,
    "language": "Write a code such as en or pt-BR.",
    "colour": "Write it as #rrggbb, such as #046bd0.",
}


def _none_if_blank(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


_Text = Annotated[
    Annotated[str, StringConstraints(strip_whitespace=True, max_length=_MAX_TEXT_CHARS)] | None,
    BeforeValidator(_none_if_blank),
]
_Code = Annotated[
    Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\w[\w.:+-]{0,99}$")] | None,
    BeforeValidator(_none_if_blank),
]
_Colour = Annotated[str, StringConstraints(pattern=r"^#[0-9a-fA-F]{6}$", to_lower=True)]


class Details(TypedDict, total=False):
    """What can be set of a speaker beside name and sample, as in `Speaker`; None clears it."""

    transcript: str | None
    language: str | None
    preset: str | None
    description: str | None
    colour: str


class SpeakerRecord(BaseModel):
    """One `speaker.json`; fields as in `Speaker`, unknown ones are kept out."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    name: str = Field(min_length=1)
    has_sample: bool = False
    transcript: _Text = None
    language: _Code = None
    preset: _Text = None
    description: _Text = None
    colour: _Colour

    @classmethod
    def made(cls, name: str, *, has_sample: bool, details: Details) -> SpeakerRecord:
        """Check and make a record; empty texts count as None.

        Raises:
            NameRejected: The name breaks the rule of `clean_name`.
            BadInput: A detail can't be used.
        """
        try:
            return cls.model_validate(
                {"name": clean_name(name), "has_sample": has_sample, **details}
            )
        except ValidationError as error:
            field = str(error.errors()[0]["loc"][0])
            raise BadInput(f"The {field} of {name} can't be used. {_REMEDIES[field]}") from error

    @property
    def details(self) -> Details:
        """All that `made` takes as details."""
        return Details(
            transcript=self.transcript,
            language=self.language,
            preset=self.preset,
            description=self.description,
            colour=self.colour,
        )


def read_record(path: Path) -> SpeakerRecord:
    """Read a `speaker.json`.

    Raises:
        StorageFailed: It is missing or holds something else.
    """
    try:
        record = SpeakerRecord.model_validate_json(path.read_bytes())
        return record.model_copy(update={"name": clean_name(record.name)})
    except (OSError, ValidationError, BadInput) as error:
        reason = _first_line(error)
        raise StorageFailed(
            f"The speaker at {path.parent} is left out, since its {path.name} can't be read:"
            f" {reason}. Mend or remove that folder."
        ) from error


def write_record(path: Path, record: SpeakerRecord) -> None:
    """Write a `speaker.json`, readable and whole.

    Raises:
        StorageFailed: It can't be written.
    """
    with replacing(path) as file:
        file.write(record.model_dump_json(indent=2).encode() + b"\n")


def _first_line(error: OSError | ValidationError | BadInput) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return ": ".join([*map(str, first["loc"]), first["msg"]])
    return (error.strerror if isinstance(error, OSError) else None) or str(error).rstrip(".")
