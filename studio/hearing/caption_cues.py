"""Captions as people read them: a sentence at a time, in two short lines, and long enough.

The limits are those of Netflix' "Timed Text Style Guide: General Requirements": two lines, 42
characters each, from 5/6 s to 7 s; and 17 characters a second, as its guide for English has it for
children's programmes, which anybody keeps up with.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import regex

from studio.hearing.word_times import WordTime

MAX_LINE_CHARS = 42
"""Of each of a caption's two lines; a wide character counts twice."""

MAX_CAPTION_CHARS = 2 * MAX_LINE_CHARS

_SNAP_CHARS = 20  # a break is better within half as many characters of a word's middle

MIN_CAPTION_S = 5 / 6
MAX_CAPTION_S = 7.0
_CHARS_PER_S = 17.0
_LEAST_PAUSE_S = 0.1  # shorter ones are within words, too
_WIDE = frozenset("WF")
_GRAPHEME = regex.compile(r"\X")
_LEADING_VOWELS = frozenset("\u0e40\u0e41\u0e42\u0e43\u0e44\u0ec0\u0ec1\u0ec2\u0ec3\u0ec4")
"""Of Thai and Lao, which write no spaces between words: a syllable begins with one of these."""


@dataclass(frozen=True, slots=True)
class CaptionCue:
    """A piece of a line's text; times are seconds of the scene.

    Attributes:
        start: Offset of its first character in the line's text.
        end: Offset of the character after its last.
        words: Those that begin within it.
    """

    start: int
    end: int
    start_s: float
    end_s: float
    words: tuple[WordTime, ...]


def place_words(spans: Iterable[tuple[int, int]], words: Sequence[WordTime]) -> list[CaptionCue]:
    """A cue for each span of a text in which a word begins; one without joins that before it."""
    cues: list[CaptionCue] = []
    for start, end in spans:
        inside = tuple(word for word in words if start <= word.start < end)
        if inside:
            cues.append(CaptionCue(start, end, inside[0].start_s, inside[-1].end_s, inside))
        elif cues:
            cues[-1] = replace(cues[-1], end=end)
    return cues


def divide_cue(cue: CaptionCue, text: str) -> Iterator[CaptionCue]:
    """Divide a cue that isn't read in two lines, or is longer than `MAX_CAPTION_S`.

    Args:
        cue: With the times of its words; without words it is only as long as it is.
        text: The text of its line.
    """
    said = text[cue.start : cue.end]
    if len(cue.words) < 2:
        yield from _divide_word(cue, text)
        return
    is_too_long = cue.end_s - cue.start_s > MAX_CAPTION_S
    is_held = find_break(said) is not None
    place, shorter_s = _find_place(cue, text, at_pause=is_held)
    is_flash = shorter_s < MIN_CAPTION_S and find_break(said, anywhere=True) is not None
    if (is_held or is_flash) and not is_too_long:
        yield cue
        return
    before, after = cue.words[:place], cue.words[place:]
    edge = _find_edge(text, before[-1], after[0])
    for start, end, words in ((cue.start, edge, before), (edge, cue.end, after)):
        inner = text[start:end]
        start += len(inner) - len(inner.lstrip())
        end -= len(inner) - len(inner.rstrip())
        part = CaptionCue(start, end, words[0].start_s, words[-1].end_s, words)
        yield from divide_cue(part, text)


def _divide_word(cue: CaptionCue, text: str) -> Iterator[CaptionCue]:
    """Divide a word that two lines don't hold, such as an address; its parts share its time.

    So is what is written without spaces, where nobody knows of its words.
    """
    said = text[cue.start : cue.end]
    places, breaks = _list_graphemes(said), set(_list_breaks(said))
    is_too_long = cue.end_s - cue.start_s > MAX_CAPTION_S and breaks
    if not places or not (is_too_long or find_break(said, anywhere=True) is None):
        yield cue
        return
    place = min(places, key=lambda at: abs(len(said) - 2 * at) - _SNAP_CHARS * (at in breaks))
    edge, edge_s = cue.start + place, cue.start_s + (cue.end_s - cue.start_s) * place / len(said)
    yield from _divide_word(replace(cue, end=edge, end_s=edge_s), text)
    yield from _divide_word(replace(cue, start=edge, start_s=edge_s, words=()), text)


