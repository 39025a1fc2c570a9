"""Names that differ only in case mean one speaker; the person should know."""

from __future__ import annotations

from collections.abc import Iterable

from studio.dialog.model import Line, Notice, Speech
from studio.dialog.names import name_key


def spelling_notices(lines: Iterable[Line]) -> tuple[Notice, ...]:
    """One notice for every further spelling of a name, at the line that first has it."""
    first: dict[str, Speech] = {}
    seen: set[str] = set()
    notices = []
    for line in lines:
        if not isinstance(line, Speech) or line.speaker in seen:
            continue
        seen.add(line.speaker)
        known = first.setdefault(name_key(line.speaker), line)
        if known is not line:
            notices.append(_notice(line, known))
    return tuple(notices)


def _notice(line: Speech, known: Speech) -> Notice:
    return Notice(
        f"“{line.speaker}” (line {line.line_number}) is taken to be “{known.speaker}” "
        f"(line {known.line_number}): names that differ only in case share one voice.",
        line.line_number,
    )
