"""Two lists of words, of a text and of what was said, brought into line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache, lru_cache, partial
from itertools import groupby, pairwise

from studio.hearing.word_sounds import (
    NO_LETTER,
    distance_of_letters,
    distance_of_sounds,
    find_opcodes,
)
from studio.hearing.word_spelling import WordUnit

NEAR = 0.45
"""Words as far apart as this or nearer count as the same one."""

NEAR_IF_SHORT = 0.67
_SHORT_LETTERS = 3

CLEAR = 0.15
"""Words as far apart as this or nearer were heard as they are written."""

_JOINED_NEAR = CLEAR
"""For words that were run together or torn apart: a short one left out must not hide in them."""

_TORN_NEAR = 0.35
"""For words in a row that all don't fit; it is below `NEAR`, and counts as near."""

_LEFT_OUT_COST = 0.62
_JOIN_COST = 0.05
_DOUBLED_LENGTH = 1.3
_MAX_JOINED = 3
_MAX_OF_NUMBER = 11
_BAND_WORDS = 40
"""Words that both sides may be apart; beyond, it is another text."""


class Comparison:
    """The words of both sides, and how far apart any of them are."""

    def __init__(
        self, written: Sequence[WordUnit], said: Sequence[WordUnit], sounds: Mapping[str, str]
    ) -> None:
        self.written = written
        self.said = said
        self._sounds = sounds
        self._read = lru_cache(maxsize=_MOST_READ)(partial(_read_spelling, sounds))

    def cut(self, written: slice, said: slice) -> Comparison:
        """A part of both sides."""
        return Comparison(self.written[written], self.said[said], self._sounds)

    def distance(
        self, units: Sequence[WordUnit], others: Sequence[WordUnit], limit: float = 1.0
    ) -> float:
        """How far apart words run together are, in [0, 1]; 1 also for what is beyond a limit."""
        return _distance(self.find_forms(units), self.find_forms(others), limit)

    def find_forms(self, units: Sequence[WordUnit]) -> list[_Form]:
        """The ways in which words run together are written and said."""
        spellings = units[0].spellings if len(units) == 1 else (_join(units),)
        return [self._read(one) for one in spellings]

    def count_edits(self, units: Sequence[WordUnit], others: Sequence[WordUnit]) -> float:
        """How many sounds or letters have to be changed to make one of the other."""
        _, written, sounds = self._read(_join(units))
        _, said, other_sounds = self._read(_join(others))
        edits = distance_of_letters(written, said) * max(len(written), len(said))
        if sounds and other_sounds:
            longest = max(len(sounds), len(other_sounds))
            edits = min(edits, distance_of_sounds(sounds, other_sounds) * longest)
        return edits

    def belong_together(self, units: Sequence[WordUnit], others: Sequence[WordUnit]) -> bool:
        """Whether words run together explain what was said better than with one left out.

        So a recogniser may write "agolden", but where "a golden" is said as "golden" a word is
        missing.
        """
        longer, shorter = (units, others) if len(units) > len(others) else (others, units)
        together = self.count_edits(longer, shorter)
        return all(together < self.count_edits(left, shorter) for left in (longer[1:], longer[:-1]))

    def is_near(self, step: Step) -> bool:
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

    def is_doubled(self, units: Sequence[WordUnit], others: Sequence[WordUnit]) -> bool:
        """Whether what was said is rather a word said twice, written as one: "keke" for "key"."""
        lengths = [sum(len(one.spellings[0]) for one in side) for side in (units, others)]
        if lengths[1] < _DOUBLED_LENGTH * lengths[0]:
            return False
        doubled = self.count_edits([*units, *units], others)
        is_like = doubled <= NEAR * 2 * lengths[0]
        return is_like and doubled < self.count_edits(units, others)


_MOST_READ = 4_096
_Form = tuple[str, str, str]
"""A spelling, its letters, and its phonemes as far as these are known."""


def _read_spelling(sounds: Mapping[str, str], spelling: str) -> _Form:
    spoken = sounds.get(spelling)
    if spoken is None:
        spoken = "".join(sounds.get(word, "") for word in spelling.split())
    return spelling, NO_LETTER.sub("", spelling), spoken