def _find_place(cue: CaptionCue, text: str, *, at_pause: bool) -> tuple[int, float]:
    """The word with which the second part of a cue begins, and how long the shorter part is said.

    It is the one nearest to the middle, or after the longest pause, of those that leave each part
    time to be read; where there is none, the parts are as long as each other.
    """
    middle = (cue.start + cue.end) / 2

    def shorter_s(at: int) -> float:
        return min(cue.words[at - 1].end_s - cue.start_s, cue.end_s - cue.words[at].start_s)

    def rank(at: int) -> tuple[bool, int, float]:
        before, after = cue.words[at - 1], cue.words[at]
        is_word = _may_break(text[after.start - 1], text[after.start])
        pause_s = after.start_s - before.end_s if at_pause else 0.0
        return not is_word, -round(pause_s / _LEAST_PAUSE_S), abs(after.start - middle)

    places = range(1, len(cue.words))
    lasting = [at for at in places if shorter_s(at) >= MIN_CAPTION_S]
    place = min(lasting, key=rank) if lasting else max(places, key=shorter_s)
    return place, shorter_s(place)


def _find_edge(text: str, before: WordTime, after: WordTime) -> int:
    """Where the marks in front of a word begin."""
    spaces = (at for at in range(before.end, after.start) if text[at].isspace())
    return next(spaces, after.start)


def spread_words(text: str, start_s: float, end_s: float) -> tuple[WordTime, ...]:
    """The words of a text, in time by their characters, where nobody knows when they are said."""
    words, at = [], 0
    pace_s = (end_s - start_s) / max(1, len(text))
    for word in text.split():
        at = text.index(word, at)
        end = at + len(word)
        words.append(WordTime(word, at, end, start_s + at * pace_s, start_s + end * pace_s))
        at = end
    return tuple(words)


def lengthen_cues(cues: Sequence[CaptionCue], end_s: float) -> list[CaptionCue]:
    """Cues that stay until they are read, at most until the next one or the scene's end."""
    until_s = [*(cue.start_s for cue in cues[1:]), end_s]
    return [
        replace(cue, end_s=max(cue.end_s, min(next_s, cue.start_s + _reading_s(cue))))
        for cue, next_s in zip(cues, until_s, strict=False)  # without cues the end is left over
    ]


def _reading_s(cue: CaptionCue) -> float:
    return max(MIN_CAPTION_S, (cue.end - cue.start) / _CHARS_PER_S)


def find_break(text: str, *, anywhere: bool = False) -> int | None:
    """Where the second of two lines begins, which are about as long; 0 for one line.

    Args:
        text: Of both.
        anywhere: Whether a line may end within a word.

    Returns:
        None for a text that two lines don't hold.
    """
    widths = [0, *accumulate(2 if _is_wide(char) else 1 for char in text)]
    if widths[-1] <= MAX_LINE_CHARS:
        return 0
    places = _list_graphemes(text) if anywhere else _list_breaks(text)
    fitting = [
        at
        for at in places
        if widths[at - text[at - 1].isspace()] <= MAX_LINE_CHARS
        and widths[-1] - widths[at] <= MAX_LINE_CHARS
    ]
    return min(fitting, key=lambda at: abs(widths[-1] - 2 * widths[at]), default=None)


def _list_graphemes(text: str) -> list[int]:
    """Where characters begin as people see them, but for the first."""
    return [one.start() for one in _GRAPHEME.finditer(text)][1:]


def _list_breaks(text: str) -> list[int]:
    return [at for at in range(1, len(text)) if _may_break(text[at - 1], text[at])]


def _may_break(before: str, after: str) -> bool:
    """Whether a line may end there: at a space, beside a wide letter, before a leading vowel."""
    if before.isspace():
        return True
    if after in _LEADING_VOWELS:
        return unicodedata.category(before)[0] in "LM"
    is_letter = unicodedata.category(after)[0] in "LN"
    return is_letter and _is_wide(before) and _is_wide(after)


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in _WIDE


def break_lines(text: str, place: Callable[[str], str] = str) -> str:
    """A text in one or two lines; `place` makes each what stands in the file."""
    at = find_break(text)
    if at is None:
        at = find_break(text, anywhere=True) or 0
    lines = (text[:at], text[at:]) if at else (text,)
    return "\n".join(place(" ".join(line.split())) for line in lines)
