"""A line's text: as a dialog keeps it, and as a voice speaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import regex

from studio.dialog.model import MAX_LINE_CHARS, MAX_SCRIPT_BYTES
from studio.errors import ScriptError

_SURROGATES = regex.compile(r"\p{Cs}")
_SPEAKABLE = regex.compile(r"[\p{L}\p{N}]")

# Zero-width joiners between caseless letters spell Persian and Indic words; elsewhere, in Latin
# words and in emoji, nobody hears them.
_UNHEARD = regex.compile(
    r"(?!(?<=[\p{Lo}\p{M}])[\u200c\u200d]\p{Lo})[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cs}]"
)


def paragraph(text: str) -> str:
    """Bring text to the form a dialog keeps: one paragraph, white space collapsed, no surrogates.

    Zero-width and direction characters stay; they matter on the page.

    Raises:
        ScriptError: It is longer than `MAX_LINE_CHARS`.
    """
    one = " ".join(_SURROGATES.sub("\ufffd", text).split())
    if len(one) > MAX_LINE_CHARS:
        raise ScriptError(
            f"This line has {len(one):,} characters; {MAX_LINE_CHARS:,} are the most. "
            "Divide it into several lines."
        )
    return one


def normalize_spoken_text(text: str) -> str:
    """Take out what a voice can't say: controls, zero-width and direction characters."""
    return " ".join(_UNHEARD.sub("", " ".join(text.split())).split())


def is_speakable(text: str) -> bool:
    """Whether there is a letter or a digit of any script to speak."""
    return _SPEAKABLE.search(text) is not None


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
        said = self.pronounce(normalize_spoken_text(text)) if has_room else ""
        self.grown_chars += max(0, len(said) - len(text))
        if len(said) > MAX_LINE_CHARS or not has_room:
            raise ScriptError(
                "with its pronunciations this line is too long to speak. Shorten their spoken "
                "forms, or the line."
            )
        return said
