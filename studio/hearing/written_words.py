"""The words of a line as they are written, timed by those that are spoken in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from studio.dialog.directions import find_directions
from studio.dialog.spoken import say
from studio.hearing.draft_reading import find_words
from studio.hearing.word_times import WordTime


def place_in_written(
    words: Sequence[WordTime], written: str, said_in: str | None = None
) -> tuple[WordTime, ...]:
    """Words of the spoken form of a text as words of the text as it is written.

    Where a pronunciation replaces words, those that are written share the time of those that are
    spoken, by their letters. A word that isn't spoken at all has no time, and is left out.

    Args:
        words: With offsets in any text, such as the spoken form or a piece of it.
        written: The whole text before pronunciations.
        said_in: The language in whose words it is said, if it is.
    """
    said = say(written, said_in)
    found: list[WordTime] = []
    for one in _place(words, said.text):
        start, end = said.find_written(one.start, one.end)
        if found and start < found[-1].end:  # several words for one that is written
            found[-1] = replace(found[-1], end_s=one.end_s)
        elif start < end:
            found.append(replace(one, start=start, end=end, word=written[start:end]))
    return tuple(found)


def _place(words: Sequence[WordTime], written: str) -> tuple[WordTime, ...]:
    if all(written[one.start : one.end] == one.word for one in words):
        return tuple(words)
    is_direction = bytearray(len(written))
    for start, end in _find_unspoken_directions(written):
        is_direction[start:end] = b"\1" * (end - start)
    edges = _find_edges(words, written)
    shown = [span for span in find_words(written, edges) if not is_direction[span[0]]]
    placed: list[WordTime] = []
    opcodes = _match([written[start:end] for start, end in shown], [one.word for one in words])
    for kind, from_shown, to_shown, from_said, to_said in opcodes:
        block, said = shown[from_shown:to_shown], words[from_said:to_said]
        if kind == "equal" or len(block) == len(said):
            pairs = zip(said, block, strict=True)
            placed += [replace(one, start=a, end=b, word=written[a:b]) for one, (a, b) in pairs]
        elif block and said:
            placed += _share(block, said, written)
    return tuple(placed)


def _match(shown: list[str], said: list[str]) -> Iterable[tuple[str, int, int, int, int]]:
    if shown == said:  # most texts differ in stage directions only; the matcher may be slow
        return [("equal", 0, len(said), 0, len(said))]
    return SequenceMatcher(None, shown, said, autojunk=False).get_opcodes()


_NEARBY_CHARS = 80


def _find_edges(words: Sequence[WordTime], written: str) -> list[int]:
    """Where words that stand in the written text, too, begin and end in it."""
    at, edges = 0, []
    for word in words:
        found = written.find(word.word, at, at + _NEARBY_CHARS + len(word.word))
        if found >= 0:
            at = found + len(word.word)
            edges += [found, at]
    return edges


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
