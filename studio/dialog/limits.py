"""What planning has to know of a backend."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_WIDE = "WF"


@dataclass(frozen=True, slots=True)
class SpeechLimits:
    """What the chosen backend can take; made from its capabilities.

    Attributes:
        max_chars: Most that is spoken in one pass, as `weight` counts it.
        params: A parameter's name to its (minimum, maximum).
        languages: None means any.
        wide_weight: For how many characters a wide one (Chinese, Japanese, Korean) counts: it is
            a syllable or two, and takes as long to say.
        instructions: Whether words beside a line change how it is spoken.
        guess: The language in which text is spoken that nobody gave one for; None where the
            model hears it itself.
    """

    max_chars: int
    tags: frozenset[str] = frozenset()
    params: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    languages: frozenset[str] | None = None
    wide_weight: float = 1.0
    instructions: bool = False
    guess: Callable[[str], str] | None = None

    def weight(self, char: str) -> float:
        """How much of `max_chars` a character takes."""
        if self.wide_weight == 1:
            return 1.0
        return self.wide_weight if unicodedata.east_asian_width(char) in _WIDE else 1.0
