"""Captions as people read them: a sentence at a time, in two short lines, and long enough.

The limits are those of Netflix' "Timed Text Style Guide: General Requirements": two lines, 42
characters each, from 5/6 s to 7 s; and 17 characters a second, as its guide for English has it for
children's programmes, which anybody keeps up with.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import regex

from studio.hearing.word_times import WordTime

MAX_LINE_CHARS = 42
"""Of each of a caption's two lines; a wide character counts twice."""

MAX_CAPTION_CHARS = 2 * MAX_LINE_CHARS

MIN_CAPTION_S = 5 / 6
MAX_CAPTION_S = 7.0
_CHARS_PER_S = 17.0
_WIDE = frozenset("WF")
_GRAPHEME = regex.compile(r"\X")


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
    is_too_long = cue.end_s - cue.start_s > MAX_CAPTION_S
    if len(cue.words) < 2:
        yield from _divide_word(cue, text)
        return
    if not (is_too_long or find_break(said) is None):
        yield cue
        return
    place = _find_pause(cue) if find_break(said) is not None else _find_middle(cue)
    before, after = cue.words[:place], cue.words[place:]
    edge = _find_edge(text, before[-1], after[0])
    for start, end, words in ((cue.start, edge, before), (edge, cue.end, after)):
        inner = text[start:end]
        start += len(inner) - len(inner.lstrip())
        end -= len(inner) - len(inner.rstrip())
        part = CaptionCue(start, end, words[0].start_s, words[-1].end_s, words)
        yield from divide_cue(part, text)


def _divide_word(cue: CaptionCue, text: str) -> Iterator[CaptionCue]:
    """Divide a word that two lines don't hold, such as an address; its parts share its time."""
    said = text[cue.start : cue.end]
    places = _list_graphemes(said)
    if not places or find_break(said, anywhere=True) is not None:
        yield cue
        return
    place = min(places, key=lambda at: abs(len(said) - 2 * at))
    edge, edge_s = cue.start + place, cue.start_s + (cue.end_s - cue.start_s) * place / len(said)
    yield from _divide_word(replace(cue, end=edge, end_s=edge_s), text)
    yield from _divide_word(replace(cue, start=edge, start_s=edge_s, words=()), text)


def _find_pause(cue: CaptionCue) -> int:
    """The word after the longest pause."""
    pauses = [after.start_s - before.end_s for before, after in pairwise(cue.words)]
    return 1 + max(range(len(pauses)), key=pauses.__getitem__)


def _find_middle(cue: CaptionCue) -> int:
    middle = (cue.start + cue.end) / 2
    return min(range(1, len(cue.words)), key=lambda at: abs(cue.words[at].start - middle))


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
    """Whether a line may end between two characters: at a space, or beside a wide letter."""
    if before.isspace():
        return True
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
