"""The words of a line as they are written, timed by those that are spoken in their place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from studio.dialog.directions import find_directions
from studio.hearing.draft_reading import find_words
from studio.hearing.word_times import WordTime


def place_in_written(words: Sequence[WordTime], written: str) -> tuple[WordTime, ...]:
    """Words of the spoken form of a text as words of the text as it is written.

    Where a pronunciation replaces words, those that are written share the time of those that are
    spoken, by their letters. A word that isn't spoken at all has no time, and is left out.

    Args:
        words: With offsets in any text, such as the spoken form or a piece of it.
        written: The whole text before pronunciations.
    """
    if all(written[one.start : one.end] == one.word for one in words):
        return tuple(words)
    directions = _find_unspoken_directions(written)
    shown = [
        (start, end)
        for start, end in find_words(written)
        if not any(first <= start < last for first, last in directions)
    ]
    matcher = SequenceMatcher(
        None, [written[start:end] for start, end in shown], [one.word for one in words], False
    )
    placed: list[WordTime] = []
    for kind, from_shown, to_shown, from_said, to_said in matcher.get_opcodes():
        block, said = shown[from_shown:to_shown], words[from_said:to_said]
        if kind == "equal" or len(block) == len(said):
            pairs = zip(said, block, strict=True)
            placed += [replace(one, start=a, end=b, word=written[a:b]) for one, (a, b) in pairs]
        elif block and said:
            placed += _share(block, said, written)
    return tuple(placed)


def _share(
    block: Sequence[tuple[int, int]], said: Sequence[WordTime], written: str
) -> Iterator[WordTime]:
    chars = sum(end - start for start, end in block)
    begin_s, length_s = said[0].start_s, said[-1].end_s - said[0].start_s
    done = 0
    for start, end in block:
        first_s = begin_s + length_s * done / chars
        done += end - start
        last_s = begin_s + length_s * done / chars
        yield WordTime(written[start:end], start, end, round(first_s, 3), round(last_s, 3))


def _find_unspoken_directions(written: str) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in find_directions(written) if not one.is_spoken]
