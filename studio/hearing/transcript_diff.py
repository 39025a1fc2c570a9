"""What was said against what was to be said: missing, extra, repeated and replaced words.

Words are compared by their sound and by their letters, whichever is nearer, so that neither a
number in digits nor a name that a recogniser spells its own way is a difference. eSpeak NG reads
both sides, numbers and abbreviations too, in the language of the line.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cache, lru_cache
from itertools import groupby, product

import numpy as np
import regex

from studio.backends.espeak.espeak_voices import language_of_text
from studio.backends.espeak.phonemizer import Phonemizer
from studio.dialog.tags import strip_tags
from studio.errors import ModelUnavailable, SpeechFailed
from studio.hearing.recognition import RecognisedWord, Transcript


class MarkKind(StrEnum):
    """How a recording differs from its text in a place."""

    MISSING = "missing"
    EXTRA = "extra"
    REPEATED = "repeated"
    REPLACED = "replaced"
    UNLIKE = "unlike"
    """Most of it is something else, or nothing: one mark stands for the whole text."""


@dataclass(frozen=True, slots=True)
class WordMark:
    """A difference.

    Attributes:
        kind: What is wrong.
        start: Where it is in the text, in characters; that of the words, or for extra ones where
            they would stand.
        end: The character behind it; `start` for extra words.
        written: The words of the text that are meant; empty for extra ones.
        recognised: What was said in their place; empty where they are missing.
        start_s: When, in the recording; None where nothing was said, or the recogniser doesn't say.
        end_s: Until when.
    """

    kind: MarkKind
    start: int
    end: int
    written: str
    recognised: str
    start_s: float | None = None
    end_s: float | None = None


ReadSounds = Callable[[Collection[str], str], Mapping[str, str]]
"""Gives words or phrases of a language, by BCP-47 code, their phonemes; without those it can't."""


class EspeakSounds:
    """Phonemes of words by eSpeak NG, in a process of its own; any number of threads at once."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._lock = threading.Lock()  # guards the two below
        self._phonemizer: Phonemizer | None = None
        self._known: dict[tuple[str, str], str] = {}

    def __call__(self, words: Collection[str], language: str) -> Mapping[str, str]:
        """The phonemes of each word, without stress; empty where eSpeak NG can't read them."""
        with self._lock:
            fresh = [word for word in words if (language, word) not in self._known]
            if len(self._known) > _MAX_KNOWN:
                self._known.clear()
                fresh = list(words)
            if fresh:
                self._read(fresh, language)
            return {word: self._known[language, word] for word in words}

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._phonemizer is not None:
                self._phonemizer.close()
                self._phonemizer = None

    def _read(self, words: Sequence[str], language: str) -> None:
        try:
            self._phonemizer = self._phonemizer or Phonemizer(workers=1)
            read = self._phonemizer.read(words, language)
        except (SpeechFailed, ModelUnavailable):
            read = [[] for _ in words]
        for word, clauses in zip(words, read, strict=True):
            ipa = "".join(clause.ipa for clause in clauses)
            self._known[language, word] = _UNSAID.sub("", ipa)


_MAX_KNOWN = 20_000
_UNSAID = regex.compile(r"[\s\p{M}ˈˌːˑ^_|ʲʰ-]+")

_WORD = regex.compile(
    r"[$€£¥]?\p{N}[\p{N}.,:/]*\p{N}(?:\p{L}+|\s?[%‰€])?"  # 1,999.99 18:45 $20 35 % 1980s
    r"|[$€£¥]?\p{N}(?:\p{L}+|\s?[%‰€])?"
    r"|[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}]\p{M}*"
    r"|\p{L}[\p{L}\p{M}\p{N}]*(?:['’ʼ.&-]\p{L}[\p{L}\p{M}]*)*['’]?"
    r"|[&@+=%#§©°]|\p{So}\p{M}*"
)
_SIGN = regex.compile(r"[^\p{L}\p{N}]+")


@dataclass(frozen=True, slots=True)
class _Unit:
    """A word of the text, or of the transcript.

    Attributes:
        spellings: Ways to write what may be said, folded; the usual one first.
        is_optional: Whether it may be left out, as a sign or an emoji may.
    """

    start: int
    end: int
    text: str
    spellings: tuple[str, ...]
    is_optional: bool = False