def _distance(forms: Sequence[_Form], others: Sequence[_Form], limit: float) -> float:
    """How far apart the nearest two are, as `Comparison.distance`."""
    nearest = 1.0
    for spelling, letters, sounds in forms:
        for other, other_letters, other_sounds in others:
            if spelling == other:
                return 0.0
            if _may_be_within(limit, len(spelling), len(other)):
                nearest = min(nearest, distance_of_letters(letters, other_letters))
            if sounds and other_sounds and _may_be_within(limit, len(sounds), len(other_sounds)):
                nearest = min(nearest, distance_of_sounds(sounds, other_sounds))
    return nearest


def _may_be_within(limit: float, length: int, other: int) -> bool:
    """Whether lengths alone, which are quick to compare, leave texts nearer than a limit."""
    # Spaces and signs don't count.
    return abs(length - other) <= limit * (length if length > other else other) + 2


def _join(units: Sequence[WordUnit]) -> str:
    return " ".join(unit.spellings[0] for unit in units)


@dataclass(frozen=True, slots=True)
class Step:
    """Words of the text from `written` on, and those that were said for them; 0 of one for none."""

    written: int
    n_written: int
    said: int
    n_said: int
    distance: float


_AT_ONCE = 200, 600
"""Words of the text, and of what was said, that are compared with each other at once."""

_ANCHOR_WORDS = 4


def align(words: Comparison) -> list[Step]:
    """The cheapest way from the one side to the other (Levenshtein on words, run together too).

    A long text is cut where both sides agree in several words in a row, or else evenly, so that
    time and memory grow with its length, and not with the square of it.
    """
    steps: list[Step] = []
    for (written, said), (end, said_end) in pairwise(_find_cuts(words)):
        part = words.cut(slice(written, end), slice(said, said_end))
        steps += (
            replace(step, written=step.written + written, said=step.said + said)
            for step in _align_part(part)
        )
    return list(_join_torn(words, steps))


