"""Text as it is kept in a dialog, and as it is spoken."""

from __future__ import annotations

import regex

from studio.dialog.model import MAX_LINE_CHARS
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


def heard(text: str) -> str:
    """Take out what a voice can't say: controls, zero-width and direction characters."""
    return " ".join(_UNHEARD.sub("", " ".join(text.split())).split())


def is_speakable(text: str) -> bool:
    """Whether there is a letter or a digit of any script to speak."""
    return _SPEAKABLE.search(text) is not None
