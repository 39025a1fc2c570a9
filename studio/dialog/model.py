"""The dialog: an ordered list of lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from studio.dialog.names import name_key
from studio.errors import NameRejected, ScriptError


@contextmanager
def with_place(line: int, *, unit: str = "Line") -> Iterator[None]:
    """Give errors raised inside their place, so that only the reader of a source counts lines.

    Raises:
        ScriptError: In place of one without a line, or of a NameRejected.
    """
    try:
        yield
    except (ScriptError, NameRejected) as error:
        if isinstance(error, ScriptError) and error.line is not None:
            raise
        raise ScriptError(str(error), line=line, unit=unit) from error


ParamValue = float | int | str | bool

MAX_PAUSE_S = 300.0
MAX_LINE_CHARS = 100_000
MAX_LINES = 20_000
MAX_SCRIPT_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class Speech:
    """Something a speaker says.

    `text` is one paragraph (no line breaks) and may hold pause tags and sound tags as written.
    `text` may be empty: such a line fails when it is planned, and its neighbours don't.
    `line_number` is the 1-based place in the source; it takes no part in equality.
    """

    speaker: str
    text: str
    language: str | None = None
    seed: int | None = None
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    line_number: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Silence:
    """A pause between lines; 0 to `MAX_PAUSE_S` seconds."""

    duration_s: float
    line_number: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Audio:
    """Audio that exists already; `path` is as written in the script."""

    path: str
    line_number: int = field(default=0, compare=False)


Line = Speech | Silence | Audio


@dataclass(frozen=True, slots=True)
class Dialog:
    """Lines in the order they are heard."""

    lines: tuple[Line, ...]

    def __iter__(self) -> Iterator[Line]:
        """Iterate over the lines in order."""
        return iter(self.lines)

    def __len__(self) -> int:
        """Count the lines, silences and audio included."""
        return len(self.lines)

    def speakers(self) -> tuple[str, ...]:
        """Names in order of first appearance, as first written; case does not tell two apart."""
        seen: dict[str, str] = {}
        for line in self.lines:
            if isinstance(line, Speech):
                seen.setdefault(name_key(line.speaker), line.speaker)
        return tuple(seen.values())


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the person should know that stops nothing; `line_number` 0 concerns the whole."""

    message: str
    line_number: int = 0


@dataclass(frozen=True, slots=True)
class ParsedScript:
    """A dialog and what was noticed while it was read."""

    dialog: Dialog
    notices: tuple[Notice, ...] = ()


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
