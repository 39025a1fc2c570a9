"""What the pronunciations of a project change in its lines, shown before they are spoken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from studio.dialog.limits import SpeechLimits
from studio.dialog.line_text import normalize_spoken_text
from studio.dialog.model import Dialog, Speech
from studio.dialog.planning import FailedSegment, plan
from studio.dialog.pronunciation import Pronunciation, PronunciationRules
from studio.project.document import Document, LineKind

_TAG_STARTS = frozenset("[(<")


@dataclass(frozen=True, slots=True)
class PronunciationEffects:
    """How far a list of pronunciations reaches.

    Attributes:
        lines: In how many lines each entry has its place, by the word; all of them are there. One
            that is switched off counts as if it were on.
        hints: What is to be known of an entry, by the word.
        example: A line's text with what is heard of it, where a word was asked about.
    """

    lines: Mapping[str, int]
    hints: Mapping[str, list[str]]
    example: tuple[str, str] | None = None


def find_pronunciation_effects(
    document: Document, limits: SpeechLimits, asked: Pronunciation | None = None
) -> PronunciationEffects:
    """Look through a document's lines.

    Args:
        document: Lines and their pronunciations.
        limits: What the backend can take.
        asked: An entry that is about to be written; it counts as if it were.
    """
    entries = {**document.pronunciations, **({asked.written: asked} if asked else {})}
    texts = [normalize_spoken_text(line.text) for line in document if line.kind is LineKind.SPEECH]
    uses = PronunciationRules(_enable_entry(one) for one in entries.values()).uses(texts)
    return PronunciationEffects(
        {written: uses[written] for written in entries},
        {
            written: hints
            for written, one in entries.items()
            if (hints := _find_warnings(one, limits))
        },
        _find_example(texts, PronunciationRules(entries.values()), asked),
    )


def _enable_entry(entry: Pronunciation) -> Pronunciation:
    return Pronunciation(entry.written, entry.spoken, entry.match_case)


def _find_warnings(entry: Pronunciation, limits: SpeechLimits) -> list[str]:
    """What a voice would make of the tags in a spoken form."""
    if _TAG_STARTS.isdisjoint(entry.spoken):
        return []
    planned = plan(Dialog((Speech("Voice", entry.spoken),)), limits)
    failed = [one.message for one in planned.segments if isinstance(one, FailedSegment)]
    return [*failed, *(notice.message for notice in planned.notices)]


def _find_example(
    texts: list[str], pronouncing: PronunciationRules, asked: Pronunciation | None
) -> tuple[str, str] | None:
    if asked is None:
        return None
    found = (text for text in texts if asked.written in pronouncing.used(text))
    text = next(found, None)
    return None if text is None else (text, pronouncing.spoken(text))
