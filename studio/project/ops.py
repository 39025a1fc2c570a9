"""The edit operations that a page can send; here their form is checked, not their sense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from studio.dialog.pronunciation import MAX_PRONUNCIATION_CHARS, MAX_PRONUNCIATIONS, Pronunciation

LineId = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
TakeId = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
LineIds = Annotated[list[LineId], Field(max_length=20_000)]


class _Op(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Insert(_Op):
    """Put new lines after a line; None is the beginning. A line that is there already stays."""

    op: Literal["insert"]
    after: LineId | None = None
    lines: Annotated[list[Mapping[str, Any]], Field(max_length=20_000)]


class Delete(_Op):
    """Take lines out; one that is gone already is no fault."""

    op: Literal["delete"]
    line_ids: LineIds


class Move(_Op):
    """Put lines after a line, in the order they are heard now."""

    op: Literal["move"]
    line_ids: LineIds
    after: LineId | None = None


class SetFields(_Op):
    """Give lines other values."""

    op: Literal["set"]
    line_ids: LineIds
    fields: Mapping[str, Any]


class Choose(_Op):
    """Let another take of a line be heard."""

    op: Literal["choose"]
    line_id: LineId
    take_id: TakeId | None


class Split(_Op):
    """Cut a line's text; `at` counts UTF-16 units, as JavaScript does."""

    op: Literal["split"]
    line_id: LineId
    at: Annotated[int, Field(ge=0)]
    new_line_id: LineId


class Join(_Op):
    """Make one line of several; its speaker is the first one's, silences become pause tags."""

    op: Literal["join"]
    line_ids: LineIds


class DeleteTake(_Op):
    """Take a take away; its file stays for undo, until somebody frees the space."""

    op: Literal["delete_take"]
    take_id: TakeId


class LockTake(_Op):
    """Keep a take from being deleted, or let it go."""

    op: Literal["lock_take"]
    take_id: TakeId
    locked: bool


class AcceptTake(_Op):
    """Say that a take is right, whatever seemed doubtful about it, or take that back."""

    op: Literal["accept_take"]
    take_id: TakeId
    accepted: bool


class CastVoice(_Op):
    """Let a speaker of the library speak for a name; None for the one of the same name."""

    op: Literal["cast"]
    speaker: str
    voice: Annotated[str, Field(max_length=100)] | None


class RenameSpeaker(_Op):
    """Give all lines of a speaker another name."""

    op: Literal["rename_speaker"]
    from_: Annotated[str, Field(alias="from")]
    to: str


class SetSettings(_Op):
    """Change the project's settings."""

    op: Literal["settings"]
    fields: Mapping[str, Any]


class PronunciationFields(BaseModel):
    """How a word or phrase is said."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    written: str = Field(
        min_length=1,
        max_length=MAX_PRONUNCIATION_CHARS,
        description="As it stands in the text; whole words, the longest entry first.",
    )
    spoken: str = Field(
        "",
        max_length=MAX_PRONUNCIATION_CHARS,
        description="What is spoken instead; empty leaves it out.",
    )
    match_case: bool = False
    enabled: bool = True

    def entry(self) -> Pronunciation:
        """The entry as the dialog layer knows it; unchecked."""
        return Pronunciation(self.written, self.spoken, self.match_case, self.enabled)


class SetPronunciations(_Op):
    """Say words otherwise: entries to put, in place of those for the same words, or to take out.

    Those taken out go first, so that an entry can get another word.
    """

    op: Literal["pronounce"]
    put: Annotated[list[PronunciationFields], Field(max_length=MAX_PRONUNCIATIONS)] = []
    remove: Annotated[list[str], Field(max_length=MAX_PRONUNCIATIONS)] = []


class Rename(_Op):
    """Give the project another name."""

    op: Literal["rename"]
    name: str


class Replace(_Op):
    """Replace words in the text of lines; None for all lines."""

    op: Literal["replace"]
    find: Annotated[str, Field(min_length=1, max_length=10_000)]
    with_: Annotated[str, Field(alias="with", max_length=10_000)]
    whole_word: bool = False
    match_case: bool = False
    line_ids: LineIds | None = None


Op = Annotated[
    Insert
    | Delete
    | Move
    | SetFields
    | Choose
    | Split
    | Join
    | DeleteTake
    | LockTake
    | AcceptTake
    | CastVoice
    | RenameSpeaker
    | SetSettings
    | SetPronunciations
    | Rename
    | Replace,
    Field(discriminator="op"),
]
OPS_ADAPTER: TypeAdapter[list[Op]] = TypeAdapter(list[Op])
