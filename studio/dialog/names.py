"""What may be a speaker's name, in scripts and in the library alike."""

from __future__ import annotations

import unicodedata

from studio.errors import NameRejected

MAX_NAME_CHARS = 60

_RESERVED = frozenset("[]|")


def clean_name(text: str) -> str:
    """Bring a name to the one form under which it is kept.

    NFC, runs of white space become one space, invisible characters (zero-width, direction marks,
    other controls) are dropped.

    Raises:
        NameRejected: Nothing visible is left, it is longer than `MAX_NAME_CHARS`, or it holds
            one of `[ ] |`, which scripts use around names.
    """
    spaced = " ".join(text.split())
    visible = "".join(char for char in spaced if not _is_invisible(char))
    # What an invisible character held apart, two spaces or a letter and its accent, is joined now.
    name = " ".join(unicodedata.normalize("NFC", visible).split())
    if not name:
        raise NameRejected("A speaker needs a name with at least one visible character.")
    if len(name) > MAX_NAME_CHARS:
        raise NameRejected(
            f"The name “{name[:20]}…” has {len(name)} characters; {MAX_NAME_CHARS} are the most."
        )
    reserved = sorted(_RESERVED.intersection(name))
    if reserved:
        raise NameRejected(
            f"The name “{name}” holds {reserved[0]}, which scripts use around names."
        )
    return name


def same_name(one: str, other: str) -> bool:
    """Whether two names mean the same speaker: case does not tell them apart."""
    return name_key(one) == name_key(other)


def name_key(name: str) -> str:
    """The form of a name for look-ups; equal for names that differ only in case."""
    return unicodedata.normalize("NFC", name.casefold())


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn"}
