"""Pronunciations: replace words that a voice would misread; the script itself doesn't change."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, compress, count, pairwise
from typing import TypeVar

import regex

from studio.dialog.atoms import cut_atoms
from studio.dialog.directions import cut_directions
from studio.dialog.model import SpeechLimits, find_reading_language, normalize_spoken_text
from studio.dialog.spoken import say, tell_language
from studio.dialog.tags import list_symbols, tidy_spaces
from studio.dialog.text_view import TextView, ViewBuilder, compose, tidy
from studio.dialog.word_search import Hit, WordList, is_inside, is_mark, is_one_word, joins
from studio.errors import BadInput

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

MAX_PRONUNCIATIONS = 2_000
MAX_PRONUNCIATION_CHARS = 200
_MOST_ATOM_CHARS = 3 * MAX_PRONUNCIATION_CHARS  # without regard to case a letter may become three

# Of the commas around an omitted word, one stays.
_COMMA_LAST = regex.compile(r"[,;，；、،]\s?$")
_COMMA_FIRST = regex.compile(r"^\s?[,;，；、،]")
_COMMAS = frozenset(",;，；、،")
_APOSTROPHES = "’ʼ‘＇"


@dataclass(frozen=True, slots=True)
class Pronunciation:
    """The spoken form of a word or phrase.

    Attributes:
        written: The word as in the lines; NFC, white space collapsed.
        spoken: What is spoken instead; empty omits the word.
        match_case: Whether case matters.
        enabled: Whether the entry is applied.
    """

    written: str
    spoken: str = ""
    match_case: bool = False
    enabled: bool = True


def check_pronunciation(entry: Pronunciation) -> Pronunciation:
    """Normalize an entry to the form in which it is stored.

    Raises:
        BadInput: `written` is empty, or a side is longer than `MAX_PRONUNCIATION_CHARS`.
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
    """Normalize a list; of two entries for the same word the later one counts.

    Raises:
        BadInput: As `check_pronunciation`, or there are more than `MAX_PRONUNCIATIONS`.
    """
    checked = {one.written: one for one in map(check_pronunciation, entries)}
    if len(checked) > MAX_PRONUNCIATIONS:
        raise BadInput(
            f"These are {len(checked):,} pronunciations; {MAX_PRONUNCIATIONS:,} are the most. "
            "Leave some out."
        )
    return tuple(checked.values())


_LONGER = Pronunciation("")
"""Stands for whatever entry may replace an atom and what follows it."""


