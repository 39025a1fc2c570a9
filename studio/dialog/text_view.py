"""A text made of another one, such as the spoken one of a line's, and where its parts come from."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import regex

from studio.dialog.tags import tidy_spaces

Place = tuple[int, int, int, int]
"""Start and end of a part of the text, and of what stands for it in the source."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TextView:
    """A text and its differences from its source.

    Attributes:
        places: Of what isn't the same in both, in order; all between them is.
    """

    text: str
    places: Sequence[Place] = ()

    def find_source(self, start: int, end: int) -> Span:
        """The place in the source of a part of this text; what is replaced counts as a whole."""
        return _move(self.places, start, end, 0)

    def find_shown(self, start: int, end: int) -> Span:
        """The place in this text of a part of the source; empty if it is left out."""
        return _move(self.places, start, end, 2)

    def over(self, below: TextView) -> TextView:
        """The view of the source of `below`, of whose text this one is a view."""
        if not below.places or not self.places:
            return TextView(self.text, self.places or below.places)
        # Each with its place in the text between, and how far what follows is off that.
        changed = sorted(
            [(one[2], one[3], 0, one[1] - one[3]) for one in self.places]
            + [(one[0], one[1], 1, one[3] - one[1]) for one in below.places]
        )
        places: list[Place] = []
        off = [0, 0]
        at = 0
        while at < len(changed):
            start, end, side, after = changed[at]
            first = start + off[0], start + off[1]
            off[side] = after
            at += 1
            while at < len(changed) and changed[at][0] < end:
                _, further, side, after = changed[at]
                end, off[side] = max(end, further), after
                at += 1
            places.append((first[0], end + off[0], first[1], end + off[1]))
        return TextView(self.text, tuple(places))


def _move(places: Sequence[Place], start: int, end: int, side: int) -> Span:
    """From the side of a place that begins at `side` to the other one."""
    other = 2 - side

    def move(at: int, edge: int) -> int:
        number = bisect_right(places, at, key=lambda one: one[side]) - 1
        place = places[number] if number >= 0 else (0, 0, 0, 0)
        if at < place[side + 1]:
            return place[other + edge]
        return at - place[side + 1] + place[other + 1] + edge

    return (move(start, 0), move(end - 1, 1)) if start < end else (move(start, 0),) * 2


@dataclass(slots=True)
class ViewBuilder:
    """Builds a view from the beginning of its source to the end."""

    parts: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    length: int = 0
    at: int = 0
    """Where the source goes on."""

    def keep(self, view: TextView, size: int) -> None:
        """Go on with a view of the next `size` characters of the source."""
        here, source = self.length, self.at
        self.places += [(a + here, b + here, c + source, d + source) for a, b, c, d in view.places]
        self._append(view.text, size)

    def put(self, words: str, size: int) -> None:
        """Go on with words that stand for the next `size` characters of the source."""
        place = (self.length, self.length + len(words), self.at, self.at + size)
        if not size and self.places and self.places[-1][1::2] == place[::2]:
            place = (self.places[-1][0], place[1], self.places.pop()[2], place[3])
        self.places.append(place)
        self._append(words, size)

    def _append(self, words: str, size: int) -> None:
        if words:
            self.parts.append(words)
        self.length += len(words)
        self.at += size

    def finish(self) -> TextView:
        """The view of all that came so far."""
        return TextView("".join(self.parts), tuple(self.places))


def leave_out(text: str, spans: Iterable[Span]) -> TextView:
    """A text without parts, which may overlap, and without the spaces that these leave behind."""
    builder = ViewBuilder()
    for start, end in sorted(spans):
        if start > builder.at:
            builder.keep(TextView(text[builder.at : start]), start - builder.at)
        if end > builder.at:
            builder.put(" ", end - builder.at)
    if not builder.places:
        return TextView(text)
    builder.keep(TextView(text[builder.at :]), len(text) - builder.at)
    cut = builder.finish()
    return tidy(cut.text).over(cut)


def tidy(text: str) -> TextView:
    """A text as `tidy_spaces` leaves it."""
    tidied = tidy_spaces(text)
    if tidied == text:
        return TextView(text)
    places: list[Place] = []
    at, kept = 0, len(tidied)
    for idx, char in enumerate(text):  # it only takes characters away, and makes spaces of others
        if at < kept and (char == tidied[at] or (tidied[at] == " " and char.isspace())):
            at += 1
        elif places and places[-1][3] == idx:
            places[-1] = (at, at, places[-1][2], idx + 1)
        else:
            places.append((at, at, idx, idx + 1))
    return TextView(tidied, tuple(places))


def compose(text: str) -> TextView:
    """A text in Unicode's form NFC."""
    if unicodedata.is_normalized("NFC", text):
        return TextView(text)
    builder = ViewBuilder()
    for cluster in regex.findall(r"\X", text):
        composed = unicodedata.normalize("NFC", cluster)
        if composed == cluster:
            builder.keep(TextView(cluster), len(cluster))
        else:
            builder.put(composed, len(cluster))
    composed = unicodedata.normalize("NFC", text)
    found = builder.finish()
    is_same = found.text == composed  # marks may go together beyond a cluster
    return found if is_same else TextView(composed, ((0, len(composed), 0, len(text)),))
