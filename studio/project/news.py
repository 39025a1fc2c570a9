"""What a project tells those who look at it: what changed. What it is now they look up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EditNews:
    """Somebody changed the document.

    Attributes:
        rev: The revision it made.
        client: Who did.
        line_ids: Lines that came, went or changed, or whose state did.
        order: Whether the order of lines changed.
        fields: What else of the document changed.
        speakers: Whether who speaks may have changed, or with which voice.
    """

    rev: int
    client: str
    line_ids: tuple[str, ...] = ()
    order: bool = False
    fields: tuple[str, ...] = ()
    speakers: bool = False


@dataclass(frozen=True, slots=True)
class LineNews:
    """A line is in another state."""

    line_id: str


@dataclass(frozen=True, slots=True)
class JobNews:
    """The render is in another state."""


@dataclass(frozen=True, slots=True)
class StorageNews:
    """The project can't be kept on the disk, or can again."""


News = EditNews | LineNews | JobNews | StorageNews
