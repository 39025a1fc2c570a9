"""Prose in pieces: narration and quotations, which together are the text again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PieceKind(StrEnum):
    """Whether a piece is told or said."""

    NARRATION = "narration"
    QUOTATION = "quotation"


@dataclass(frozen=True, slots=True)
class ProsePiece:
    """A part of a text.

    Attributes:
        kind: Whether it is told or said; a quotation has its marks.
        text: As it stands in the text, with white space.
        start: Where it begins, in characters.
        end: Where it ends.
        speaker: Who says a quotation, as the text calls her; `FIRST_PERSON` for who tells the
            story; None for narration, and where nothing says.
        confidence: The share of quotations found by the same sign whose speaker is right.
    """

    kind: PieceKind
    text: str
    start: int
    end: int
    speaker: str | None = None
    confidence: float = 0.0


FIRST_PERSON = "I"


@dataclass(frozen=True, slots=True)
class Pieces:
    """All pieces of a text, in order.

    Raises:
        ValueError: They aren't the text when joined.
    """

    source: str
    pieces: tuple[ProsePiece, ...]

    def __post_init__(self) -> None:
        at = 0
        for piece in self.pieces:
            if piece.start != at or piece.text != self.source[at : piece.end] or not piece.text:
                raise ValueError(f"The pieces leave the text at character {at}.")
            at = piece.end
        if at != len(self.source):
            raise ValueError(f"The pieces end at character {at} of {len(self.source)}.")

    @property
    def quotations(self) -> tuple[ProsePiece, ...]:
        return tuple(piece for piece in self.pieces if piece.kind is PieceKind.QUOTATION)
