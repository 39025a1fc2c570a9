"""What a voice hears of the lines of one dialog, held to a length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from studio.dialog.model import MAX_LINE_CHARS, MAX_SCRIPT_BYTES
from studio.dialog.paragraph import heard
from studio.errors import ScriptError

Pronounce = Callable[[str], str]
"""What a voice hears of a text, as `Pronouncing.spoken` tells it."""


@dataclass(slots=True)
class SpokenText:
    """Says line after line otherwise; short words with long spoken forms soon fill the memory.

    Attributes:
        pronounce: None leaves every text as it is.
        grown_chars: By how much the lines became longer so far.
    """

    pronounce: Pronounce | None
    grown_chars: int = 0

    def of(self, text: str) -> str:
        """What is heard of a line.

        Raises:
            ScriptError: It is far more than was written.
        """
        if self.pronounce is None:
            return text
        has_room = self.grown_chars <= MAX_SCRIPT_BYTES
        said = self.pronounce(heard(text)) if has_room else ""
        self.grown_chars += max(0, len(said) - len(text))
        if len(said) > MAX_LINE_CHARS or not has_room:
            raise ScriptError(
                "with its pronunciations this line is too long to speak. Shorten their spoken "
                "forms, or the line."
            )
        return said
