"""Which lines are heard otherwise after what holds for all of them was changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from studio.dialog.paragraph import heard
from studio.dialog.pronouncing import Pronouncing, Pronunciation
from studio.project.document import Document, LineKind
from studio.project.voices import Ground


def respoken(before: Document, after: Document) -> Iterator[str]:
    """Lines of both documents of whose text a voice hears something else than before."""
    was, now = before.pronunciations, after.pronunciations
    if was == now:
        return
    former, present = Pronouncing(was.values()), Pronouncing(now.values())
    # Only where a changed entry stands can anything be heard otherwise; most lines hold none.
    concerned = _without(was, now), _without(now, was)
    for line_id, line in after.lines.items():
        if line.kind is not LineKind.SPEECH or line_id not in before.lines:
            continue
        text = heard(line.text)
        is_concerned = any(one.used(text) for one in concerned)
        if is_concerned and former.spoken(text) != present.spoken(text):
            yield line_id


def revoiced(former: Ground, present: Ground, document: Document) -> Iterator[str]:
    """Lines that are spoken by another voice or engine, or in another language, than before."""
    if former is present:
        return
    former = replace(former, pronouncing=present.pronouncing)  # `respoken` is quicker at those
    for line in document:
        if not former.agrees(present, line):
            yield line.line_id


def _without(
    entries: Mapping[str, Pronunciation], others: Mapping[str, Pronunciation]
) -> Pronouncing:
    """The entries that aren't among others as they are."""
    return Pronouncing(one for written, one in entries.items() if others.get(written) != one)
