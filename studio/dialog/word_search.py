"""Finds the words and phrases of a list in text, in hardly more time for many than for few."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, compress, count, islice, takewhile
from operator import attrgetter, getitem
from typing import Generic, TypeVar

import regex

_Value = TypeVar("_Value")

# Scripts without spaces between words, and Korean, which attaches particles to them.
_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"\p{Tibetan}\u30fc\uff70"
)
_OF_A_WORD = regex.compile(rf"(?![{_UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}_]")
_MARK = regex.compile(r"\p{M}")

_STATE_BYTES, _STEP_BYTES = 600, 50
_MOST_BYTES = 20_000_000
_BEGINNING_CHARS = 8


@lru_cache(maxsize=65_536)
def is_mark(symbol: str) -> bool:
    """Whether a character belongs to the one before."""
    return _MARK.match(symbol) is not None


@lru_cache(maxsize=65_536)
def is_of_word(symbol: str) -> bool:
    """Whether a character makes a word with others beside it; a tag doesn't."""
    return _OF_A_WORD.match(symbol) is not None


@lru_cache(maxsize=65_536)
def joins(symbol: str) -> bool:
    """Whether a character may belong to the one before."""
    return is_mark(symbol) or is_of_word(symbol)


@lru_cache(maxsize=65_536)
def is_one_word(left: str, right: str) -> bool:
    """Whether there is no word boundary between two characters, or tags."""
    return is_mark(right) or (is_of_word(right) and is_of_word(left))


def is_inside(symbols: Sequence[str], at: int) -> bool:
    """Whether an offset is within a word."""
    return 0 < at < len(symbols) and is_one_word(symbols[at - 1], symbols[at])


Hit = tuple[int, _Value]
"""How many characters of the text a word takes, and the word's value."""


class WordList(Generic[_Value]):
    """Words with a value each, that are found as whole words.

    Attributes:
        form: What a text is compared by.
    """

    def __init__(self, values: Mapping[str, _Value], form: Callable[[str], str]) -> None:
        """Take words that have the form already, none of which may be empty.

        Args:
            values: Of each word.
            form: What a text is compared by, character by character; one may become several.
        """
        self._values = dict(values)
        self._sorted = sorted(values)
        self.form = form
        self._long: _LongWords[_Value] | None = None
        self._endings = _Endings(self._values, form)

    def __bool__(self) -> bool:
        return bool(self._values)

    def get(self, word: str) -> _Value | None:
        """The value of a word; None of one that isn't here."""
        return self._values.get(word)

    def find_longer(self, beginning: str) -> Iterator[str]:
        """The longer words that begin so."""
        later = islice(self._sorted, bisect_right(self._sorted, beginning), None)
        return takewhile(lambda one: one.startswith(beginning), later)

    def is_absent_from(self, text: str) -> bool:
        """Whether they are so few that it is known soon that a text has none, and it has none."""
        if len(self._values) > _FEW_WORDS:
            return False
        formed = self.form(text)
        return not any(word in formed for word in self._values)

    def find(self, symbols: Sequence[str]) -> list[Hit[_Value] | None]:
        """The longest word that begins at each place, up to the end of one; also within words.

        Args:
            symbols: A text's characters, and its tags as a whole, which no word reaches into.
        """
        if self._endings.is_full and self._long is None:
            self._start_again()
        found, long = self._endings.find(symbols), self._long
        if long is not None:
            for at in compress(count(), long.beginnings.find(symbols)):
                found[at] = long.find(symbols, at) or found[at]
        return found

    def _start_again(self) -> None:
        """Forget all states; from now on, only the beginnings of long words have any."""
        short: dict[str, _Value] = {}
        long: dict[str, _Value] = {}
        for word, value in self._values.items():
            (short if len(word) <= _BEGINNING_CHARS else long)[word] = value
        self._endings = _Endings(short, self.form)
        self._long = _LongWords(long, self.form) if long else None


_FEW_WORDS = 8


