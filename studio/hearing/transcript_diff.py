"""What was said against what was to be said: missing, extra, repeated and replaced words.

Words are compared by their sound and by their letters, whichever is nearer, so that neither a
number in digits nor a name that a recogniser spells its own way is a difference. eSpeak NG reads
both sides, numbers and abbreviations too, in the language of the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from studio.backends.espeak.espeak_voices import language_of_text
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
    heard = hear(text, transcript, language=language, read_sounds=read_sounds, pronounce=pronounce)
    return find_marks(heard)


_Times = list[tuple[float | None, float | None]]


@dataclass(frozen=True, slots=True)
class TranscriptDiff:
    """The words of a text, and what a recogniser heard for each.

    Attributes:
        text: As it is written.
        transcript: What was heard.
        words: Of both.
        steps: What was heard for which words, in order.
        times: When each heard word is said.
    """

    text: str
    transcript: Transcript
    words: Comparison
    steps: Sequence[Step]
    times: _Times


def hear(
    text: str,
    transcript: Transcript,
    *,
    language: str | None = None,
    read_sounds: ReadSounds | None = None,
    pronounce: Callable[[str], str] = lambda text: text,
) -> TranscriptDiff:
    """Compare what was recognised with a text, as `compare_transcript`."""
    language = language or language_of_text(text)
    written = read_written(text, language, pronounce)
    said, times = _read_said(transcript.words, language)
    spellings = {one for unit in (*written, *said) for one in unit.spellings}
    spellings |= {word for one in spellings for word in one.split()}
    words = Comparison(written, said, read_sounds(spellings, language) if read_sounds else {})
    return TranscriptDiff(text, transcript, words, align(words), times)


def find_marks(heard: TranscriptDiff) -> tuple[WordMark, ...]:
    """The marks of a text, as `compare_transcript`."""
    needed = [unit for unit in heard.words.written if not unit.is_optional]
    if not needed:
        return ()
    if not heard.words.said or _is_unlike(heard, len(needed)):
        start_s, end_s = (heard.times[0][0], heard.times[-1][1]) if heard.times else (None, None)
        start, end = needed[0].start, needed[-1].end
        recognised = heard.transcript.text if heard.times else ""
        text = heard.text.strip()
        return (WordMark(MarkKind.UNLIKE, start, end, text, recognised, start_s, end_s),)
    return tuple(_merge(_iter_marks(heard.words, heard.steps, heard.times)))


def _is_unlike(heard: TranscriptDiff, n_needed: int) -> bool:
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


def _read_said(words: Sequence[RecognisedWord], language: str) -> tuple[list[WordUnit], _Times]:
    """The words of a transcript, and when each is said."""
    units, times = [], []
    for word in words:
        for unit in read_text(word.text, language):
            if not unit.is_optional:
                units.append(unit)
                times.append((word.start_s, word.end_s))
    return units, times


def _iter_marks(
    words: Comparison, steps: Sequence[Step], times: _Times
) -> Iterator[WordMark | None]:
    """A mark for each step that has one, else None."""
    place = 0
    for step, n_extra in _group_extra(steps):
        units = words.written[step.written : step.written + max(step.n_written, 1)]
        if not step.n_written:
            mark = _mark_extra(words, step, n_extra, place, times)
            is_fragment = len(mark.recognised) == 1 and mark.recognised != mark.written.casefold()
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


def _group_extra(steps: Sequence[Step]) -> list[tuple[Step, int]]:
    """Steps, of which those that say extra words one after the other are one with their number."""
    grouped: list[tuple[Step, int]] = []
    for step in steps:
        if not step.n_written and grouped and not grouped[-1][0].n_written:
            grouped[-1] = grouped[-1][0], grouped[-1][1] + 1
        else:
            grouped.append((step, 1))
    return grouped


def _mark_extra(words: Comparison, step: Step, count: int, place: int, times: _Times) -> WordMark:
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
