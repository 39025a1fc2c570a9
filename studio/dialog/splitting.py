"""Long text into pieces that a backend speaks in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import regex
import sentencex

from studio.dialog.tags import TAG
from studio.errors import ScriptError

Span = tuple[int, int]

_CLAUSE_ENDS = regex.compile(r"[,;:—–…][\p{Pf}\p{Pe}\"']*(?=\s)|—|[，；：、،؛՝।]+")
_SPACES = regex.compile(r"\s+")
# Word boundaries of Unicode's annex 29, for scripts without spaces; marks stay with their word.
_WORDS_WITH_MARKS = regex.compile(r"(?w)\b(?<![\p{Ps}\p{Pi}])(?![\p{Pe}\p{Pf}\p{Po}\p{Pd}\p{M}])")
_WORDS = regex.compile(r"(?w)\b")
_LEVELS = (_CLAUSE_ENDS, _SPACES, _WORDS_WITH_MARKS, _WORDS)

# The sentence splitter compares quotes and brackets pair by pair; text of little else, which is
# no prose, is cut at clauses and words alone.
_QUOTES = regex.compile(r"[\"'\p{Ps}\p{Pe}\p{Pi}\p{Pf}]")
_MAX_QUOTES = 5_000

_FLAG = regex.compile(r"\p{Regional_Indicator}{2}")
_SURROGATE = regex.compile(r"\p{Cs}")
_DEFAULT_LANGUAGE = "en"


def split_text(
    text: str,
    max_chars: int,
    language: str | None = None,
    *,
    weight: Callable[[str], float] = lambda _char: 1.0,
) -> list[str]:
    """Cut text into as few pieces as its sentences, then clauses, then words allow.

    Args:
        text: One paragraph; white space around it is dropped.
        max_chars: Longest piece, at least 1.
        language: BCP-47 code; tells abbreviations from sentence ends.
        weight: For how many characters one counts.

    Returns:
        Stripped pieces in order, which lose nothing but white space between them; none is empty.

    Raises:
        ScriptError: A single word or tag is longer than `max_chars`.
    """
    text = text.strip()
    if not text:
        return []
    room = _Room(max_chars, list(accumulate(map(weight, text), initial=0.0)))
    if room.fits(0, len(text)):
        return [text]
    masked = _mask(text)
    spans = _packed(_sentences(masked, language), masked, room)
    return [text[start:end] for start, end in spans]


@dataclass(frozen=True, slots=True)
class _Room:
    """How much fits into a piece; `weights` are those of all beginnings of the text."""

    max_chars: int
    weights: Sequence[float]

    def fits(self, start: int, end: int) -> bool:
        return self.weights[end] - self.weights[start] <= self.max_chars


def _mask(text: str) -> str:
    """Hide what must stay whole behind something as long that no level cuts."""
    # A long run of flags makes word boundaries slow, as every one counts back to the first.
    shown = _FLAG.sub("☺\N{COMBINING ACUTE ACCENT}", text)
    shown = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", shown)  # the sentence splitter's limit
    return TAG.sub(lambda match: "x" * len(match[0]), shown)


def _sentences(masked: str, language: str | None) -> Iterator[Span]:
    code = (language or _DEFAULT_LANGUAGE).partition("-")[0].lower()
    if sum(1 for _ in _QUOTES.finditer(masked)) > _MAX_QUOTES:
        yield 0, len(masked)
        return
    end = 0
    for sentence in sentencex.segment(code, masked):
        start, end = end, end + len(sentence)
        yield from _visible(start, end, masked)


def _packed(sentences: Iterator[Span], masked: str, room: _Room) -> Iterator[Span]:
    """Join neighbouring spans as long as they fit."""
    start = end = 0
    for sentence in sentences:
        for atom_start, atom_end in _atoms(sentence, masked, room, level=0):
            if not room.fits(start, atom_end):
                yield start, end
                start = atom_start
            end = atom_end
    yield start, end


def _atoms(span: Span, masked: str, room: _Room, *, level: int) -> Iterator[Span]:
    """Cut a span into ones that fit, at the first level that can."""
    if room.fits(*span):
        yield span
        return
    if level == len(_LEVELS):
        raise _too_long(span, room.max_chars)
    for part in _cut(span, _LEVELS[level], masked):
        yield from _atoms(part, masked, room, level=level + 1)


def _cut(span: Span, ends: regex.Pattern[str], masked: str) -> Iterator[Span]:
    start, end = span
    for match in ends.finditer(masked, start, end):
        yield from _visible(start, match.end(), masked)
        start = match.end()
    yield from _visible(start, end, masked)


def _visible(start: int, end: int, masked: str) -> Iterator[Span]:
    """The span without white space at its ends; none when nothing is left."""
    text = masked[start:end]
    width = len(text.strip())
    if width:
        start = end - len(text.lstrip())
        yield start, start + width


def _too_long(span: Span, max_chars: int) -> ScriptError:
    return ScriptError(
        f"A word of {span[1] - span[0]:,} characters can't be spoken: this voice takes at most "
        f"{max_chars:,} at a time. Put spaces into it, or shorten it."
    )
