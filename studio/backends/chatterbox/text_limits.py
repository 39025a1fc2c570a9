"""What a line's text decides before the model: speakable or not, its bound, Chinese words."""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

from huggingface_hub import constants

from studio.backends.base import LoadProgress
from studio.backends.chatterbox.variants import LANGUAGES, guess_language, normalize_language
from studio.dialog.line_text import is_speakable
from studio.dialog.tags import replace_tags
from studio.errors import ModelUnavailable, SpeechFailed

TOKENS_PER_S = 25
"""Speech tokens in a second of audio, for all Chatterbox models."""

MAX_TOKENS = 1_000
"""40 s, the longest line the package makes itself."""

_STARTING_S, _S_PER_CHAR = 3.0, 0.2  # a very slow reader: 60 words a minute
_SHORT_STARTING_S, _SHORT_S_PER_CHAR = 1.5, 0.15
_FEW_WORDS, _SHORT_WEIGHT = 2, 30  # of what the models like to go on babbling after
_WIDE_WEIGHT = 2  # a Chinese or Japanese character is a syllable, or two
_NUMBER_WEIGHT = 4  # a digit or a sign is a word
_NUMBERS = frozenset(("Nd", "Nl", "No", "Sc"))  # with currency
_SIGNS = frozenset("%&@#+=<>°")
_TAG_WEIGHT = 12  # a laugh lasts two seconds


def estimate_token_bound(text: str) -> int:
    """The most speech tokens a line may take; past them the model has lost its way.

    25 tokens a second for 3 s plus 0.2 s a character, and never more than `MAX_TOKENS`. Up to two
    words have 1.5 s plus 0.15 s a character. Wide (East Asian) characters count twice, digits and
    signs, which are words when spoken, four times. People speak about three times as fast.
    """
    words, tags = _split_tags(text)
    weight = sum(map(_char_weight, words)) + _TAG_WEIGHT * tags
    is_short = len(words.split()) <= _FEW_WORDS and weight <= _SHORT_WEIGHT
    starting_s, s_per_char = (
        (_SHORT_STARTING_S, _SHORT_S_PER_CHAR) if is_short else (_STARTING_S, _S_PER_CHAR)
    )
    return min(MAX_TOKENS, math.ceil(TOKENS_PER_S * (starting_s + s_per_char * weight)))


def check_speakable(text: str) -> None:
    """Refuse what would make a model babble: nothing, or tags alone.

    Raises:
        SpeechFailed: There is no letter or digit outside of tags.
    """
    if not is_speakable(replace_tags(text, lambda _tag, _name: "")):
        raise SpeechFailed(
            f"There is nothing to speak in “{text.strip()}”. Write at least one word beside it."
        )


def choose_language(language: str | None, text: str) -> str:
    """The line's language, or the one that its script suggests, by the multilingual model's name.

    Raises:
        SpeechFailed: It is none of `LANGUAGES`, in which the model would babble.
    """
    code = normalize_language(language) if language else guess_language(text)
    if code not in LANGUAGES:
        raise SpeechFailed(_unknown_language_message(code, is_guess=language is None))
    return code


def _unknown_language_message(code: str, *, is_guess: bool) -> str:
    seems = "This line seems to be" if is_guess else "This line is said to be"
    return (
        f"{seems} in a language that Chatterbox Multilingual doesn't speak ({code}). Give the "
        f"language it is in, one of {', '.join(sorted(LANGUAGES))}, or choose another voice engine."
    )


def _split_tags(text: str) -> tuple[str, int]:
    """A text without its tags, and how many there were."""
    names: list[str] = []

    def left_out(_tag: str, name: str) -> str:
        names.append(name)
        return ""

    return replace_tags(text, left_out), len(names)


def _char_weight(char: str) -> int:
    category = unicodedata.category(char)
    if category in _NUMBERS or char in _SIGNS:
        return _NUMBER_WEIGHT
    return _WIDE_WEIGHT if unicodedata.east_asian_width(char) in "WF" else 1


# Word boundaries for Chinese, which the multilingual model was trained with.
#
# The package fetches its segmenter's model without a word, and again wherever it is missing. Here
# that happens with the model's load, shown as its progress; without it Chinese is still read.

NO_SEGMENTER = (
    "Chinese is read without word boundaries, which sounds worse: their model isn't on this "
    "machine. Load Chatterbox Multilingual again with a network to have it."
)
_MODEL = "spacy_ontonotes"

log = logging.getLogger(__name__)


def segmenter_folder() -> Path:
    """Where the segmenter's package looks for its model."""
    return Path(os.environ.get("PKUSEG_HOME", "~/.pkuseg")).expanduser() / _MODEL


def fetch_segmenter(progress: Callable[[LoadProgress], None]) -> None:
    """Fetch what is needed for word boundaries, where it isn't here; go on where it can't be had.

    Raises:
        Cancelled: `progress` raised it.
    """
    folder = segmenter_folder()
    if (
        folder.is_dir()
        or constants.HF_HUB_OFFLINE
        or importlib.util.find_spec("spacy_pkuseg") is None
    ):
        return
    from spacy_pkuseg.config import Config

    from studio.backends.hub.download import fetch_archive

    try:
        fetch_archive(
            Config.model_urls[_MODEL],
            sha256=Config.model_hash[_MODEL],
            folder=folder,
            progress=progress,
        )
    except ModelUnavailable as error:
        log.warning("%s (%s)", NO_SEGMENTER, error)


def load_segmenter() -> Any:
    """The package's `pkuseg`; None where its model isn't here."""
    folder = segmenter_folder()
    if not folder.is_dir():
        return None
    from spacy_pkuseg import pkuseg

    return pkuseg(str(folder))
