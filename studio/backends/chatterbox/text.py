"""What of a line's text decides before the model: whether to speak it, and for how long."""

from __future__ import annotations

import math
import unicodedata

from studio.backends.draft.package import language_of_text
from studio.dialog.paragraph import is_speakable
from studio.dialog.tags import replace_tags
from studio.errors import SpeechFailed

TOKENS_PER_S = 25
"""Speech tokens in a second of audio, for all Chatterbox models."""

MAX_TOKENS = 1_000
"""40 s, the longest line the package makes itself."""

_STARTING_S = 3.0
_S_PER_CHAR = 0.2  # a very slow reader: 60 words a minute
_WIDE_WEIGHT = 2  # a Chinese or Japanese character is a syllable, or two


def max_tokens(text: str) -> int:
    """The most speech tokens a line may take; past them the model has lost its way.

    25 tokens a second for 3 s plus 0.2 s a character, wide (East Asian) characters counting
    twice, and never more than `MAX_TOKENS`. People speak about three times as fast.
    """
    weight = sum(_WIDE_WEIGHT if _is_wide(char) else 1 for char in text)
    return min(MAX_TOKENS, math.ceil(TOKENS_PER_S * (_STARTING_S + _S_PER_CHAR * weight)))


def check_speakable(text: str) -> None:
    """Refuse what would make a model babble: nothing, or tags alone.

    Raises:
        SpeechFailed: There is no letter or digit outside of tags.
    """
    if not is_speakable(replace_tags(text, lambda _tag, _name: "")):
        raise SpeechFailed(
            f"There is nothing to speak in “{text.strip()}”. Write at least one word beside it."
        )


def language_or_guess(language: str | None, text: str) -> str:
    """The line's language, or the one that its script suggests."""
    guess = language or language_of_text(text).split("-")[0]
    return "zh" if guess == "cmn" else guess


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"
