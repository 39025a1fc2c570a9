"""The words of a line as they are written, timed by those that are spoken in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import regex

from studio.dialog.tags import hide_tags
from studio.dialog.text_view import TextView
from studio.hearing.word_times import WordTime

_UNBROKEN = regex.compile(r"\S+")


def place_in_written(
    words: Sequence[WordTime], said: TextView, written: str
) -> tuple[WordTime, ...]:
    """Words of the spoken form of a text as words of the text as it is written.

    Where a pronunciation replaces words, those that are written share the time of those that are
    spoken, by their letters. A word that isn't spoken at all has no time, and is left out.

    Args:
        words: In order, with offsets in any text, such as the spoken form or pieces of it.
        said: What is said of the text.
        written: The whole text.
    """
    found: list[WordTime] = []
    spoken, at = hide_tags(said.text), 0
    for one in words:
        place = spoken.find(one.word, at)
        if place < 0:
            continue
        at = place + len(one.word)
        start, end = said.find_source(place, at)
        if found and start < found[-1].end:  # several words for what is written
            found[-1] = replace(found[-1], end=max(end, found[-1].end), end_s=one.end_s)
        elif start < end:
            found.append(replace(one, start=start, end=end))
    return tuple(word for one in found for word in _divide(one, written))


def _divide(said: WordTime, written: str) -> Iterator[WordTime]:
    """The words that are written where something is said, each with its share of the time."""
    inside = written[said.start : said.end]
    spans = [one.span() for one in _UNBROKEN.finditer(inside)]
    chars = sum(end - start for start, end in spans)
    length_s = said.end_s - said.start_s
    done = 0
    for start, end in spans:
        first_s = said.start_s + length_s * done / chars
        done += end - start
        last_s = said.start_s + length_s * done / chars
        yield replace(
            said,
            word=inside[start:end],
            start=said.start + start,
            end=said.start + end,
            start_s=round(first_s, 3),
            end_s=round(last_s, 3),
        )
