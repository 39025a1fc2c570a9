"""How words are said that a voice would read wrongly; the script stays as it is written."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Generic, TypeVar

import regex

from studio.dialog.line_text import normalize_spoken_text
from studio.dialog.tags import strip_tags, tidy_spaces
from studio.errors import BadInput

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


MAX_PRONUNCIATIONS = 2_000
MAX_PRONUNCIATION_CHARS = 200

# Scripts that put no space between words, and Korean, which joins its particles to them.
_UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"\p{Tibetan}\u30fc\uff70"
)
_OF_A_WORD = regex.compile(rf"(?![{_UNSPACED}])[\p{{L}}\p{{M}}\p{{N}}_]")
_MARK = regex.compile(r"\p{M}")
# Of the commas around a word that is left out, one stays.
_COMMA_LAST = regex.compile(r"[,;，；、،]\s?$")
_COMMA_FIRST = regex.compile(r"^\s?[,;，；、،]")
_APOSTROPHES = str.maketrans(dict.fromkeys("’ʼ‘＇", "'"))


@dataclass(frozen=True, slots=True)
class Pronunciation:
    """What a voice hears in place of a word or phrase.

    Attributes:
        written: As it stands in lines; NFC, white space collapsed.
        spoken: What is spoken instead; empty leaves it out.
        match_case: Whether capitals have to be the same.
        enabled: Whether it has an effect.
    """

    written: str
    spoken: str = ""
    match_case: bool = False
    enabled: bool = True


def check_pronunciation(entry: Pronunciation) -> Pronunciation:
    """Bring an entry to the form that is kept.

    Raises:
        BadInput: Nothing is written, or one of both is longer than `MAX_PRONUNCIATION_CHARS`.
    """
    written, spoken = _clean(entry.written), _clean(entry.spoken)
    if not written:
        raise BadInput("A pronunciation needs the word as it is written. Write at least a letter.")
    for what in (written, spoken):
        if len(what) > MAX_PRONUNCIATION_CHARS:
            raise BadInput(
                f"“{what[:30]}…” has {len(what):,} characters; a pronunciation takes "
                f"{MAX_PRONUNCIATION_CHARS} on each side. Shorten it."
            )
    return Pronunciation(written, spoken, entry.match_case, entry.enabled)


def check_pronunciations(entries: Iterable[Pronunciation]) -> tuple[Pronunciation, ...]:
    """Bring a list to the form that is kept; of two for the same word the later one counts.

    Raises:
        BadInput: As `check_pronunciation`, or they are more than `MAX_PRONUNCIATIONS`.
    """
    checked = {one.written: one for one in map(check_pronunciation, entries)}
    if len(checked) > MAX_PRONUNCIATIONS:
        raise BadInput(
            f"These are {len(checked):,} pronunciations; {MAX_PRONUNCIATIONS:,} are the most. "
            "Leave some out."
        )
    return tuple(checked.values())


class PronunciationRules:
    """A list of pronunciations, ready for text.

    The longest entry that fits a place is taken, each place once: a spoken form isn't looked
    through again. Equal lists make equal ones.
    """

    def __init__(self, entries: Iterable[Pronunciation] = ()) -> None:
        """Take entries as `check_pronunciations` gives them; those not enabled do nothing."""
        self._entries = {one.written: one for one in entries if one.enabled}

    def __eq__(self, other: object) -> bool:
        """Whether both say all alike."""
        return isinstance(other, PronunciationRules) and self._entries == other._entries

    def __hash__(self) -> int:
        """Of the words."""
        return hash(frozenset(self._entries))

    def __bool__(self) -> bool:
        """Whether there is any entry that has an effect."""
        return bool(self._entries)

    def spoken(self, text: str) -> str:
        """What a voice hears of text; tags and pauses stay as they are.

        Text in which nothing is replaced comes back unchanged. Time is linear in the text, and
        grows with the list as a search in a sorted one does.
        """
        if not self._entries:
            return text
        parts = list(self._parts(unicodedata.normalize("NFC", text)))
        if not any(isinstance(part, Pronunciation) for part in parts):
            return text
        return tidy_spaces(_joined(parts))

    def used(self, text: str) -> frozenset[str]:
        """The words of the list that are replaced in text."""
        if not self._entries:
            return frozenset()
        parts = self._parts(unicodedata.normalize("NFC", text))
        return frozenset(part.written for part in parts if isinstance(part, Pronunciation))

    def uses(self, texts: Iterable[str]) -> Counter[str]:
        """In how many texts each word of the list is replaced."""
        return Counter(written for text in texts for written in self.used(text))

    @cached_property
    def _words(self) -> tuple[WordList[Pronunciation], WordList[Pronunciation]]:
        """The words of which capitals count, and the others."""
        exact: dict[str, Pronunciation] = {}
        folded: dict[str, Pronunciation] = {}
        for entry in self._entries.values():
            form, words = (_plain, exact) if entry.match_case else (_folded, folded)
            # Of two that differ only in capitals that don't count, the first one counts.
            words.setdefault(form(entry.written), entry)
        return WordList(exact), WordList(folded)

    def _parts(self, text: str) -> Iterator[str | Pronunciation]:
        """Text as it is, and what stands for the rest of it."""
        exact, folded = self._words
        # Of two that are as long, the one of which capitals count goes first.
        searches = (_Search(exact, text, _plain), _Search(folded, text, _folded))
        places = sorted({place for one in searches for place in one.places()})
        copied = 0
        for start, end in strip_tags(text):
            for at in places[bisect_left(places, start) : bisect_left(places, end)]:
                if at < copied or _is_inside(text, at):
                    continue
                found = [hit for one in searches if (hit := one.longest(at, end))]
                if found:
                    stop, entry = max(found, key=lambda hit: hit[0])
                    yield text[copied:at]
                    yield entry
                    copied = stop
        yield text[copied:]


class _Search:
    """Looks for the words of a list in a text, in the form in which they are compared."""

    def __init__(
        self, words: WordList[Pronunciation], text: str, form: Callable[[str], str]
    ) -> None:
        """Bring the text to that form; a character of it may become several."""
        self._words = words
        self._text = text
        self._form = form(text) if words else ""
        is_even = not words or len(self._form) == len(text)
        self._starts = None if is_even else list(accumulate(map(len, map(form, text)), initial=0))

    def places(self) -> Iterator[int]:
        """Where in the text a word may begin, going by its first character."""
        heads = self._words.heads
        for at, char in enumerate(self._form):
            if char in heads and (place := self._place(at)) is not None:
                yield place

    def longest(self, at: int, end: int) -> tuple[int, Pronunciation] | None:
        """The end of the longest word that begins at a place, before `end`, and its entry."""
        start = at if self._starts is None else self._starts[at]
        for size, entry in self._words.beginning(self._form, start):
            stop = self._place(start + size)
            if stop is not None and stop <= end and not _is_inside(self._text, stop):
                return stop, entry
        return None

    def _place(self, at: int) -> int | None:
        """Where in the text a place of the form is; None within a character."""
        if self._starts is None:
            return at
        place = bisect_left(self._starts, at)
        return place if self._starts[place] == at else None


def _joined(parts: Iterable[str | Pronunciation]) -> str:
    """Put text together; a spoken form never runs into the word beside it, as in R&D."""
    out: list[str] = []
    was_entry = is_left_out = False
    for part in parts:
        is_entry = isinstance(part, Pronunciation)
        said = part.spoken if isinstance(part, Pronunciation) else part
        if is_left_out and out and _COMMA_LAST.search(out[-1]):
            said = _COMMA_FIRST.sub("", said)
        is_left_out = is_entry and not said
        if said:
            is_seam = bool(out) and (is_entry or was_entry)
            out.append(f" {said}" if is_seam and _is_one_word(out[-1][-1], said[0]) else said)
            was_entry = is_entry
    return "".join(out)


def _is_inside(text: str, at: int) -> bool:
    """Whether a place is within a word."""
    return 0 < at < len(text) and _is_one_word(text[at - 1], text[at])


@lru_cache(maxsize=65_536)
def _is_one_word(left: str, right: str) -> bool:
    """Whether no word ends between two characters."""
    if _MARK.match(right):
        return True
    return _OF_A_WORD.match(left) is not None and _OF_A_WORD.match(right) is not None


def _clean(text: str) -> str:
    return unicodedata.normalize("NFC", normalize_spoken_text(text))


def _plain(text: str) -> str:
    return text.translate(_APOSTROPHES)


def _folded(text: str) -> str:
    return _plain(text).casefold()
