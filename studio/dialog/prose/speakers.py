"""Finds who says the quotations of a story: by words beside them, who was named, and by turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import regex

from studio.dialog.prose.people import People, find_people, tidy_name
from studio.dialog.prose.pieces import FIRST_PERSON, PieceKind, Pieces, ProsePiece
from studio.dialog.prose.quotations import Quotation, find_quotations
from studio.dialog.prose.words import SayingWords, find_words
from studio.dialog.reading_limits import check_reading

_CONTEXT = 160
"""How many characters beside a quotation may say who speaks."""
_NAMED = 1_500
"""How many characters before it may name whom a pronoun means."""
_NEAR = 400
"""The most characters between turns of one conversation."""
_NEXT = 3
"""The most characters between paragraphs with none between them."""
_SURE = {
    "after verb": 0.98, "after name": 0.98, "after any verb": 0.97, "after comma": 0.9,
    "before name": 0.96, "before verb": 0.96,
}  # fmt: skip
_ACTING = 0.7
_ALTERNATING = 0.62
"""How sure it is who does something beside the words, and the turns of two people."""
_SENTENCE = regex.compile(r"(?<=[.!?])\s+")


@dataclass(slots=True)
class _Turn:
    """A quotation, what stands beside it in its paragraph, and what that says of its speaker."""

    quotation: Quotation
    text: str
    before: str
    after: str
    written: str = ""
    sure: float = 0.0
    speaker: str | None = None
    confidence: float = 0.0

    def give(self, speaker: str | None, confidence: float) -> None:
        if speaker is not None and confidence > self.confidence:
            self.speaker, self.confidence = speaker, confidence


def split_prose(text: str, language: str | None = None) -> Pieces:
    """The pieces of a text, with who says its quotations.

    Args:
        text: Prose, with an empty row between paragraphs, or a paragraph a row.
        language: BCP-47; None guesses it.
    """
    words = find_words(text, language)
    quotations = find_quotations(text, words)
    turns = list(_read_context(text, quotations))
    for turn in turns:
        _read_tag(turn, words)
    tags = Counter(one.written for one in turns if one.written.casefold() not in words.persons)
    del tags[""]
    ends = [0, *(one.end for one in quotations)]
    narrated = list(zip(ends, [*(one.start for one in quotations), len(text)], strict=True))
    _Story(turns, find_people(text, narrated, tags, words), words).find_speakers()
    return Pieces(text, tuple(_divide(text, turns)))


def _divide(text: str, turns: list[_Turn]) -> Iterator[ProsePiece]:
    at = 0
    for turn in turns:
        start, end = turn.quotation.start, turn.quotation.end
        if start > at:
            yield ProsePiece(PieceKind.NARRATION, text[at:start], at, start)
        yield ProsePiece(PieceKind.QUOTATION, turn.text, start, end, turn.speaker, turn.confidence)
        at = end
    if at < len(text):
        yield ProsePiece(PieceKind.NARRATION, text[at:], at, len(text))


def _read_context(text: str, quotations: list[Quotation]) -> Iterator[_Turn]:
    ends = [0, *(one.end for one in quotations)]
    starts = [*(one.start for one in quotations[1:]), len(text)]
    for one, last, below in zip(quotations, ends, starts, strict=False):
        first, end = one.paragraph
        if text[max(0, first - 40) : first].rstrip().endswith((":", "--", "—")):
            first -= _CONTEXT  # “… and addressed her:”, above the words
        before = text[max(first, last, one.start - _CONTEXT) : one.start]
        after = text[one.end : min(end, below, one.end + _CONTEXT)]
        yield _Turn(one, text[one.start : one.end], before, after)


def _read_tag(turn: _Turn, words: SayingWords) -> None:
    """Find who is named beside the words, and how sure that is."""
    # Behind a full stop, a name begins a sentence of its own.
    is_ended = turn.text[-2:-1] == "."
    for sign in sorted(_SURE, key=lambda sign: is_ended and sign == "after name"):
        pattern = words.tags.get(sign)
        if pattern is None or (sign == "after comma" and turn.text[-2:-1] != ","):
            continue
        if sign.startswith("after"):
            found = pattern.match(turn.after)
        else:  # the one that stands closest, with its title
            ones = pattern.finditer(turn.before, overlapped=True)
            found = max(ones, key=lambda one: (one.end("name"), -one.start()), default=None)
        if found is not None and (name := tidy_name(found["name"], words)):
            turn.written, turn.sure = name, _SURE[sign]
            return


class _Story:
    """The turns of a story, by paragraph, and who occurs in it."""

    def __init__(self, turns: list[_Turn], people: People, words: SayingWords) -> None:
        self.people = people
        self.words = words
        self.paragraphs: list[list[_Turn]] = []
        last = None
        for turn in turns:
            if last == turn.quotation.paragraph or turn.quotation.goes_on:
                self.paragraphs[-1].append(turn)
            else:
                self.paragraphs.append([turn])
            last = turn.quotation.paragraph

    def find_speakers(self) -> None:
        """Give the turns their speakers, in order, as a pronoun means who spoke before."""
        for idx, paragraph in enumerate(self.paragraphs):
            check_reading()
            for turn in paragraph:
                self._resolve(turn, idx, turn.written, turn.sure)
            if not any(turn.speaker for turn in paragraph):
                self._read_action(idx)
            if not any(turn.written or turn.speaker for turn in paragraph):
                self._alternate(idx)
            # Who says one quotation of a paragraph says the others.
            for ones, less in ((paragraph, 0.01), (paragraph[::-1], 0.04)):
                for last, turn in pairwise(ones):
                    if not turn.written:
                        turn.give(last.speaker, last.confidence - less)

    def _resolve(self, turn: _Turn, idx: int, written: str, sure: float) -> None:
        whom = self.words.persons.get(written.casefold())
        if whom == "I":
            turn.give(FIRST_PERSON, sure)
        elif whom is not None:
            turn.give(*self._mean(turn, idx, whom, sure))
        elif written:
            # A description may be of several people: “a voice”, “the boy”.
            less = 0.01 * written[0].islower()
            turn.give(self.people.person_of.get(written, written), sure - less)

    def _before(self, idx: int) -> _Turn | None:
        """The last turn of the paragraph before, in the same conversation."""
        if idx < 1:
            return None
        last = self.paragraphs[idx - 1][-1]
        gap = self.paragraphs[idx][0].quotation.start - last.quotation.end
        return last if gap < _NEAR else None

    def _mean(self, turn: _Turn, idx: int, gender: str, sure: float) -> tuple[str | None, float]:
        """Whom a pronoun means: of those who were named, and who aren't spoken to."""
        out = {FIRST_PERSON, *self.people.inside(turn.text)}
        last = self._before(idx)
        if last and turn.quotation.paragraph[0] - last.quotation.paragraph[1] <= _NEXT:
            out |= {last.speaker or ""}
        named = self.people.before(turn.quotation.start, _NAMED)
        fits = [
            one
            for one, _ in Counter(named).most_common()
            if one not in out and self.people.gender.get(one, gender) == gender
        ]
        return next(iter(fits), None), sure - (0.33 if len(fits) == 1 else 0.5)

    def _read_action(self, idx: int) -> None:
        """Who does something right beside the words: `Mary looked up. “What?”`."""
        for turn in self.paragraphs[idx]:
            for where in (turn.after, _SENTENCE.split(turn.before.strip())[-1]):
                found = self.words.tags["action"].match(where)
                name = tidy_name(found["name"], self.words) if found else ""
                if name in self.people.person_of or name.casefold() in self.words.persons:
                    self._resolve(turn, idx, name, _ACTING)
                    break

    def _alternate(self, idx: int) -> None:
        """Who spoke before the last, of two who speak; “his lady” and “his wife” may be one."""
        last, before_last = self._before(idx), self._before(idx - 1)
        if last is None or before_last is None or last.speaker == before_last.speaker:
            return
        turns = (one[0] for one in self.paragraphs[max(0, idx - 4) : idx])
        around = {turn.speaker for turn in turns if turn.speaker is not None}
        named = {one for turn in self.paragraphs[idx] for one in self.people.inside(turn.text)}
        is_clear = len(around) == 2 and not all(map(str.islower, around))
        if is_clear and before_last.speaker not in named:
            least = min(last.confidence, before_last.confidence)
            self.paragraphs[idx][0].give(before_last.speaker, min(_ALTERNATING, least))
