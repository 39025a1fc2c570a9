"""Marks weighed against what the recogniser hears in the draft voice's reading of the same text.

A word that a recogniser mishears there in the same way is no fault of a take. So a mark stands only
where the take is heard otherwise than the reading, by more than the recogniser's noise; how the
take's sound fits the reading in that place has a say in it. A recogniser that hears the reading as
it is written is believed.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from studio.hearing.transcript_diff import MarkKind, TranscriptDiff, WordMark, find_marks
from studio.hearing.word_comparison import CLEAR, Step
from studio.hearing.word_sounds import count_letter_edits, find_letters_of, find_places
from studio.hearing.word_times import WordFit


@dataclass(frozen=True, slots=True)
class Suspect:
    """A mark that is to be weighed, or a word that seems to be said twice.

    Attributes:
        mark: As it would stand.
        first: The first word of the text that it is about, and `end` the one behind the last.
        is_hint: Whether letters alone hint at it, so that it is no mark unless the reading agrees.
    """

    mark: WordMark
    first: int
    end: int
    is_hint: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a mark.

    Attributes:
        letters: Those that are heard and explained by the fault, but not without it.
        difference: How far what is heard is from what is heard of the reading, in [0, 1].
        distance: How far the take sounds from the reading, of the take's median.
        length: How much longer or shorter a word of the place is than usual, as a logarithm.
        is_same: Whether the reading is heard just so.
        is_exact: Whether the reading is heard as it is written, and the take as with the fault.
    """

    letters: int
    difference: float
    distance: float = 1.0
    length: float = 0.0
    is_same: bool = False
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class _Weights:
    letters: float
    difference: float
    distance: float
    length: float
    needed: float


_REPEATED = _Weights(0.43, 5.9, 1.4, 4.7, 3.5)
_WEIGHTS = {
    MarkKind.MISSING: _Weights(0.33, 7.1, 1.1, 5.3, 6.1),
    MarkKind.REPEATED: _REPEATED,
    MarkKind.EXTRA: _REPEATED,
    MarkKind.REPLACED: _Weights(0.21, 13.9, 2.15, 6.6, 8.9),
}
"""By logistic regression on 360 lines of six draft voices and 1,080 faults planted into them, with
the tests' recogniser; `tests/hearing/test_planted_words.py` measures them on other lines."""

_UNLIKE_DIFFERENCE = 0.5


def find_suspects(heard: TranscriptDiff) -> list[Suspect]:
    """What to weigh: the marks of a take, and words of which it says more letters than written."""
    found = [_locate(mark, heard) for mark in find_marks(heard)]
    if found and found[0].mark.kind is MarkKind.UNLIKE:
        return found
    return [*found, *_find_hints(heard)]


def weigh_suspects(
    suspects: Sequence[Suspect],
    heard: TranscriptDiff,
    reading: TranscriptDiff,
    fits: Sequence[WordFit] = (),
) -> tuple[WordMark, ...]:
    """The marks that stand, in order of the text.

    Args:
        suspects: By `find_suspects`.
        heard: What the recogniser heard in the take.
        reading: What it heard in the draft voice's reading of the same text.
        fits: How well the take fits that reading, by offsets of the text; nothing if nobody knows.
    """
    scale = _Scale(heard, reading, fits)
    standing = [one for one in suspects if scale.stands(one)]
    marked = [one for one in standing if not one.is_hint]
    hints = (one for one in standing if one.is_hint)
    for hint in sorted(hints, key=scale.count_letters, reverse=True):
        # A mark beside it explains the letters, and so does another hint that explains more.
        if not any(_is_near(hint, one) for one in marked):
            marked.append(hint)
    return tuple(sorted((one.mark for one in marked), key=lambda mark: mark.start))


def _is_near(one: Suspect, other: Suspect) -> bool:
    return one.first <= other.end and other.first <= one.end