# English short forms, both as they are said. What stands for several words is said as those, too.
_SHORT = {
    "can't": ("can not", "cannot"),
    "cannot": ("can not",),
    "won't": ("will not",),
    "shan't": ("shall not",),
    "let's": ("let us",),
    "gonna": ("going to",),
    "wanna": ("want to",),
    "gotta": ("got to",),
    "lemme": ("let me",),
    "gimme": ("give me",),
    "'cause": ("because",),
    "'em": ("them",),
    "'til": ("until",),
    "ok": ("okay",),
    "st": ("saint", "street"),
    "vs": ("versus",),
    "&": ("and",),
    "%": ("per cent",),
}
_ENDINGS = {
    "n't": (" not",),
    "'re": (" are",),
    "'ve": (" have",),
    "'ll": (" will",),
    "'m": (" am",),
    "'d": (" would", " had"),
    "'s": (" is", " has"),
}
_CURRENCIES = {"$": "dollars", "€": "euros", "£": "pounds", "¥": "yen"}


def _spell(word: str, language: str) -> tuple[str, ...]:
    """The ways in which a word may be written out."""
    folded = unicodedata.normalize("NFKC", word).casefold().translate(_APOSTROPHES).strip("'")
    found = [folded]
    if language.startswith("en"):
        found += _SHORT.get(folded, ())
        for ending, whole in _ENDINGS.items():
            if folded.endswith(ending) and folded not in _SHORT:
                found += [folded.removesuffix(ending) + one for one in whole]
    if any(char.isdigit() for char in folded):
        found += _spell_number(folded)
    return tuple(dict.fromkeys(found))


_APOSTROPHES = str.maketrans(dict.fromkeys("’ʼ‘＇", "'"))
_NUMBER = regex.compile(r"([$€£¥]?)([\p{N}.,:/]+)\s?([%‰€]?)(\p{L}*)")


def _spell_number(word: str) -> Iterator[str]:
    """How people say a number otherwise than eSpeak NG reads it: years, times, sums, digits."""
    match = _NUMBER.fullmatch(word)
    if match is None:
        return
    sign, digits, mark, ending = match.groups()
    plain = digits.replace(",", "")
    if currency := _CURRENCIES.get(sign or mark):
        whole, _, cents = plain.partition(".")
        yield f"{whole} {currency} {cents}".strip()
        yield f"{whole} {currency} and {cents} cents" if cents else plain
    if mark == "%":
        yield f"{plain} percent"
    if plain.isdigit() and len(plain) == 4:
        yield f"{plain[:2]} {plain[2:]}{ending}"  # nineteen eighty-four
        yield f"{plain[0]},{plain[1:]}{ending}"  # one thousand nine hundred and eighty-four
    if not plain.isdigit():
        yield " ".join(regex.split(r"[.,:/]", plain))  # eighteen forty-five
    yield " ".join(char for char in plain if char.isdigit())


def _read_text(text: str, language: str) -> list[_Unit]:
    """The words of text outside of tags."""
    found = []
    for first, last in strip_tags(text):
        for match in _WORD.finditer(text, first, last):
            word = match[0]
            is_sign = _SIGN.fullmatch(word) is not None
            found.append(_Unit(*match.span(), word, _spell(word, language), is_sign))
    return found


def _read_written(text: str, language: str, pronounce: Callable[[str], str]) -> list[_Unit]:
    """The words of a line's text; what has a pronunciation may be said as that says, too."""
    written, spoken_text = _read_text(text, language), pronounce(text)
    if spoken_text == text:
        return written
    spoken = _read_text(spoken_text, language)
    matcher = SequenceMatcher(
        None, [one.spellings for one in written], [one.spellings for one in spoken], autojunk=False
    )
    units: list[_Unit] = []
    for how, first, last, at, end in matcher.get_opcodes():
        replaced = written[first:last]
        if how == "equal":
            units += replaced
        elif how == "delete":
            units += [replace(one, is_optional=True) for one in replaced]
        elif replaced:
            instead = " ".join(one.spellings[0] for one in spoken[at:end])
            also = " ".join(one.spellings[0] for one in replaced)
            start, stop = replaced[0].start, replaced[-1].end
            units.append(_Unit(start, stop, text[start:stop], (instead, also)))
    return units


