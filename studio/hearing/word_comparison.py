"""Two lists of words, of a text and of what was said, brought into line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, pairwise, product

import numpy as np

from studio.hearing.word_sounds import NO_LETTER, distance_of_letters, distance_of_sounds
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
_MAX_OF_NUMBER = 12
_BAND_WORDS = 40
"""Words that both sides may be apart; beyond, it is another text."""


class Comparison:
    """The words of both sides, and how far apart any of them are."""

    def __init__(
        self, written: Sequence[WordUnit], said: Sequence[WordUnit], sounds: Mapping[str, str]
    ) -> None:
        """Compare words by the phonemes of their spellings, as far as these are known."""
        self.written = written
        self.said = said
        self._sounds = sounds

    def cut(self, written: slice, said: slice) -> Comparison:
        """A part of both sides."""
        return Comparison(self.written[written], self.said[said], self._sounds)

    def distance(
        self, units: Sequence[WordUnit], others: Sequence[WordUnit], limit: float = 1.0
    ) -> float:
        """How far apart words run together are, in [0, 1]; 1 also for what is beyond a limit."""
        pairs = product(_join_spellings(units), _join_spellings(others))
        return min(self._distance_of(one, other, limit) for one, other in pairs)

    def count_edits(self, units: Sequence[WordUnit], others: Sequence[WordUnit]) -> float:
        """How many sounds or letters have to be changed to make one of the other."""
        said = " ".join(unit.spellings[0] for unit in others)
        written = " ".join(unit.spellings[0] for unit in units)
        longest = max(len(NO_LETTER.sub("", one)) for one in (said, written))
        edits = distance_of_letters(written, said) * longest
        sounds, other_sounds = self._sound(written), self._sound(said)
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

    def _distance_of(self, one: str, other: str, limit: float) -> float:
        if one == other:
            return 0.0
        found = 1.0
        if _may_be_within(limit, one, other):
            found = distance_of_letters(one, other)
        sounds, other_sounds = self._sound(one), self._sound(other)
        if sounds and other_sounds and _may_be_within(limit, sounds, other_sounds):
            found = min(found, distance_of_sounds(sounds, other_sounds))
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


def _join_spellings(units: Sequence[WordUnit]) -> list[str]:
    if len(units) == 1:
        return list(units[0].spellings)
    return [" ".join(unit.spellings[0] for unit in units)]


@dataclass(frozen=True, slots=True)
class Step:
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
    n_written, n_said = len(words.written), len(words.said)
    costs = np.full((n_written + 1, n_said + 1), np.inf)
    costs[0, 0] = 0.0
    steps: dict[tuple[int, int], Step] = {}
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


def _steps_from(words: Comparison, at: int, to: int) -> Iterator[Step]:
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
            yield Step(at, n, to, m, 1.0)
            continue
        limit = 1.0 if (n, m) == _ONE_TO_ONE else NEAR
        distance = words.distance(units[:n], others[:m], limit)
        is_joined = distance <= _JOINED_NEAR or (
            distance <= NEAR and words.belong_together(units[:n], others[:m])
        )
        if (n, m) == _ONE_TO_ONE or is_joined:
            yield Step(at, n, to, m, distance)


def _cost(words: Comparison, step: Step) -> float:
    if not step.n_said:
        return 0.02 if words.written[step.written].is_optional else _LEFT_OUT_COST
    if not step.n_written:
        return _LEFT_OUT_COST
    return step.distance + (step.n_written + step.n_said - 2) * _JOIN_COST


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