class _Scale:
    """Weighs the suspects of one take."""

    def __init__(
        self, heard: TranscriptDiff, reading: TranscriptDiff, fits: Sequence[WordFit]
    ) -> None:
        self._sides = _Side(heard), _Side(reading)
        self._take, self._reading = heard, reading
        self._fits = sorted(fits, key=lambda fit: fit.start)
        self._starts = [fit.start for fit in self._fits]
        self._is_believed = _is_clear(reading)

    def stands(self, suspect: Suspect) -> bool:
        mark = suspect.mark
        if mark.kind is MarkKind.UNLIKE:
            return self._is_unlike(mark)
        evidence = self.find_evidence(suspect)
        if evidence.is_same or (suspect.is_hint and evidence.letters <= 0):
            return False
        if suspect.is_hint or self._is_believed or evidence.is_exact:
            return True
        return score_evidence(mark.kind, evidence) > 0

    def count_letters(self, suspect: Suspect) -> int:
        return self.find_evidence(suspect).letters

    def find_evidence(self, suspect: Suspect) -> Evidence:
        """What speaks for a mark, in its words and one to each side."""
        first, end = self._widen(max(0, suspect.first - 1), suspect.end + 1)
        take, read = (side.letters(first, end) for side in self._sides)
        parts = [
            self._letters(a, b)
            for a, b in ((first, suspect.first), (suspect.first, suspect.end), (suspect.end, end))
        ]
        edits, text = count_letter_edits(take, read), "".join(parts)
        evidence = Evidence(
            len(parts[1]), edits / max(1, len(take), len(read)), is_same=take == read
        )
        if suspect.mark.kind is not MarkKind.REPLACED:
            faults = _spoil(suspect.mark.kind, parts, read)
            faulty = min(count_letter_edits(take, one) for one in faults)
            letters = min(edits, count_letter_edits(take, text)) - faulty
            evidence = replace(evidence, letters=letters, is_exact=read == text and not faulty)
        return self._add_sound(evidence, suspect)

    def _widen(self, first: int, end: int) -> tuple[int, int]:
        """Words run together are looked at together, on both sides."""
        end = min(end, len(self._take.words.written))
        while True:
            spans = [side.span(first, end) for side in self._sides]
            wider = min(a for a, _ in spans), max(b for _, b in spans)
            if wider == (first, end):
                return wider
            first, end = wider

    def _letters(self, first: int, end: int) -> str:
        units = self._take.words.written[first:end]
        return "".join(find_letters_of(unit.spellings[0]) for unit in units)

    def _add_sound(self, evidence: Evidence, suspect: Suspect) -> Evidence:
        own = self._find_fits(suspect.first, suspect.end)
        around = self._find_fits(max(0, suspect.first - 1), suspect.end + 1)
        if not own:
            return evidence
        return replace(
            evidence,
            distance=min(_MOST_DISTANCE, max(fit.distance for fit in own)),
            length=max(abs(math.log(max(_LEAST_LENGTH, fit.length))) for fit in around),
        )

    def _find_fits(self, first: int, end: int) -> Sequence[WordFit]:
        units = self._take.words.written[first:end]
        if not self._fits:
            return ()
        at = bisect_left(self._starts, units[0].start)
        at -= at > 0 and self._fits[at - 1].end > units[0].start
        return self._fits[at : bisect_left(self._starts, units[-1].end)]

    def _is_unlike(self, mark: WordMark) -> bool:
        """Whether most of a text is something else for the take only."""
        if not any(one.kind is MarkKind.UNLIKE for one in find_marks(self._reading)):
            return True
        take, read = (find_letters_of(one.transcript.text) for one in (self._take, self._reading))
        if not mark.recognised:
            return bool(read)
        edits = count_letter_edits(take[:_COMPARED_LETTERS], read[:_COMPARED_LETTERS])
        return edits > _UNLIKE_DIFFERENCE * max(len(take), len(read))


_MOST_DISTANCE, _LEAST_LENGTH = 3.0, 0.2
_COMPARED_LETTERS = 2_000


def score_evidence(kind: MarkKind, evidence: Evidence) -> float:
    """The evidence for a mark, of which more than 0 is enough."""
    weights = _WEIGHTS[kind]
    return (
        weights.letters * max(0, evidence.letters)
        + weights.difference * evidence.difference
        + weights.distance * evidence.distance
        + weights.length * evidence.length
        - weights.needed
    )


def _is_clear(reading: TranscriptDiff) -> bool:
    """Whether all words of a text are heard as they are written."""
    return all(
        step.n_said and step.distance <= CLEAR
        for step in reading.steps
        if not step.n_written or not reading.words.written[step.written].is_optional
    )


