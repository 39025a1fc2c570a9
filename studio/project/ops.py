"""The edit operations that a page can send; only their form is checked here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from studio.dialog.pronunciation import MAX_PRONUNCIATION_CHARS, MAX_PRONUNCIATIONS, Pronunciation
from studio.storage.json_bounds import BoundedModel

LineId = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
TakeId = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
CommentId = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
LineIds = Annotated[list[LineId], Field(max_length=20_000, fail_fast=True)]


class _Op(BoundedModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Insert(_Op):
    """Insert new lines after a line; None is the start. A line that exists already stays."""

    op: Literal["insert"]
    after: LineId | None = None
    lines: Annotated[list[Mapping[str, Any]], Field(max_length=20_000, fail_fast=True)]


class Delete(_Op):
    """Delete lines; no error if one is deleted already."""

    op: Literal["delete"]
    line_ids: LineIds


class Move(_Op):
    """Move lines after a line, in their current order."""

    op: Literal["move"]
    line_ids: LineIds
    after: LineId | None = None


class SetFields(_Op):
    """Change values of lines."""

    op: Literal["set"]
    line_ids: LineIds
    fields: Mapping[str, Any]


class Choose(_Op):
    """Choose another take of a line."""

    op: Literal["choose"]
    line_id: LineId
    take_id: TakeId | None


class Split(_Op):
    """Split a line's text; `at` counts UTF-16 units, as JavaScript does."""

    op: Literal["split"]
    line_id: LineId
    at: Annotated[int, Field(ge=0)]
    new_line_id: LineId


class Join(_Op):
    """Join several lines into one with the first one's speaker; silences become pause tags."""

    op: Literal["join"]
    line_ids: LineIds


class DeleteTake(_Op):
    """Delete a take; its file stays for undo until the space is freed."""

    op: Literal["delete_take"]
    take_id: TakeId


class LockTake(_Op):
    """Lock a take, so that it can't be deleted, or unlock it."""

    op: Literal["lock_take"]
    take_id: TakeId
    locked: bool


class AcceptTake(_Op):
    """Accept a take in spite of its quality issues, or withdraw that."""

    op: Literal["accept_take"]
    take_id: TakeId
    accepted: bool


class StarTake(_Op):
    """Mark a take with a star, or take it off."""

    op: Literal["star_take"]
    take_id: TakeId
    starred: bool


class CastVoice(_Op):
    """Cast a speaker of the library for a name; None for the speaker of that name."""

    op: Literal["cast"]
    speaker: str
    voice: Annotated[str, Field(max_length=100)] | None


class SetCharacter(_Op):
    """Change a character's settings; a field that is null is set back."""

    op: Literal["character"]
    speaker: str
    fields: Mapping[str, Any]


class RenameSpeaker(_Op):
    """Rename the speaker of all its lines."""

    op: Literal["rename_speaker"]
    from_: Annotated[str, Field(alias="from")]
    to: str


class SetSettings(_Op):
    """Change the project's settings."""

    op: Literal["settings"]
    fields: Mapping[str, Any]


class PronunciationFields(BoundedModel):
    """The pronunciation of a word or phrase."""

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
        """The same as a `Pronunciation`, unchecked."""
        return Pronunciation(self.written, self.spoken, self.match_case, self.enabled)


class SetPronunciations(_Op):
    """Add or replace pronunciations, or remove some.

    Removals are applied first, so that the word of an entry can be changed.
    """

    op: Literal["pronounce"]
    put: list[PronunciationFields] = Field([], max_length=MAX_PRONUNCIATIONS, fail_fast=True)
    remove: list[str] = Field([], max_length=MAX_PRONUNCIATIONS, fail_fast=True)


class AddComment(_Op):
    """Comment on a line; a comment that exists already stays. The studio sets the time."""

    op: Literal["comment"]
    comment_id: CommentId
    line_id: LineId
    author: str
    text: str


class ChangeComment(_Op):
    """Resolve a comment or open it again, or change its text."""

    op: Literal["change_comment"]
    comment_id: CommentId
    resolved: bool | None = None
    text: str | None = None


class DeleteComment(_Op):
    """Delete a comment; no error if it is deleted already."""

    op: Literal["delete_comment"]
    comment_id: CommentId


class Rename(_Op):
    """Rename the project."""

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
    | StarTake
    | CastVoice
    | SetCharacter
    | RenameSpeaker
    | SetSettings
    | SetPronunciations
    | AddComment
    | ChangeComment
    | DeleteComment
    | Rename
    | Replace,
    Field(discriminator="op"),
]
OPS_ADAPTER: TypeAdapter[list[Op]] = TypeAdapter(list[Op])