_VOWELS = frozenset("aeiouyæøœɐɑɒɔəɚɛɜɝɞɤɨɪɯɵɶʉʊʌʏᵻ")
_ALIKE = frozenset(
    frozenset(pair)
    for pair in (
        *("pb", "td", "kɡ", "kg", "fv", "sz", "ʃʒ", "θð", "td", "mn", "nŋ", "ɹr", "ɹɾ", "lɫ"),
        *("tɾ", "dɾ", "θf", "ðv", "ðd", "sθ", "wv", "ʔt", "ɡg", "jɪ", "wʊ", "sʃ", "zʒ", "ɹɚ"),
    )
)
_ALIKE_COST, _VOWEL_COST, _WEAK_COST = 0.4, 0.5, 0.3


@cache
def _exchange_cost(one: str, other: str) -> float:
    """How far apart two phonemes are, in [0, 1]."""
    if one == other:
        return 0.0
    if one in _VOWELS and other in _VOWELS:
        return _WEAK_COST if {"ə", "ɐ", "ᵻ", "ɪ"} & {one, other} else _VOWEL_COST
    return _ALIKE_COST if frozenset((one, other)) in _ALIKE else 1.0


def _edit_distance(one: str, other: str, exchange: Callable[[str, str], float]) -> float:
    """Levenshtein's distance with a cost for each exchange."""
    row = [float(at) for at in range(len(other) + 1)]
    for char in one:
        before, row[0] = row[0], row[0] + 1.0
        for at, counterpart in enumerate(other, start=1):
            cost = min(row[at] + 1.0, row[at - 1] + 1.0, before + exchange(char, counterpart))
            before, row[at] = row[at], cost
    return row[-1]


@lru_cache(maxsize=65_536)
def _distance_of_sounds(one: str, other: str) -> float:
    return _edit_distance(one, other, _exchange_cost) / max(len(one), len(other), 1)


@lru_cache(maxsize=65_536)
def _distance_of_letters(one: str, other: str) -> float:
    one, other = _NO_LETTER.sub("", one), _NO_LETTER.sub("", other)
    if not one or not other:
        return 1.0
    return _edit_distance(one, other, lambda a, b: float(a != b)) / max(len(one), len(other))


_NO_LETTER = regex.compile(r"[^\p{L}\p{M}\p{N}]+")


NEAR = 0.5
"""Words as far apart as this or nearer count as the same one. Measured with the tests' recogniser:
see docs/develop/testing.md."""

NEAR_IF_SHORT = 0.67
_SHORT_LETTERS = 3

_JOINED_NEAR = 0.15
"""For words that were run together or torn apart: a short one left out must not hide in them."""

_TORN_NEAR = 0.35
"""For words in a row that all don't fit; it is below `NEAR`, and counts as near."""

_LEFT_OUT_COST = 0.62
_JOIN_COST = 0.05
_DOUBLED_LENGTH = 1.4
_MAX_JOINED = 3
_MAX_OF_NUMBER = 12
_BAND_WORDS = 40
"""Words that both sides may be apart; beyond, it is another text."""


