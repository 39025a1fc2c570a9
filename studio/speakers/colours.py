"""Colours that tell speakers apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

PALETTE = (
    "#046bd0",
    "#b74b04",
    "#007d5a",
    "#9c46be",
    "#ca2f4e",
    "#766f08",
    "#007696",
    "#bb368d",
    "#3f7b05",
    "#6b58da",
    "#976501",
    "#007b7b",
)
"""Chips for white text (contrast 4.5 or more) that also stand out from a white page (4.5) and from
a dark one, `#0b0f19` (3); neighbours in the list lie far apart on the colour circle."""


def next_colour(taken: Iterable[str]) -> str:
    """The first colour of the palette that the fewest speakers have."""
    uses = Counter(taken)
    return min(PALETTE, key=lambda colour: uses[colour])