def _find_cuts(words: Comparison) -> list[tuple[int, int]]:
    """The places of both sides at which each part begins, and their ends."""
    ends = len(words.written), len(words.said)
    if _fits_at_once((0, 0), ends):
        return [(0, 0), ends]
    written, said = ([unit.spellings[0] for unit in side] for side in (words.written, words.said))
    blocks = SequenceMatcher(None, written, said).get_matching_blocks()
    anchors = [(0, 0), *((a + n // 2, b + n // 2) for a, b, n in blocks if n >= _ANCHOR_WORDS)]
    cuts = [(0, 0)]
    for anchor, following in pairwise([*anchors, ends]):
        if cuts[-1] != anchor and not _fits_at_once(cuts[-1], following):
            cuts.append(anchor)
        if not _fits_at_once(cuts[-1], following):
            cuts += _cut_evenly(cuts[-1], following)
    return [*cuts, ends]


def _fits_at_once(start: tuple[int, int], end: tuple[int, int]) -> bool:
    return all(b - a <= most for a, b, most in zip(start, end, _AT_ONCE, strict=True))


def _cut_evenly(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    counts = [b - a for a, b in zip(start, end, strict=True)]
    parts = max(-(-n // most) for n, most in zip(counts, _AT_ONCE, strict=True))
    for part in range(1, parts):
        yield start[0] + part * counts[0] // parts, start[1] + part * counts[1] // parts


def _align_part(words: Comparison) -> list[Step]:
    bound = _bound_cost(words) + _ROUNDING
    return (
        _AlignmentSearch(words, bound).find_steps()
        or _AlignmentSearch(words, math.inf).find_steps()
    )


_ROUNDING = 1e-9
"""The same costs, added in another order, differ by less."""


def _bound_cost(words: Comparison) -> float:
    """What it costs at most: that of leaving as many words as they are as can be.

    It is known at once, and it leaves little to search where most is said as it is written.
    """
    written, said = ([unit.spellings[0] for unit in side] for side in (words.written, words.said))
    cost = 0.0
    for at, end, to, said_end in find_opcodes(written, said):
        n_pairs = min(end - at, said_end - to)
        for n in range(n_pairs):
            cost += words.distance([words.written[at + n]], [words.said[to + n]])
        cost += sum(_cost_left_out(unit) for unit in words.written[at + n_pairs : end])
        cost += _LEFT_OUT_COST * (said_end - to - n_pairs)
    return cost


class _AlignmentSearch:
    """The cheapest way from the one side to the other, of those that cost at most `bound`."""

    def __init__(self, words: Comparison, bound: float) -> None:
        self._words = words
        self._bound = bound
        self._n_written, self._n_said = len(words.written), len(words.said)
        self._most_said = [_most_joined(unit) for unit in words.written]
        self._most_written = [_most_joined(unit) for unit in words.said]
        self._written_forms = _find_forms_once(words, words.written)
        self._said_forms = _find_forms_once(words, words.said)
        # By words of the text before a place, and words that were said before it: what it costs
        # to come there, and the last step.
        self._costs: list[dict[int, float]] = [{} for _ in range(self._n_written + 1)]
        self._steps: dict[_Place, tuple[int, int, float]] = {}

    def find_steps(self) -> list[Step]:
        """The steps in order; none where every way costs more."""
        self._costs[0][0] = 0.0
        band = _BAND_WORDS + abs(self._n_said - self._n_written)
        for at, costs in enumerate(self._costs):
            middle = at * self._n_said // max(self._n_written, 1)
            for to in range(max(0, middle - band), min(self._n_said, middle + band) + 1):
                if (cost := costs.get(to)) is not None:
                    self._go_on(at, to, cost)
        return self._trace()

    def _go_on(self, at: int, to: int, cost: float) -> None:
        is_written, is_said = at < self._n_written, to < self._n_said
        if is_written:
            left_out = _cost_left_out(self._words.written[at])
            self._offer(at, to, (at + 1, to), 1.0, cost + left_out)
        if is_said:
            self._offer(at, to, (at, to + 1), 1.0, cost + _LEFT_OUT_COST)
        if is_written and is_said:
            distance = _distance(self._written_forms(at, 1), self._said_forms(to, 1), 1.0)
            self._offer(at, to, (at + 1, to + 1), distance, cost + distance)
            for m in range(2, min(self._most_said[at], self._n_said - to) + 1):
                self._join(at, to, (at + 1, to + m), cost)
            for n in range(2, min(self._most_written[to], self._n_written - at) + 1):
                self._join(at, to, (at + n, to + 1), cost)

    def _join(self, at: int, to: int, end: _Place, cost: float) -> None:
        """Take words of one side that were run together, if they are that."""
        n, m = end[0] - at, end[1] - to
        joining = (n + m - 2) * _JOIN_COST
        if cost + joining > self._bound:
            return
        distance = _distance(self._written_forms(at, n), self._said_forms(to, m), NEAR)
        if distance <= NEAR and (distance <= _JOINED_NEAR or self._belong_together(at, to, end)):
            self._offer(at, to, end, distance, cost + (distance + joining))

    def _belong_together(self, at: int, to: int, end: _Place) -> bool:
        words = self._words
        return words.belong_together(words.written[at : end[0]], words.said[to : end[1]])

    def _offer(self, at: int, to: int, end: _Place, distance: float, cost: float) -> None:
        """Take a step, unless another comes to the same place for as little."""
        if cost <= self._bound and cost < self._costs[end[0]].get(end[1], math.inf):
            self._costs[end[0]][end[1]] = cost
            self._steps[end] = at, to, distance

    def _trace(self) -> list[Step]:
        path, end = list[Step](), (self._n_written, self._n_said)
        while end in self._steps:
            at, to, distance = self._steps[end]
            path.append(Step(at, end[0] - at, to, end[1] - to, distance))
            end = at, to
        return path[::-1]


_Place = tuple[int, int]


def _find_forms_once(
    words: Comparison, units: Sequence[WordUnit]
) -> Callable[[int, int], list[_Form]]:
    """Gives the forms of so many words from a place on."""
    return cache(lambda at, n: words.find_forms(units[at : at + n]))


def _most_joined(unit: WordUnit) -> int:
    """How many words of the other side a word may be."""
    if any(char.isdigit() for char in unit.text):
        return _MAX_OF_NUMBER
    return max(_MAX_JOINED, *(one.count(" ") + 1 for one in unit.spellings))


def _cost_left_out(unit: WordUnit) -> float:
    return 0.02 if unit.is_optional else _LEFT_OUT_COST


def _join_torn(words: Comparison, steps: Sequence[Step]) -> Iterator[Step]:
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
                yield Step(first, n_written, said, n_said, distance)
                continue
        yield from group
