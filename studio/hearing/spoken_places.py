"""Where words of a written text stand in the text that a voice gets."""

from __future__ import annotations

import regex

from studio.dialog.tags import hide_tags
from studio.dialog.text_view import Span, TextView

_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]|[\p{L}\p{M}\p{N}'’]+")


def find_spoken_span(written: str, span: Span, said: TextView, spoken: str) -> Span | None:
    """The words of a spoken text that are said for a part of the written one.

    Args:
        written: As it stands in the line.
        span: First character of the part, and the one after its last; a word counts as a whole.
        said: What is said of the text.
        spoken: That as the voice gets it: the same words, with other spaces and tags.

    Returns:
        The first character of these words and the one after their last; None if none is said.
    """
    words, had = _find_words(said.text), _find_words(spoken)
    marked = _list_inside(_find_words(written), span)
    if not marked or len(words) != len(had):
        return None
    found = _list_inside(words, said.find_shown(marked[0][0], marked[-1][1]))
    if not found:
        return None
    return had[words.index(found[0])][0], had[words.index(found[-1])][1]


def _list_inside(words: list[Span], span: Span) -> list[Span]:
    return [(start, end) for start, end in words if start < span[1] and end > span[0]]


def _find_words(text: str) -> list[Span]:
    """All words outside of tags."""
    return [one.span() for one in _WORD.finditer(hide_tags(text))]
