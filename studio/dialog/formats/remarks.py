"""Notices about an import, one for each cause however many lines share it."""

from __future__ import annotations

from studio.dialog.model import Notice

_SHOWN_LINES = 5


class Remarks:
    """Collects what the person should know, in order of the first line concerned."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lines: dict[str, list[int]] = {}

    def add(self, message: str, line_number: int) -> None:
        """Remark on a line; the same message again joins the first."""
        lines = self._lines.setdefault(message, [])
        if not lines or lines[-1] != line_number:
            lines.append(line_number)

    def notices(self) -> tuple[Notice, ...]:
        """One notice a message, at the first line that has it; the others are named in it."""
        return tuple(
            Notice(message + _further(lines[1:]), lines[0])
            for message, lines in self._lines.items()
        )


def _further(lines: list[int]) -> str:
    if not lines:
        return ""
    shown = ", ".join(str(line) for line in lines[:_SHOWN_LINES])
    more = len(lines) - _SHOWN_LINES
    noun = "line" if len(lines) == 1 else "lines"
    return f" (Also {noun} {shown}{f' and {more:,} more' if more > 0 else ''}.)"
