"""The records in `speaker.json`: a speaker, its moods and earlier sample versions."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypedDict

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from studio.dialog.model import clean_name, name_key
from studio.errors import BadInput, Conflict, FormatNewer, NameRejected, NotFound, StorageFailed
from studio.storage.disk import Disk, read_file
from studio.storage.records import RecordFormat, mend, restore_rows, set_aside
from studio.voices.speaker import NEUTRAL, choose_colour

SPEAKER_FORMAT = RecordFormat("This voice")
MAIN_SAMPLE = "sample.wav"
MAX_TEXT_CHARS = 10_000
MAX_TAGS = 20
MAX_TAG_CHARS = 30
_TEXTS = {"transcript", "language", "preset", "description", "colour"}
_TEXT_ROW = re.compile(r'(?m)^ {1,2}"(\w+)": ("[^\ufffd\n]*"),?$')
MAX_MOODS = 20

_SHORTEN = f"Shorten it to {MAX_TEXT_CHARS:,} characters."
_REMEDIES = {
    "transcript": _SHORTEN,
    "preset": _SHORTEN,
    "description": _SHORTEN,
    "language": "Write a code such as en or pt-BR.",
    "colour": "Write it as #rrggbb, such as #046bd0.",
    "tags": f"Give {MAX_TAGS} tags at most, each of 1 to {MAX_TAG_CHARS} characters.",
    "consent_at": "Tick anew that the voice may be used.",
    "moods": f"Keep {MAX_MOODS} moods at most.",
}


def _blank_to_none(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


def _drop_duplicate_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Tags without those that differ only in case from an earlier one."""
    first: dict[str, str] = {}
    for tag in tags:
        first.setdefault(name_key(tag), tag)
    return tuple(first.values())


def _clean_tag(tag: str) -> str:
    try:
        return clean_name(tag)
    except NameRejected as error:
        raise ValueError(str(error)) from error


def _to_utc(value: str) -> str:
    try:
        return datetime.fromisoformat(value).astimezone(UTC).isoformat(timespec="seconds")
    except OverflowError as error:  # of the year 1 or 9999
        raise ValueError("it is no date") from error


_Text = Annotated[
    Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_TEXT_CHARS)] | None,
    BeforeValidator(_blank_to_none),
]
_Code = Annotated[
    Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\w[\w.:+-]{0,99}$")] | None,
    BeforeValidator(_blank_to_none),
]
_Colour = Annotated[str, StringConstraints(pattern=r"^#[0-9a-fA-F]{6}$", to_lower=True)]
_Tag = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TAG_CHARS),
    AfterValidator(_clean_tag),
]
_Tags = Annotated[
    tuple[_Tag, ...], Field(max_length=MAX_TAGS), AfterValidator(_drop_duplicate_tags)
]
_Name = Annotated[str, AfterValidator(_clean_tag)] | None
_Time = Annotated[str, StringConstraints(max_length=40), AfterValidator(_to_utc)] | None


class SpeakerDetails(TypedDict, total=False):
    """The details of a speaker besides name and samples, as in `Speaker`; None clears one."""

    transcript: str | None
    language: str | None
    preset: str | None
    description: str | None
    colour: str
    tags: Sequence[str]
    consent_at: str | None


class MoodRecord(BaseModel):
    """One further sample; fields as in `MoodSample`, its file is `mood-<sample_id>.wav`."""

    model_config = ConfigDict(frozen=True)

    sample_id: str = Field(pattern=r"^[0-9a-f]{8}$")
    mood: str = Field(min_length=1)
    transcript: _Text = None
    consent_at: _Time = None

    @property
    def file_name(self) -> str:
        return f"mood-{self.sample_id}.wav"


class SampleVersionRecord(BaseModel):
    """A recording that was changed or removed; its file is `former-<former_id>.wav`.

    `sample_id` and `mood` are those of its sample, None for the main one; `removed` says that the
    sample went with it, at the time `at`. `original` says that the sample was denoised, and this is
    the recording as it came, which is kept as long as the sample.
    """

    model_config = ConfigDict(frozen=True)

    former_id: str = Field(pattern=r"^[0-9a-f]{8}$")
    sample_id: str | None = Field(None, pattern=r"^[0-9a-f]{8}$")
    mood: str | None = Field(None, min_length=1)
    transcript: _Text = None
    consent_at: _Time = None
    removed: bool = False
    original: bool = False
    at: Annotated[str, StringConstraints(max_length=40), AfterValidator(_to_utc)]

    @property
    def file_name(self) -> str:
        return f"former-{self.former_id}.wav"