class PronunciationRules:
    """How text is spoken: a list of pronunciations, and whether the rest is said in words.

    The longest entry that matches is applied; spoken forms aren't searched again. Rules from equal
    lists are equal.
    """

    def __init__(self, entries: Iterable[Pronunciation] = (), *, in_words: bool = False) -> None:
        self._entries = {one.written: one for one in entries if one.enabled}
        self.in_words = in_words

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PronunciationRules)
            and (self._entries, self.in_words) == (other._entries, other.in_words)
        )

    def __hash__(self) -> int:
        return hash(frozenset(self._entries))

    def __bool__(self) -> bool:
        return bool(self._entries) or self.in_words

    def spoken(
        self, text: str, language: str | None = None, *, most_chars: int | None = None
    ) -> str:
        """Replace words of text by their spoken forms; tags and pauses are left alone.

        Text without a match is returned unchanged. The time is linear in the text, whatever the
        list.

        Args:
            text: What is written.
            language: The one in whose words the rest is said, if it is; None leaves it.
            most_chars: How many characters of the result are wanted, at least; None for all.
        """
        normal, lists = self._search(text)
        if self.in_words and language is not None:
            joined = self._replace(normal, lists, language)
            return tidy_spaces(joined.text) if joined else say(text, language).text
        if not lists:
            return text
        is_long = most_chars is not None and len(text) > 4 * most_chars
        if not is_long or self._leaves_out:
            atoms, known = self._find_atoms(normal)
            if atoms and not known:
                return text
            if atoms and (said := self._say_atoms(atoms, known)) is not None:
                return tidy_spaces(said)
        if most_chars is not None:
            symbols, found = _find_beginning(lists, normal, 4 * most_chars)
            said = _join(symbols, found).text if found else ""
            if len(said) > 2 * most_chars:  # a space may go only before or after another character
                return tidy_spaces(said)
        joined = self._replace(normal, lists)
        return tidy_spaces(joined.text) if joined else text

    def view(self, text: str, language: str | None = None) -> TextView:
        """What `spoken` gives, with the places of what is said otherwise."""
        language = language if self.in_words else None
        joined = self._replace(*self._search(text), language)
        if joined is None:
            return say(text, language) if language else TextView(text)
        return tidy(joined.text).over(joined).over(compose(text))

    @staticmethod
    def _replace(
        text: str, lists: list[WordList[Pronunciation]], language: str | None = None
    ) -> TextView | None:
        """A normal text with the words of lists replaced, untidily; None if it has none."""
        symbols, found = _find(lists, text) if lists else ("", [])
        if not found:
            return None
        return _join(symbols, found, partial(say, language=language) if language else TextView)

    def find_first(self, text: str) -> str | None:
        """The first word of the list that is replaced in text, if there is any."""
        normal, lists = self._search(text)
        if not lists:
            return None
        found: list[_Match] = []
        if len(normal) > 2 * _MOST_REACH:
            _, found = _find_beginning(lists, normal, _MOST_REACH)
        else:
            atoms, known = self._find_atoms(normal)
            if atoms:
                return next((known[atom].written for atom in atoms if atom in known), None)
        if not found:
            _, found = _find(lists, normal)
        return found[0][2].written if found else None

    def used(self, text: str) -> frozenset[str]:
        """The words of the list that are replaced in text."""
        normal, lists = self._search(text)
        atoms, known = self._find_atoms(normal) if lists else ([], {})
        if atoms:
            return frozenset(entry.written for entry in known.values())
        _, found = _find(lists, normal) if lists else ("", [])
        return frozenset(entry.written for _, _, entry in found)

    def uses(self, texts: Iterable[str]) -> Counter[str]:
        """In how many texts each word of the list is replaced."""
        return Counter(written for text in texts for written in self.used(text))

    @cached_property
    def _words(self) -> list[WordList[Pronunciation]]:
        """The case-sensitive words, and the others, if any."""
        exact: dict[str, Pronunciation] = {}
        folded: dict[str, Pronunciation] = {}
        for entry in self._entries.values():
            form, words = (_plain, exact) if entry.match_case else (_folded, folded)
            # Of two words that differ only in case, where that doesn't matter, the first counts.
            words.setdefault(form(entry.written), entry)
        lists = WordList(exact, _plain), WordList(folded, _folded)
        return [words for words in lists if words]

    @cached_property
    def _leaves_out(self) -> bool:
        return not all(one.spoken for one in self._entries.values())

    @cached_property
    def _by_atom(self) -> _Known[str, Pronunciation | None]:
        return _Known(self._find_entry)

    @cached_property
    def _seams(self) -> _Known[tuple[str, str], str]:
        return _Known(self._join_atoms)

    def _find_entry(self, atom: str) -> Pronunciation | None:
        """The entry that replaces an atom; `_LONGER` if one may go beyond it."""
        if atom[0] in _TAG_STARTS and len(atom) > 1:
            return _LONGER if any(one in atom[1:] for one in _TAG_STARTS) else None
        found = None
        for words in self._words:  # of two for the same word, the case-sensitive one wins
            formed = words.form(atom)
            end = len(formed)
            if any(not is_inside(one, end) for one in words.find_longer(formed)):
                return _LONGER
            found = found or words.get(formed)
        return found

    def _find_atoms(self, text: str) -> tuple[list[str], dict[str, Pronunciation]]:
        """A text's atoms, and the entries that replace some of them.

        No atoms if they can't be told so, or an entry may replace several together.
        """
        if len(text) > 100 and not self._find_atoms(text[: len(text) // 10])[0]:
            return [], {}  # so it isn't cut in vain
        atoms, known = cut_atoms(text), self._by_atom
        found = {}
        for atom in set(atoms):
            entry = known[atom] if len(atom) <= _MOST_ATOM_CHARS else _LONGER
            if entry is _LONGER:
                return [], {}
            if entry is not None:
                found[atom] = entry
        return atoms, found

    def _say_atoms(self, atoms: list[str], found: Mapping[str, Pronunciation]) -> str | None:
        """The atoms with some of them replaced, as `_joined`; None where commas are at stake.

        Nothing here is done for each atom in Python, of which a project may have 5,000,000.
        """
        said = {atom: entry.spoken for atom, entry in found.items()}
        leaves_out = "" in said.values()
        if leaves_out and not _COMMAS.isdisjoint(chain(atoms, *said.values())):
            return None
        is_seamless = not leaves_out and all(map(_keeps_edges, said.items()))
        if is_seamless or not any(said.values()):
            return "".join(map(said.get, atoms, atoms))
        kept = list(compress(atoms, map(said.get, atoms, atoms)))
        begun = said.get(kept[0], kept[0]) if kept else ""
        return begun + "".join(map(self._seams.__getitem__, pairwise(kept)))

    def _join_atoms(self, pair: tuple[str, str]) -> str:
        """What is said of the second of two atoms, with a space where that is needed."""
        entries = [self._by_atom[atom] for atom in pair]
        left, right = (
            entry.spoken if entry else atom for atom, entry in zip(pair, entries, strict=True)
        )
        is_apart = any(entries) and is_one_word(left[-1], right[0])
        return f" {right}" if is_apart else right

    def _search(self, text: str) -> tuple[str, list[WordList[Pronunciation]]]:
        """A text in its normal form, and those of the lists that may be found in it."""
        if not self._entries:
            return text, []
        text = unicodedata.normalize("NFC", text)
        return text, [words for words in self._words if not words.is_absent_from(text)]


def build_spoken_words(text: str, rules: PronunciationRules, language: str | None) -> TextView:
    """What a voice says of a line's text: without stage directions, by rules in a language."""
    cut = cut_directions(text)
    return rules.view(cut.text, language).over(cut)


class _Known(dict[_Key, _Value]):
    """Remembers what was found of some keys, and forgets all of it when that is too much."""

    _MOST = 20_000

    def __init__(self, find: Callable[[_Key], _Value]) -> None:
        self._find = find

    def __missing__(self, key: _Key) -> _Value:
        value = self._find(key)
        if len(self) >= self._MOST:
            self.clear()
        self[key] = value
        return value


_Hit = Hit[Pronunciation]
_Match = tuple[int, int, Pronunciation]
"""A word's start and end among the symbols of a text, and its entry."""


def _find(
    lists: Sequence[WordList[Pronunciation]], text: str
) -> tuple[Sequence[str], list[_Match]]:
    """A text's symbols, as `WordList.find` takes them, and what is replaced, in order."""
    symbols = list_symbols(text)
    found = [words.find(symbols) for words in lists]
    hits = found[0] if len(found) == 1 else list(map(_pick, *found))
    return symbols, list(_list_matches(symbols, hits))


def _pick(exact: _Hit | None, folded: _Hit | None) -> _Hit | None:
    """The longer of two; of equal ones, that of which the case matters."""
    if exact is None or (folded is not None and folded[0] > exact[0]):
        return folded
    return exact


def _list_matches(symbols: Sequence[str], hits: list[_Hit | None]) -> Iterator[_Match]:
    """Those of the words that begin at each place which are whole, and not within another."""
    free = 0
    for start, hit in zip(compress(count(), hits), filter(None, hits), strict=False):
        if start < free or (start and joins(symbols[start]) and is_inside(symbols, start)):
            continue
        size, entry = hit
        free = start + size
        yield start, free, entry


_TAG_STARTS = "[(<"


def _keeps_edges(replaced: tuple[str, str]) -> bool:
    """Whether a spoken form is no more of one word with its neighbours than what is written."""
    written, spoken = replaced
    begins = is_one_word("x", spoken[0]) and not is_one_word("x", written[0])
    ends = is_one_word(spoken[-1], "x") and not is_one_word(written[-1], "x")
    return not (begins or ends or is_mark(spoken[0]))


_MOST_REACH = 1_000
"""More characters than a word of the list or a tag has."""


def _find_beginning(
    lists: Sequence[WordList[Pronunciation]], text: str, chars: int
) -> tuple[Sequence[str], list[_Match]]:
    """As `_find` for the first characters of a text, in as much time as those take."""
    symbols, found = _find(lists, text[: chars + _MOST_REACH])
    last, left = len(symbols), _MOST_REACH
    while last and left > 0:  # words there may go on
        last -= 1
        left -= len(symbols[last])
    return symbols[:last], [match for match in found if match[1] <= last]


def _join(
    symbols: Sequence[str], found: Iterable[_Match], say_rest: Callable[[str], TextView] = TextView
) -> TextView:
    """Replace words; a space separates a spoken form from an adjacent word, as in R&D."""
    view = ViewBuilder()
    last = ""  # what was said before
    at = 0
    is_entry = is_left_out = False
    for start, stop, entry in chain(found, [(len(symbols), len(symbols), _NOTHING)]):
        written = "".join(symbols[at:start])
        if is_left_out and _COMMA_LAST.search(last) and (comma := _COMMA_FIRST.match(written)):
            view.put("", comma.end())
            written = written[comma.end() :]
        kept = say_rest(written)
        if kept.text:
            if is_entry and is_one_word(last[-1], kept.text[0]):
                view.put(" ", 0)
            last, is_entry = kept.text[-3:], False
        view.keep(kept, len(written))
        size = sum(map(len, symbols[start:stop]))
        if said := entry.spoken:
            view.put(f" {said}" if last and is_one_word(last[-1], said[0]) else said, size)
            last, is_entry = said[-3:], True
        else:
            view.put("", size)
        is_left_out, at = not said, stop
    return view.finish()


_NOTHING = Pronunciation("")

IN_WORDS = PronunciationRules(in_words=True)  # as every door speaks


def find_spoken_language(
    text: str, known_codes: Iterable[str | None], limits: SpeechLimits
) -> str | None:
    """The language in whose words a text is said: the first known one, else by the text."""
    found = next(filter(None, known_codes), None)
    return found or find_reading_language(text, (), limits) or tell_language(text)


def _clean(text: str) -> str:
    return unicodedata.normalize("NFC", normalize_spoken_text(text))


def _plain(text: str) -> str:
    if not text.isascii():
        for one in _APOSTROPHES:  # ten times as fast as `translate`
            text = text.replace(one, "'")
    return text


def _folded(text: str) -> str:
    return _plain(text).casefold()
