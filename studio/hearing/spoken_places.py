"""Where words of a written text stand in the text that is spoken.

Pronunciations spell words another way, tags and pauses go, and white space is one space: the words
that both have tell where the others are.
"""

from __future__ import annotations

from difflib import SequenceMatcher

import regex

from studio.dialog.tags import strip_tags

_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]|[\p{L}\p{M}\p{N}'’]+")

Span = tuple[int, int]


def find_spoken_span(written: str, span: Span, spoken: str) -> Span | None:
    """The words of a spoken text that are said for a part of the written one.

    Args:
        written: As it stands in the line.
        span: First character of the part, and the one after its last; a word counts as a whole.
        spoken: As the voice got it.

    Returns:
        The first character of these words and the one after their last; None if none is said.
    """
    words, said = _find_words(written), _find_words(spoken)
    marked = [at for at, (start, end) in enumerate(words) if start < span[1] and end > span[0]]
    if not marked:
        return None
    first, after = marked[0], marked[-1] + 1
    matcher = SequenceMatcher(None, _fold(written, words), _fold(spoken, said), autojunk=False)
    found: list[int] = []
    for tag, old, old_end, new, new_end in matcher.get_opcodes():
        if old_end <= first or old >= after:
            continue
        if tag == "equal":
            found += range(new + max(first, old) - old, new + min(after, old_end) - old)
        else:
            found += range(new, new_end)
    return (said[found[0]][0], said[found[-1]][1]) if found else None


def _find_words(text: str) -> list[Span]:
    """All words outside of tags."""
    return [one.span() for part in strip_tags(text) for one in _WORD.finditer(text, *part)]


def _fold(text: str, words: list[Span]) -> list[str]:
    return [text[start:end].casefold() for start, end in words]