class SpeakerRecord(BaseModel):
    """The content of `speaker.json`; fields as in `Speaker`, unknown ones are ignored.

    `is_rebuilt` says that it was damaged, and holds what could still be read.
    """

    model_config = ConfigDict(frozen=True)

    name: str = Field(min_length=1)
    has_sample: bool = False
    transcript: _Text = None
    language: _Code = None
    preset: _Text = None
    description: _Text = None
    colour: _Colour
    tags: _Tags = ()
    consent_at: _Time = None
    moods: Annotated[tuple[MoodRecord, ...], Field(max_length=MAX_MOODS)] = ()
    first_name: _Name = None
    formers: tuple[SampleVersionRecord, ...] = ()
    checksums: dict[str, int] = Field(default_factory=dict)
    is_rebuilt: bool = Field(default=False, exclude=True)

    def recording_of(self, sample_id: str | None) -> str:
        """Name of a sample's recording in the speaker's folder; None is the main sample."""
        return MAIN_SAMPLE if sample_id is None else f"mood-{sample_id}.wav"

    @property
    def recordings(self) -> tuple[str, ...]:
        """Names of its samples' recordings in the speaker's folder, the main one first."""
        main = (MAIN_SAMPLE,) if self.has_sample else ()
        return (*main, *(one.file_name for one in self.moods))

    @property
    def builtin_name(self) -> str:
        """As in `Speaker`."""
        return self.first_name or self.name

    @classmethod
    def create(cls, name: str, *, has_sample: bool, details: SpeakerDetails) -> SpeakerRecord:
        """Create a valid record; empty texts count as None."""
        return _validate({"name": clean_name(name), "has_sample": has_sample, **details})

    def with_fields(self, **fields: object) -> SpeakerRecord:
        """A record with other values in the given fields."""
        return _validate(dict(self) | fields)

    def with_name(self, name: str) -> SpeakerRecord:
        """A record with another name, which still has the first one."""
        name, first = clean_name(name), self.builtin_name
        return self.with_fields(name=name, first_name=None if first == name else first)

    def find_mood(self, sample_id: str) -> MoodRecord:
        """A further sample by its id.

        Raises:
            NotFound: There is none.
        """
        for one in self.moods:
            if one.sample_id == sample_id:
                return one
        raise NotFound(f"This sample of {self.name} isn't there any more.")

    def with_mood(self, mood: str, **fields: str | None) -> SpeakerRecord:
        """A record with one more mood, its last; that mood's file isn't there yet.

        Args:
            mood: As a person writes it.
            fields: `transcript` and `consent_at`.

        Raises:
            BadInput: The mood or a field can't be used, or there are too many.
            Conflict: There is a sample of that mood.
        """
        if len(self.moods) == MAX_MOODS:
            raise BadInput(f"{self.name} has {MAX_MOODS} moods already. Remove one first.")
        fresh = {"sample_id": secrets.token_hex(4), "mood": self._check_free(mood), **fields}
        return self.with_fields(moods=(*self.moods, fresh))

    def with_changed_mood(self, sample_id: str, **fields: str | None) -> SpeakerRecord:
        """A record with other values in a mood's `mood`, `transcript` or `consent_at`.

        Raises:
            NotFound: There is no such sample.
            BadInput: A value can't be used.
            Conflict: Another sample has that mood.
        """
        mine = self.find_mood(sample_id)
        values = {**dict(mine), **fields}
        values["mood"] = self._check_free(str(values["mood"]), mine)
        return self.with_fields(moods=tuple(values if one is mine else one for one in self.moods))

    def without_mood(self, sample_id: str) -> SpeakerRecord:
        """A record without one of its moods."""
        gone = self.find_mood(sample_id)
        return self.with_fields(moods=tuple(one for one in self.moods if one is not gone))

    def find_version(self, version_id: str) -> SampleVersionRecord:
        """An earlier recording by its id.

        Raises:
            NotFound: There is none.
        """
        for one in self.formers:
            if one.former_id == version_id:
                return one
        raise NotFound(f"This recording of {self.name} isn't kept any more.")

    def without_version(self, version_id: str) -> SpeakerRecord:
        """A record that doesn't name an earlier recording."""
        gone = self.find_version(version_id)
        return self.with_fields(formers=tuple(one for one in self.formers if one is not gone))

    def with_version_restored(self, version_id: str) -> SpeakerRecord:
        """A record with a sample as it was, and without the earlier recording it was kept as.

        Raises:
            NotFound: There is no such recording.
            BadInput: The speaker has too many moods.
            Conflict: Another sample has its mood now.
        """
        version, record = self.find_version(version_id), self.without_version(version_id)
        said = {"transcript": version.transcript, "consent_at": version.consent_at}
        if version.sample_id is None:
            return record.with_fields(has_sample=True, **said)
        if any(one.sample_id == version.sample_id for one in record.moods):
            return record.with_changed_mood(version.sample_id, **said)
        mood = record._check_free(version.mood or "")
        back = {"sample_id": version.sample_id, "mood": mood, **said}
        return record.with_fields(moods=(*record.moods, back))

    def _check_free(self, mood: str, mine: MoodRecord | None = None) -> str:
        """A normalized mood that no other sample has.

        Raises:
            BadInput: It can't be used.
            Conflict: Another sample has it.
        """
        mood = clean_mood(mood)
        if any(name_key(one.mood) == name_key(mood) for one in self.moods if one is not mine):
            raise Conflict(
                f"{self.name} has a sample for “{mood}” already. Choose another mood, or remove"
                " that sample."
            )
        return mood