class _Comparison:
    """The words of both sides, and how far apart any of them are."""

    def __init__(self, written: list[_Unit], said: list[_Unit], sounds: Mapping[str, str]) -> None:
        self.written = written
        self.said = said
        self._sounds = sounds

    def distance(
        self, units: Sequence[_Unit], others: Sequence[_Unit], limit: float = 1.0
    ) -> float:
        """How far apart words run together are, in [0, 1]; 1 also for what is beyond a limit."""
        pairs = product(_join_spellings(units), _join_spellings(others))
        return min(self._distance_of(one, other, limit) for one, other in pairs)

    def count_edits(self, units: Sequence[_Unit], others: Sequence[_Unit]) -> float:
        """How many sounds or letters have to be changed to make one of the other."""
        said = " ".join(unit.spellings[0] for unit in others)
        written = " ".join(unit.spellings[0] for unit in units)
        longest = max(len(_NO_LETTER.sub("", one)) for one in (said, written))
        edits = _distance_of_letters(written, said) * longest
        sounds, other_sounds = self._sound(written), self._sound(said)
        if sounds and other_sounds:
            longest = max(len(sounds), len(other_sounds))
            edits = min(edits, _distance_of_sounds(sounds, other_sounds) * longest)
        return edits

    def belong_together(self, units: Sequence[_Unit], others: Sequence[_Unit]) -> bool:
        """Whether words run together explain what was said better than with one left out.

        So a recogniser may write "agolden", but where "a golden" is said as "golden" a word is
        missing.
        """
        longer, shorter = (units, others) if len(units) > len(others) else (others, units)
        together = self.count_edits(longer, shorter)
        return all(together < self.count_edits(left, shorter) for left in (longer[1:], longer[:-1]))

    def is_near(self, step: _Step) -> bool:
        """Whether words count as said; short ones differ from each other by less."""
        if not step.n_written or not step.n_said:
            return False
        is_short = all(
            step_n == 1 and len(unit.spellings[0]) <= _SHORT_LETTERS
            for step_n, unit in (
                (step.n_written, self.written[step.written]),
                (step.n_said, self.said[step.said]),
            )
        )
        return step.distance <= (NEAR_IF_SHORT if is_short else NEAR)

    def is_doubled(self, units: Sequence[_Unit], others: Sequence[_Unit]) -> bool:
        """Whether what was said is rather a word said twice, written as one: "keke" for "key"."""
        lengths = [sum(len(one.spellings[0]) for one in side) for side in (units, others)]
        if lengths[1] < _DOUBLED_LENGTH * lengths[0]:
            return False
        return self.count_edits([*units, *units], others) < self.count_edits(units, others)

    def _distance_of(self, one: str, other: str, limit: float) -> float:
        if one == other:
            return 0.0
        found = 1.0
        if _may_be_within(limit, one, other):
            found = _distance_of_letters(one, other)
        sounds, other_sounds = self._sound(one), self._sound(other)
        if sounds and other_sounds and _may_be_within(limit, sounds, other_sounds):
            found = min(found, _distance_of_sounds(sounds, other_sounds))
        return found

    def _sound(self, spelling: str) -> str:
        known = self._sounds.get(spelling)
        if known is not None:
            return known
        return "".join(self._sounds.get(word, "") for word in spelling.split())


def _may_be_within(limit: float, one: str, other: str) -> bool:
    """Whether lengths alone, which are quick to compare, leave texts nearer than a limit."""
    longer = max(len(one), len(other))
    return abs(len(one) - len(other)) <= limit * longer + 2  # spaces and signs don't count


def _join_spellings(units: Sequence[_Unit]) -> list[str]:
    if len(units) == 1:
        return list(units[0].spellings)
    return [" ".join(unit.spellings[0] for unit in units)]


@dataclass(frozen=True, slots=True)
class _Step:
    """Words of the text from `written` on, and those that were said for them; 0 of one for none."""

    written: int
    n_written: int
    said: int
    n_said: int
    distance: float


_ONE_TO_ONE = (1, 1)
_SHAPES = (
    (1, 0),
    (0, 1),
    _ONE_TO_ONE,
    *((1, n) for n in range(2, _MAX_JOINED + 1)),
    (2, 1),
    (3, 1),
)


def _align(words: _Comparison) -> list[_Step]:
    """The cheapest way from the one side to the other (Levenshtein on words, run together too)."""
    n_written, n_said = len(words.written), len(words.said)
    costs = np.full((n_written + 1, n_said + 1), np.inf)
    costs[0, 0] = 0.0
    steps: dict[tuple[int, int], _Step] = {}
    for at in range(n_written + 1):
        middle = at * n_said // max(n_written, 1)
        band = _BAND_WORDS + abs(n_said - n_written)
        for to in range(max(0, middle - band), min(n_said, middle + band) + 1):
            for step in _steps_from(words, at, to):
                place = (at + step.n_written, to + step.n_said)
                cost = costs[at, to] + _cost(words, step)
                if cost < costs[place]:
                    costs[place] = cost
                    steps[place] = step
    path, place = [], (n_written, n_said)
    while place != (0, 0):
        step = steps[place]
        path.append(step)
        place = step.written, step.said
    return path[::-1]


