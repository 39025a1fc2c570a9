"""How long a text is expected to take when spoken, in any language, without understanding it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import numpy as np

from studio.dialog.planning import Segment, SpeechSegment
from studio.dialog.tags import TAG

_S_PER_UNIT = 0.068  # a letter, at the pace of somebody reading aloud
_START_S = 0.2
_PUNCTUATION_S = 0.35

_LONG_PAUSE = re.compile(r"\.\.\.|…|—|–|\n")
_ACRONYM = re.compile(r"\b(?:[^\W\d_a-zà-öø-ÿ]\.?){2,}\b")
_REPEATED_UNITS = 9
_REPEATED_SHARE = 0.6
_MAX_DIGITS = 3


@dataclass(frozen=True, slots=True)
class ExpectedSpeech:
    """What was to be said.

    Attributes:
        text: As the voice got it, without pauses.
        speed: Times as fast as usual, where that was asked for.
    """

    text: str
    speed: float = 1.0

    @property
    def slowness(self) -> float:
        """By what allowances in seconds are divided: the speed, where it is slow."""
        return min(1.0, self.speed)

    @property
    def tags(self) -> int:
        """Sounds beside the words, such as `[laugh]`."""
        return len(TAG.findall(self.text))

    @property
    def has_dots(self) -> bool:
        """Whether it asks for a long pause inside."""
        return _LONG_PAUSE.search(self.text.strip(" .…—–\n")) is not None

    @property
    def amount(self) -> str:
        """Its words or, where a script has no spaces, its characters, counted."""
        wide = sum(_is_wide(char) for char in self.text)
        if wide > len(self.text) / 3:
            return f"{wide} characters" if wide > 1 else "one character"
        words = len(TAG.sub(" ", self.text).split())
        return f"{words} words" if words > 1 else "one word"

    @property
    def they(self) -> str:
        """The subject of a sentence that goes on about `amount`."""
        return "it takes" if self.amount.startswith("one") else "they take"


@dataclass(frozen=True, slots=True)
class ExpectedDuration:
    """In seconds, by a quick and by a slow reader's way with numbers, signs and capitals."""

    least_s: float
    most_s: float

    @property
    def middle_s(self) -> float:
        """Between the two."""
        return (self.least_s + self.most_s) / 2


def estimate_duration(said: ExpectedSpeech) -> ExpectedDuration:
    """How long a text usually takes; both ends are the same where it has letters only."""
    text = TAG.sub(" ", unicodedata.normalize("NFC", said.text))
    least, most = _count_units(text)
    marks = sum(char in ".!?;:,。！？、，؟" for char in text.rstrip(" .!?。！？"))
    least_s = _START_S + _S_PER_UNIT * least
    most_s = _START_S + _S_PER_UNIT * most + _PUNCTUATION_S * marks
    return ExpectedDuration(least_s / said.speed, most_s / said.speed)


def repeats_itself(text: str) -> bool:
    """Whether a text says nearly the same again right after it, so that its sound does too.

    Numbers are taken to do so: how they are read isn't known here.
    """
    if sum(char.isdigit() for char in text) > _MAX_DIGITS:
        return True
    letters = [char for char in text.casefold() if char.isalnum()]
    codes = np.array([ord(char) for char in letters], dtype=np.int32)
    units = np.array([_weigh_char(char)[0] for char in letters])
    for lag in range(1, len(codes) // 2 + 1):
        same = np.cumsum((codes[lag:] == codes[:-lag]) * units[lag:])
        width = max(lag, round(_REPEATED_UNITS / max(1.0, float(units.mean()))))
        if width > len(same):
            width = len(same)
        alike = np.concatenate([same[width - 1 : width], same[width:] - same[:-width]])
        if float(alike.max(initial=0.0)) >= max(_REPEATED_UNITS, lag) * _REPEATED_SHARE:
            return True
    return False


def _count_units(text: str) -> tuple[float, float]:
    weights = [_weigh_char(char) for char in text]
    spelt = sum(len(match[0].replace(".", "")) for match in _ACRONYM.finditer(text))
    least = sum(weight[0] for weight in weights)
    return least, sum(weight[1] for weight in weights) + 3.0 * spelt


def _weigh_char(char: str) -> tuple[float, float]:
    """For how many letters a character counts at least and at most when it is said."""
    category = unicodedata.category(char)
    if char.isdigit() or category.startswith("N"):
        return (1.0, 10.0)
    if category in ("Sm", "Sc", "So") or char in "%&@#/*":
        return (0.0, 14.0)
    if category.startswith("M"):
        return (0.2, 0.8)
    if not category.startswith("L"):
        return (0.0, 0.4 if char.isspace() else 0.0)
    if not _is_wide(char):
        return (0.8, 1.4) if category == "Lo" else (1.0, 1.0)
    return (1.5, 2.5) if "KANA" in unicodedata.name(char, "") else (2.0, 5.0)


def _is_wide(char: str) -> bool:
    return char.isalpha() and unicodedata.east_asian_width(char) in ("W", "F", "H")


def build_expected_speech(segment: Segment) -> ExpectedSpeech:
    """What a segment was to say."""
    assert isinstance(segment, SpeechSegment)
    speed = segment.params.get("speed", 1.0)
    is_number = isinstance(speed, int | float) and not isinstance(speed, bool) and speed > 0
    return ExpectedSpeech(segment.text, float(speed) if is_number else 1.0)