def _validate(fields: Mapping[str, object]) -> SpeakerRecord:
    try:
        return SpeakerRecord.model_validate(fields)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        message = f"The {field} of {fields['name']} can't be used. {_REMEDIES[field]}"
        raise BadInput(message) from error


def clean_mood(text: str) -> str:
    """Normalize a mood to the form in which it is stored, like a name; the main one's is refused.

    Raises:
        BadInput: It is empty, too long or holds what scripts use around names.
    """
    try:
        mood = clean_name(text)
    except NameRejected as error:
        raise BadInput("Name the mood in one or two words without [ ] |, such as angry.") from error
    if len(mood) > MAX_TAG_CHARS:
        raise BadInput(
            f"The mood “{mood[:20]}…” is longer than {MAX_TAG_CHARS} letters; shorten it."
        )
    if name_key(mood) == NEUTRAL:
        raise BadInput(f"“{mood}” means the main sample. Choose another word for this one.")
    return mood


def read_record(path: Path) -> SpeakerRecord:
    """Read a `speaker.json`; a damaged one is rebuilt of the texts in it and the recording there.

    Raises:
        StorageFailed: It is missing or can't be read, or a newer studio wrote it.
    """
    try:
        content = read_file(path)
        with suppress(ValueError, BadInput):
            return parse_record(content)
        return _rebuild(path.parent, restore_rows(content).decode(errors="replace"))
    except FormatNewer as error:
        raise StorageFailed(f"The voice at {path.parent} is left out. {error}") from error
    except OSError as error:
        raise StorageFailed(
            f"The voice at {path.parent} is left out, since its {path.name} can't be read. Put that"
            " file back from a backup, or add the recordings there as a new voice and remove the "
            "folder."
        ) from error


def _rebuild(folder: Path, content: str) -> SpeakerRecord:
    record = SpeakerRecord(
        name=f"Damaged voice {folder.name}",
        has_sample=(folder / MAIN_SAMPLE).is_file(),
        colour=choose_colour(()),
        is_rebuilt=True,
    )
    for field, value in _TEXT_ROW.findall(content):
        with suppress(ValueError, BadInput):
            if field == "name":
                record = record.model_copy(update={"name": clean_name(json.loads(value))})
            elif field in _TEXTS:
                record = record.with_fields(**{field: json.loads(value)})
    return record


def parse_record(content: bytes) -> SpeakerRecord:
    """Parse the content of a `speaker.json`; one flipped bit is put right."""
    whole = _parse(mend(restore_rows(content)))
    with suppress(ValueError, BadInput, FormatNewer):
        read = _parse(content)
        return read if _is_edited_by_hand(read, whole) else whole
    return whole


def _parse(content: bytes) -> SpeakerRecord:
    record = SpeakerRecord.model_validate(SPEAKER_FORMAT.decode(content, by_hand=True))
    return record.model_copy(update={"name": clean_name(record.name), "is_rebuilt": False})


def _is_edited_by_hand(read: SpeakerRecord, whole: SpeakerRecord) -> bool:
    """Whether one bit made another letter of a text that people write, and nothing else.

    Not of a name, as the voice would be left out where another one is named so.
    """
    texts = {*_TEXTS, "tags"}
    fields = (one.model_dump(exclude=texts, exclude_unset=True) for one in (read, whole))
    return read.model_fields_set == whole.model_fields_set and next(fields) == next(fields)


def encode_record(record: SpeakerRecord) -> bytes:
    """A record as the content of a `speaker.json`."""
    return SPEAKER_FORMAT.encode(record.model_dump(mode="json"))


def write_record(path: Path, record: SpeakerRecord) -> None:
    """Write a `speaker.json`, which is whole or absent; a damaged one is kept beside it."""
    if record.is_rebuilt:
        set_aside(Disk(), path)
    SPEAKER_FORMAT.write(Disk(), path, record.model_dump(mode="json"))
