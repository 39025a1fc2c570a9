"""What a voice says of a line's text, for captions and whatever else shows what is heard."""

from __future__ import annotations

from collections.abc import Sequence

from studio.dialog.directions import find_directions
from studio.dialog.tags import find_sounds

_CLOSING = ",.;:!?…"


def find_said(text: str) -> tuple[str, Sequence[int]]:
    """What a voice says of a text: without pauses, sounds and stage directions.

    Returns:
        That, and the place of each of its characters in the text.
    """
    directions = (one for one in find_directions(text) if not one.is_spoken)
    silent = sorted([*find_sounds(text), *((one.start, one.end) for one in directions)])
    if not silent:
        return text, range(len(text))
    said = _SaidText()
    begin = 0
    for start, end in silent:
        said.add(text, begin, start)
        said.leave_out(end)
        begin = max(begin, end)
    said.add(text, begin, len(text))
    said.drop_spaces()
    return "".join(said.chars), said.places


class _SaidText:
    """Collects what is said, with one space where something is left out and none before a comma."""

    def __init__(self) -> None:
        self.chars: list[str] = []
        self.places: list[int] = []
        self._follows_gap = True

    def add(self, text: str, start: int, end: int) -> None:
        for at in range(start, end):
            char = text[at]
            if self._follows_gap:
                if char.isspace():
                    continue
                if char in _CLOSING:
                    self.drop_spaces()
                    if not self.chars:
                        continue  # “[laugh], well”
            self._follows_gap = False
            self._append(char, at)

    def leave_out(self, end: int) -> None:
        self.drop_spaces()
        if self.chars:
            self._append(" ", end - 1)
        self._follows_gap = True

    def drop_spaces(self) -> None:
        while self.chars and self.chars[-1].isspace():
            self.chars.pop()
            self.places.pop()

    def _append(self, char: str, at: int) -> None:
        self.chars.append(char)
        self.places.append(at)
