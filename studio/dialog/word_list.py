"""A sorted list of words that tells which of them begin at a place of a text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


class WordList(Generic[_Value]):
    """Words and what stands for each. A search takes steps like the logarithm of their number.

    Attributes:
        heads: The characters with which a word begins.
    """

    def __init__(self, values: Mapping[str, _Value]) -> None:
        """Sort words, none of which is empty."""
        self._values = dict(values)
        self._sorted = sorted(values)
        self._longest = max(map(len, values), default=0)
        self.heads = frozenset(word[0] for word in values)
        # Of each word, the words that it begins with, itself last; memory is that of references.
        self._beginnings: dict[str, tuple[str, ...]] = {}
        before: tuple[str, ...] = ()
        for word in self._sorted:
            while before and not word.startswith(before[-1]):
                before = before[:-1]
            before = self._beginnings[word] = (*before, word)

    def __bool__(self) -> bool:
        """Whether there is any word."""
        return bool(self._sorted)

    def beginning(self, text: str, start: int) -> Iterator[tuple[int, _Value]]:
        """The words that begin at a place of a text, the longest first: length and value."""
        piece = text[start : start + self._longest]
        place = bisect_right(self._sorted, piece)
        if not place:
            return
        # What lies between a word and a text that begins with it begins with it, too: all that are
        # looked for begin the last word that isn't behind the text.
        last = self._sorted[place - 1]
        words = self._beginnings[last]
        fitting = bisect_left(words, True, key=lambda word: not piece.startswith(word))
        for word in reversed(words[:fitting]):
            yield len(word), self._values[word]
