"""What was said against what was to be said: missing, extra, repeated and replaced words.

Both sides are said in words first. These are compared by their sound, as eSpeak NG reads them, and
by their letters, whichever is nearer: a name that a recogniser spells its own way is no difference.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate

from studio.backends.espeak.espeak_voices import language_of_text
from studio.dialog.spoken import say
from studio.dialog.text_view import TextView
from studio.hearing.recognition import RecognisedWord, Transcript
from studio.hearing.word_comparison import NEAR, Comparison, Step, align
from studio.hearing.word_sounds import ReadSounds
from studio.hearing.word_spelling import WordUnit, read_text, read_written


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


_SURE = 0.4
"""Of a recogniser that says how probable each word is, less is a guess. In its guesses it mishears
good takes; where a word is missing those beside it are judged, as the sound there fits neither."""

_LONGEST_WORD = 200  # characters; of more nobody asks how they sound
_UNLIKE_SHARE = 0.6
_UNLIKE_WORDS = 4


def compare_transcript(
    text: str,
    transcript: Transcript,
    *,
    language: str | None = None,
    read_sounds: ReadSounds | None = None,
    pronounce: Callable[[str], TextView] = TextView,
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
    written = read_written(text, language, pronounce)
    said, times, probabilities = _read_said(transcript.words, language)
    spellings = {one for unit in (*written, *said) for one in unit.spellings}
    spellings |= {word for one in spellings for word in one.split()}
    spellings = {one for one in spellings if len(one) <= _LONGEST_WORD}
    words = Comparison(written, said, read_sounds(spellings, language) if read_sounds else {})
    return _find_marks(_Diff(text, transcript, words, align(words), times, probabilities))


_Times = list[tuple[float | None, float | None]]
_Probabilities = list[float | None]


@dataclass(frozen=True, slots=True)
class _Diff:
    """The words of a text, and what was heard for each: when, and how probable that is."""

    text: str
    transcript: Transcript
    words: Comparison
    steps: Sequence[Step]
    times: _Times
    probabilities: _Probabilities


def _find_marks(heard: _Diff) -> tuple[WordMark, ...]:
    needed = [unit for unit in heard.words.written if not unit.is_optional]
    if not needed:
        return ()
    if not heard.words.said or _is_unlike(heard, len(needed)):
        start_s, end_s = (heard.times[0][0], heard.times[-1][1]) if heard.times else (None, None)
        start, end = needed[0].start, needed[-1].end
        recognised = heard.transcript.text if heard.times else ""
        text = heard.text.strip()
        return (WordMark(MarkKind.UNLIKE, start, end, text, recognised, start_s, end_s),)
    return tuple(_merge(_iter_marks(heard)))


def _is_unlike(heard: _Diff, n_needed: int) -> bool:
    """Whether most of what was said is something else."""
    written = heard.words.written
    wrong = sum(
        step.n_written
        for step in heard.steps
        if step.n_written
        and not heard.words.is_near(step)
        and not written[step.written].is_optional
    )
    return wrong >= _UNLIKE_WORDS and wrong > _UNLIKE_SHARE * n_needed


def _read_said(
    words: Sequence[RecognisedWord], language: str
) -> tuple[list[WordUnit], _Times, _Probabilities]:
    """The words of a transcript, when each is said, and how probable each is."""
    starts = [0, *accumulate(len(word.text) + 1 for word in words)]
    spoken = say(" ".join(word.text for word in words), language)
    units = [unit for unit in read_text(spoken.text, language) if not unit.is_optional]
    places = (spoken.find_source(unit.start, unit.end)[0] for unit in units)
    owners = [words[bisect_right(starts, place) - 1] for place in places]
    times = [(word.start_s, word.end_s) for word in owners]
    probabilities = [word.probability for word in owners]
    return units, times, probabilities


def _iter_marks(heard: _Diff) -> Iterator[WordMark | None]:
    """A mark for each step that has one of which the recogniser is sure, else None."""
    place = 0
    for step, n_extra in _group_extra(heard.steps):
        units = heard.words.written[step.written : step.written + step.n_written]
        mark = _mark_step(heard, step, units) if units else _mark_extra(heard, step, n_extra, place)
        place = units[-1].end if units else place
        yield mark if mark and _is_sure(heard, step, n_extra) else None


def _mark_step(heard: _Diff, step: Step, units: Sequence[WordUnit]) -> WordMark | None:
    """The mark of words of the text, if what was said for them isn't them."""
    words = heard.words
    said = words.said[step.said : step.said + step.n_said]
    is_doubled = step.n_written == step.n_said == 1 and words.is_doubled(units, said)
    is_fine = words.is_near(step) if step.n_said else units[0].is_optional
    if is_fine and not is_doubled:
        return None
    kind = MarkKind.REPLACED if step.n_said else MarkKind.MISSING
    kind = MarkKind.REPEATED if is_doubled else kind
    recognised = " ".join(one.text for one in said)
    span = _span(heard.times, step.said, step.n_said)
    return WordMark(kind, units[0].start, units[-1].end, units[0].text, recognised, *span)


def _is_sure(heard: _Diff, step: Step, n_extra: int) -> bool:
    """Whether the recogniser is sure of what it heard in a place; of a gap, beside it."""
    first, end = step.said, step.said + (step.n_said if step.n_written else n_extra)
    if first == end:
        first, end = max(0, first - 1), end + 1
    return all(one is None or one >= _SURE for one in heard.probabilities[first:end])


def _group_extra(steps: Sequence[Step]) -> list[tuple[Step, int]]:
    """Steps, of which those that say extra words one after the other are one with their number."""
    grouped: list[tuple[Step, int]] = []
    for step in steps:
        if not step.n_written and grouped and not grouped[-1][0].n_written:
            grouped[-1] = grouped[-1][0], grouped[-1][1] + 1
        else:
            grouped.append((step, 1))
    return grouped


def _mark_extra(heard: _Diff, step: Step, count: int, place: int) -> WordMark | None:
    """A mark of extra words, or of the words that they repeat; none of a fragment."""
    words, first = heard.words, step.said
    recognised = " ".join(one.text for one in words.said[first : first + count])
    span = _span(heard.times, first, count)
    begins = _find_repeated(words, first, count)
    if begins is None:
        is_fragment = len(recognised) == 1
        extra = WordMark(MarkKind.EXTRA, place, place, "", recognised, *span)
        return None if is_fragment else extra
    at = max(0, step.written - (first - begins))
    repeated = words.written[at : at + count]
    written = " ".join(one.text for one in repeated)
    if len(recognised) == 1 and recognised != written.casefold():
        return None
    return WordMark(
        MarkKind.REPEATED, repeated[0].start, repeated[-1].end, written, recognised, *span
    )


_MOST_REPEATED = 100
"""Words that are looked for as said twice; more are something else that was said. Each place where
they might begin is compared with as many words."""


def _find_repeated(words: Comparison, first: int, count: int) -> int | None:
    """Where words begin that are said twice, one pair of which are those from `first` on.

    Of "the cat the cat" the two words that are too many may be found in the middle.
    """
    if count > _MOST_REPEATED:
        return None
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