def _steps_from(words: _Comparison, at: int, to: int) -> Iterator[_Step]:
    units, others = words.written[at:], words.said[to:]
    is_number = bool(units) and any(char.isdigit() for char in units[0].text)
    is_other_number = bool(others) and any(char.isdigit() for char in others[0].text)
    shapes: Iterable[tuple[int, int]] = _SHAPES
    if is_number:
        shapes = (*shapes, *((1, n) for n in range(_MAX_JOINED + 1, _MAX_OF_NUMBER)))
    if is_other_number:
        shapes = (*shapes, *((n, 1) for n in range(_MAX_JOINED + 1, _MAX_OF_NUMBER)))
    for n, m in shapes:
        if n > len(units) or m > len(others):
            continue
        if not n or not m:
            yield _Step(at, n, to, m, 1.0)
            continue
        limit = 1.0 if (n, m) == _ONE_TO_ONE else NEAR
        distance = words.distance(units[:n], others[:m], limit)
        is_joined = distance <= _JOINED_NEAR or (
            distance <= NEAR and words.belong_together(units[:n], others[:m])
        )
        if (n, m) == _ONE_TO_ONE or is_joined:
            yield _Step(at, n, to, m, distance)


def _cost(words: _Comparison, step: _Step) -> float:
    if not step.n_said:
        return 0.02 if words.written[step.written].is_optional else _LEFT_OUT_COST
    if not step.n_written:
        return _LEFT_OUT_COST
    return step.distance + (step.n_written + step.n_said - 2) * _JOIN_COST


def has_words(text: str) -> bool:
    """Whether text has words to compare, besides tags, signs and emoji."""
    return any(not unit.is_optional for unit in _read_text(text, ""))


def _join_torn(words: _Comparison, steps: Sequence[_Step]) -> Iterator[_Step]:
    """Steps, of which those in a row that don't fit become one if their words do, run together.

    A recogniser may take a word's end for the next one's beginning: "with a key", "witha ky".
    """
    for is_fine, run in groupby(steps, words.is_near):
        group = list(run)
        n_written = sum(step.n_written for step in group)
        n_said = sum(step.n_said for step in group)
        if not is_fine and n_written and n_said and n_written + n_said > 2:
            first, said = group[0].written, group[0].said
            distance = words.distance(
                words.written[first : first + n_written],
                words.said[said : said + n_said],
                _TORN_NEAR,
            )
            if distance <= _TORN_NEAR:
                yield _Step(first, n_written, said, n_said, distance)
                continue
        yield from group


_UNLIKE_SHARE = 0.6
_UNLIKE_WORDS = 4


def compare_transcript(
    text: str,
    transcript: Transcript,
    *,
    language: str | None = None,
    read_sounds: ReadSounds | None = None,
    pronounce: Callable[[str], str] = lambda text: text,
) -> tuple[WordMark, ...]:
    """Where a recording differs from its text.

    Args:
        text: As it is written, with its tags.
        transcript: What was recognised.
        language: The BCP-47 code of the text; None goes by its script.
        read_sounds: Gives words their phonemes; None compares letters only.
        pronounce: Gives text as it is spoken; what it changes may be said either way.

    Returns:
        In order of the text; one of `UNLIKE` alone where most of it is something else. Nothing
        where the text has no words.
    """
    language = language or language_of_text(text)
    written = _read_written(text, language, pronounce)
    said, times = _read_said(transcript.words, language)
    needed = [unit for unit in written if not unit.is_optional]
    if not needed:
        return ()
    if not said:
        return (WordMark(MarkKind.UNLIKE, needed[0].start, needed[-1].end, text.strip(), ""),)
    spellings = {one for unit in (*written, *said) for one in unit.spellings}
    spellings |= {word for one in spellings for word in one.split()}
    words = _Comparison(written, said, read_sounds(spellings, language) if read_sounds else {})
    steps = list(_join_torn(words, _align(words)))
    wrong = sum(
        step.n_written
        for step in steps
        if not words.is_near(step) and step.n_written and not written[step.written].is_optional
    )
    if wrong >= _UNLIKE_WORDS and wrong > _UNLIKE_SHARE * len(needed):
        start_s, end_s = times[0][0], times[-1][1]
        unlike = WordMark(
            MarkKind.UNLIKE,
            needed[0].start,
            needed[-1].end,
            text.strip(),
            transcript.text,
            start_s,
            end_s,
        )
        return (unlike,)
    return tuple(_merge(_find_marks(words, steps, times)))


