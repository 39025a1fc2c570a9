"""What the pronunciations of a project do to its lines, told before they are spoken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from studio.dialog.limits import Limits
from studio.dialog.model import Dialog, Speech
from studio.dialog.paragraph import heard
from studio.dialog.planning import FailedSegment, plan
from studio.dialog.pronouncing import Pronouncing, Pronunciation
from studio.project.document import Document, LineKind

_TAGGED = frozenset("[(<")


@dataclass(frozen=True, slots=True)
class Wording:
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


def wording_of(document: Document, limits: Limits, asked: Pronunciation | None = None) -> Wording:
    """Look through a document's lines.

    Args:
        document: Lines and their pronunciations.
        limits: What the backend can take.
        asked: An entry that is about to be written; it counts as if it were.
    """
    entries = {**document.pronunciations, **({asked.written: asked} if asked else {})}
    texts = [heard(line.text) for line in document if line.kind is LineKind.SPEECH]
    uses = Pronouncing(_switched_on(one) for one in entries.values()).uses(texts)
    return Wording(
        {written: uses[written] for written in entries},
        {written: hints for written, one in entries.items() if (hints := _hints(one, limits))},
        _example(texts, Pronouncing(entries.values()), asked),
    )


def _switched_on(entry: Pronunciation) -> Pronunciation:
    return Pronunciation(entry.written, entry.spoken, entry.match_case)


def _hints(entry: Pronunciation, limits: Limits) -> list[str]:
    """What a voice would make of the tags in a spoken form."""
    if _TAGGED.isdisjoint(entry.spoken):
        return []
    planned = plan(Dialog((Speech("Voice", entry.spoken),)), limits)
    failed = [one.message for one in planned.segments if isinstance(one, FailedSegment)]
    return [*failed, *(notice.message for notice in planned.notices)]


def _example(
    texts: list[str], pronouncing: Pronouncing, asked: Pronunciation | None
) -> tuple[str, str] | None:
    if asked is None:
        return None
    found = (text for text in texts if asked.written in pronouncing.used(text))
    text = next(found, None)
    return None if text is None else (text, pronouncing.spoken(text))