class _Endings(Generic[_Value]):
    """Aho and Corasick's automaton, which reads a text from its end.

    So it knows at each place what may begin there, and the longest is the first that is asked for.
    Its states are made when a text needs them.
    """

    def __init__(
        self, values: Mapping[str, _Value], form: Callable[[str], str], *, is_whole: bool = True
    ) -> None:
        self._values = {word[::-1]: value for word, value in values.items()}
        self._sorted = sorted(self._values)
        self._is_whole = is_whole
        self.form = form
        self.bytes = 0
        self._before: dict[tuple[bool, bool], _Ending[_Value]] = {}

    @property
    def is_full(self) -> bool:
        """Whether its states take so much memory that no more are remembered."""
        return self.bytes > _MOST_BYTES

    def find(self, symbols: Sequence[str]) -> list[Hit[_Value] | None]:
        """As `WordList.find`."""
        # Nothing is done for each character in Python, of which a project may have 5,000,000.
        endings = accumulate(reversed(symbols), getitem, initial=self.begin(" "))
        found = list(map(_LONGEST, endings))
        found.reverse()
        return found

    def begin(self, symbol: str) -> _Ending[_Value]:
        """The state before a symbol with which no word can go on."""
        kind = is_mark(symbol), is_of_word(symbol)
        if kind not in self._before:
            self._before[kind] = _Ending(self, symbol)
        return self._before[kind]

    def may_end(self, left: str, right: str) -> bool:
        """Whether a word may end between two symbols."""
        return not (self._is_whole and is_one_word(left, right))

    def has(self, ending: str) -> bool:
        """Whether a word ends so; the ending is reversed, as in `get`."""
        place = bisect_left(self._sorted, ending)
        return place < len(self._sorted) and self._sorted[place].startswith(ending)

    def list_before(self, ending: str) -> frozenset[str]:
        """The characters before an ending of words; it is reversed, as in `get`."""
        size = len(ending)
        later = islice(self._sorted, bisect_left(self._sorted, ending), None)
        words = takewhile(lambda word: word.startswith(ending), later)
        return frozenset(word[size] for word in words if len(word) > size)

    def get(self, word: str) -> _Value | None:
        """The value of a word."""
        return self._values.get(word)


class _Ending(dict[str, "_Ending[_Value]"], Generic[_Value]):
    """A state: the text from a place on, as far as it is the end of a word. Its items lead on.

    Attributes:
        longest: The longest word that begins here.
    """

    __slots__ = ("_before", "_endings", "_reversed", "_shorter", "_size", "_symbol", "longest")

    def __init__(
        self,
        endings: _Endings[_Value],
        symbol: str,
        written: str = "",
        size: int = 0,
        shorter: _Ending[_Value] | None = None,
    ) -> None:
        self._endings = endings
        self._symbol = symbol
        self._reversed = written
        self._size = size
        self._shorter = shorter
        self._before = endings.list_before(written)
        self.longest: Hit[_Value] | None = shorter.longest if shorter is not None else None
        if size and (value := endings.get(written)) is not None:
            self.longest = size, value

    def __missing__(self, symbol: str) -> _Ending[_Value]:
        if self._shorter is not None and not self._before:  # as most; it leads where that leads
            return self._shorter[symbol]
        endings = self._endings
        found = endings.begin(symbol) if self._shorter is None else self._shorter[symbol]
        formed = endings.form(symbol)
        if formed[-1] in self._before and self._may_go_on(symbol):
            written = self._reversed + formed[::-1]
            if endings.has(written):
                found = _Ending(endings, symbol, written, self._size + 1, found)
        if not endings.is_full:
            self[symbol] = found
            endings.bytes += _STEP_BYTES if found._size <= self._size else _STATE_BYTES
        return found

    def _may_go_on(self, symbol: str) -> bool:
        is_tag = len(symbol) > 1
        return not is_tag and (self._size > 0 or self._endings.may_end(symbol, self._symbol))


_LONGEST = attrgetter("longest")


class _LongWords(Generic[_Value]):
    """Words of which a text is searched for the beginnings only, as all would need much memory.

    Attributes:
        beginnings: What is searched for first.
    """

    def __init__(self, values: Mapping[str, _Value], form: Callable[[str], str]) -> None:
        self._values = values
        self._form = form
        self._sorted = sorted(values)
        self._most_chars = max(map(len, values))
        # One of three lengths is between characters of a text, as one becomes three at most.
        lengths = range(_BEGINNING_CHARS - 2, _BEGINNING_CHARS + 1)
        beginnings = {word[:size]: True for word in values for size in lengths}
        self.beginnings = _Endings(beginnings, form, is_whole=False)
        # For each word, the words that are prefixes of it, itself last.
        self._prefixes: dict[str, tuple[str, ...]] = {}
        before: tuple[str, ...] = ()
        for word in self._sorted:
            while before and not word.startswith(before[-1]):
                before = before[:-1]
            before = self._prefixes[word] = (*before, word)

    def find(self, symbols: Sequence[str], at: int) -> Hit[_Value] | None:
        """The longest word at a place."""
        if is_inside(symbols, at):
            return None
        text = "".join(takewhile(_is_char, symbols[at : at + self._most_chars]))
        formed = self._form(text)
        for word in self._list_beginning(formed):
            size = len(word)
            if len(formed) != len(text):
                ends = list(accumulate(len(self._form(char)) for char in text))
                size = bisect_left(ends, len(word)) + 1
                if ends[size - 1] != len(word):
                    continue
            if not is_inside(symbols, at + size):
                return size, self._values[word]
        return None

    def _list_beginning(self, text: str) -> Iterator[str]:
        """The words with which a text begins, the longest first."""
        place = bisect_right(self._sorted, text)
        # In sorted order, all between a prefix of the text and the text has that prefix, too.
        # So all words that match are prefixes of the last word that sorts before the text.
        words = self._prefixes[self._sorted[place - 1]] if place else ()
        fitting = bisect_left(words, True, key=lambda word: not text.startswith(word))
        return reversed(words[:fitting])


def _is_char(symbol: str) -> bool:
    return len(symbol) == 1