_Times = list[tuple[float | None, float | None]]


def _read_said(words: Sequence[RecognisedWord], language: str) -> tuple[list[_Unit], _Times]:
    """The words of a transcript, and when each is said."""
    units, times = [], []
    for word in words:
        for unit in _read_text(word.text, language):
            if not unit.is_optional:
                units.append(unit)
                times.append((word.start_s, word.end_s))
    return units, times


def _find_marks(
    words: _Comparison, steps: Sequence[_Step], times: _Times
) -> Iterator[WordMark | None]:
    """A mark for each step that has one, else None."""
    place = 0
    for step, n_extra in _group_extra(steps):
        units = words.written[step.written : step.written + max(step.n_written, 1)]
        if not step.n_written:
            mark = _mark_extra(words, step, n_extra, place, times)
            is_fragment = mark.kind is MarkKind.EXTRA and len(mark.recognised) == 1
            yield None if is_fragment else mark
            continue
        place = units[step.n_written - 1].end
        said = words.said[step.said : step.said + step.n_said]
        is_doubled = step.n_written == step.n_said == 1 and words.is_doubled(units, said)
        is_fine = words.is_near(step) if step.n_said else units[0].is_optional
        if is_fine and not is_doubled:
            yield None
            continue
        kind = MarkKind.REPLACED if step.n_said else MarkKind.MISSING
        if is_doubled:
            kind = MarkKind.REPEATED
        span = _span(times, step.said, step.n_said)
        recognised = " ".join(one.text for one in said)
        yield WordMark(kind, units[0].start, place, units[0].text, recognised, *span)


def _group_extra(steps: Sequence[_Step]) -> list[tuple[_Step, int]]:
    """Steps, of which those that say extra words one after the other are one with their number."""
    grouped: list[tuple[_Step, int]] = []
    for step in steps:
        if not step.n_written and grouped and not grouped[-1][0].n_written:
            grouped[-1] = grouped[-1][0], grouped[-1][1] + 1
        else:
            grouped.append((step, 1))
    return grouped


def _mark_extra(words: _Comparison, step: _Step, count: int, place: int, times: _Times) -> WordMark:
    """A mark of extra words, or of the words that they repeat."""
    first, said = step.said, words.said
    recognised = " ".join(one.text for one in said[first : first + count])
    span = _span(times, first, count)
    begins = _find_repeated(words, first, count)
    if begins is None:
        return WordMark(MarkKind.EXTRA, place, place, "", recognised, *span)
    at = max(0, step.written - (first - begins))
    repeated = words.written[at : at + count]
    written = " ".join(one.text for one in repeated)
    return WordMark(
        MarkKind.REPEATED, repeated[0].start, repeated[-1].end, written, recognised, *span
    )


def _find_repeated(words: _Comparison, first: int, count: int) -> int | None:
    """Where words begin that are said twice, one pair of which are those from `first` on.

    Of "the cat the cat" the two words that are too many may be found in the middle.
    """
    for at in range(max(0, first - count), first + 1):
        once, again = words.said[at : at + count], words.said[at + count : at + 2 * count]
        if len(again) == count and words.distance(once, again) <= NEAR:
            return at
    return None


def _span(times: _Times, first: int, count: int) -> tuple[float | None, float | None]:
    return (times[first][0], times[first + count - 1][1]) if count else (None, None)


def _merge(marks: Iterable[WordMark | None]) -> Iterator[WordMark]:
    """Marks, of which direct neighbours of one kind are one."""
    last: WordMark | None = None
    for mark in marks:
        if last and mark and mark.kind is last.kind:
            last = replace(
                last,
                end=mark.end,
                written=f"{last.written} {mark.written}",
                recognised=f"{last.recognised} {mark.recognised}".strip(),
                end_s=mark.end_s,
            )
            continue
        if last:
            yield last
        last = mark
    if last:
        yield last