class _Side:
    """What was heard for which words of the text."""

    def __init__(self, heard: TranscriptDiff) -> None:
        self._take = heard
        self._starts = [step.written for step in heard.steps]

    def span(self, first: int, end: int) -> tuple[int, int]:
        """The words of all steps that have any of these."""
        steps = [step for step in self._find(first, end) if step.n_written]
        edges = [(step.written, step.written + step.n_written) for step in steps]
        least, most = min(first, *(a for a, _ in edges)), max(end, *(b for _, b in edges))
        return (least, most) if edges else (first, end)

    def letters(self, first: int, end: int) -> str:
        """What was heard for these words, and between them."""
        said = self._take.words.said
        units = (
            unit
            for step in self._find(first, end)
            for unit in said[step.said : step.said + step.n_said]
        )
        return "".join(find_letters_of(unit.text) for unit in units)

    def _find(self, first: int, end: int) -> Iterator[Step]:
        at = bisect_left(self._starts, first)
        while at > 0 and self._ends_behind(at - 1, first):
            at -= 1
        for step in self._take.steps[at:]:
            if step.written > end or (step.n_written and step.written == end):
                return
            yield step

    def _ends_behind(self, at: int, first: int) -> bool:
        step = self._take.steps[at]
        return step.written + step.n_written > first


def _spoil(kind: MarkKind, parts: Sequence[str], read: str) -> Iterator[str]:
    """What would be heard with a fault: by the text, and by what is heard of the reading."""
    before, words, behind = parts
    first, end = find_places("".join(parts), read, (len(before), len(before) + len(words)))
    if kind is MarkKind.MISSING:
        yield before + behind
        yield read[:first] + read[end:]
    else:
        yield before + words + words + behind
        yield read[:end] + read[first:]


def _locate(mark: WordMark, heard: TranscriptDiff) -> Suspect:
    """A mark with its words; that of extra words is about the word before."""
    units = heard.words.written
    first = bisect_left(units, mark.start, key=lambda unit: unit.start)
    if first == len(units) or units[first].start >= mark.end or mark.start == mark.end:
        first = max(0, first - 1)
    end = bisect_left(units, mark.end, key=lambda unit: unit.start)
    return Suspect(mark, first, max(first + 1, end))


def _find_hints(heard: TranscriptDiff) -> Iterator[Suspect]:
    """Words, and pairs of them, of which rather more letters are heard than they have."""
    side = _Side(heard)
    unclear = sorted(
        {
            at
            for step in heard.steps
            if step.n_said and step.distance > CLEAR
            for at in range(step.written - 1, step.written + step.n_written + 1)
        }
    )
    n_words = len(heard.words.written)
    spans = {(at - back, at - back + n) for at in unclear for n in (1, 2) for back in range(n)}
    for first, end in sorted(spans):
        if first >= 0 and end <= n_words and _seems_doubled(heard, side, first, end):
            yield _build_hint(heard, first, end)


def _seems_doubled(heard: TranscriptDiff, side: _Side, first: int, end: int) -> bool:
    from_word, to_word = side.span(max(0, first - 1), min(len(heard.words.written), end + 1))
    parts = [
        "".join(find_letters_of(unit.spellings[0]) for unit in heard.words.written[a:b])
        for a, b in ((from_word, first), (first, end), (end, to_word))
    ]
    take, text = side.letters(from_word, to_word), "".join(parts)
    doubled = parts[0] + parts[1] + parts[1] + parts[2]
    edits = count_letter_edits(take, text)
    return len(take) >= len(text) and 0 < edits >= count_letter_edits(take, doubled)


def _build_hint(heard: TranscriptDiff, first: int, end: int) -> Suspect:
    units = heard.words.written[first:end]
    words = " ".join(unit.text for unit in units)
    said = [
        at
        for step in heard.steps
        if step.written < end and step.written + step.n_written > first
        for at in range(step.said, step.said + step.n_said)
    ]
    start_s, end_s = (heard.times[said[0]][0], heard.times[said[-1]][1]) if said else (None, None)
    mark = WordMark(MarkKind.REPEATED, units[0].start, units[-1].end, words, words, start_s, end_s)
    return Suspect(mark, first, end, is_hint=True)
