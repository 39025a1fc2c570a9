"""Builds an imported dialog, with one notice for each cause, however many lines it concerns."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import regex

from studio.dialog.attributes import Attributes, check_audio_path
from studio.dialog.directions import word_set
from studio.dialog.gaps import MAX_START_S, START
from studio.dialog.markup import find_link_addresses
from studio.dialog.model import (
    MAX_LINE_CHARS,
    MAX_NAME_CHARS,
    MAX_PAUSE_S,
    Audio,
    Dialog,
    Line,
    Notice,
    ParamValue,
    ParsedScript,
    Silence,
    Speech,
    Unspoken,
    UnspokenKind,
    clean_name,
    name_key,
    paragraph,
    spelling_notices,
    with_place,
)
from studio.dialog.reading_limits import Budget, Cost
from studio.dialog.tags import cut_pauses
from studio.errors import NameRejected, ScriptError

_SHOWN_LINES = 5
_MOST_PLACES = 500
_SHOWN_QUOTES = 3
_SHOWN_CHARS = 60

_LINKS = "The addresses of links aren't spoken; they are left out:"
NOT_SPOKEN = (
    "Action, headings and stage directions are not spoken. To have them read, add a narrator, or "
    "write NARRATOR, or another name, above them. They stand between the lines:"
)
"""The notice about what a narrator could read."""


class ImportNotices:
    """Collects notices for the user, in order of the first line concerned, and what isn't read."""

    def __init__(self) -> None:
        self._lines: dict[str, list[int]] = {}
        self._quotes: dict[str, list[str]] = {}
        self._kept: list[Unspoken] = []
        self._budget = Budget()

    def add(self, message: str, line_number: int, quote: str | None = None) -> None:
        """Add a notice about a line; an equal message is merged with the first.

        Args:
            message: A sentence.
            line_number: Where it applies.
            quote: The text concerned; the notice shows the first few.
        """
        lines = self._lines.setdefault(message, [])
        if not lines or lines[-1] != line_number:
            lines.append(line_number)
        if quote is not None:
            self._quotes.setdefault(message, []).append(quote)

    def set_aside(self, message: str, line_number: int, text: str) -> None:
        """Keep a text that isn't taken for a line as a note, with a notice that quotes it."""
        self.add(message, line_number, text)
        self.keep(line_number, text)

    def keep(self, line_number: int, text: str) -> None:
        """Keep a text as a note, as `set_aside` does, without a notice."""
        for start in range(0, len(text), MAX_LINE_CHARS):
            if note := paragraph(text[start : start + MAX_LINE_CHARS]):
                self._kept.append(Unspoken(note, UnspokenKind.NOTE, line_number))
                self._budget.spend(Cost.LINES)

    def absorb(self, others: ImportNotices) -> ImportNotices:
        """Add the notices and the texts of others, behind one's own; returns itself."""
        for message, lines in others._lines.items():
            self._lines.setdefault(message, []).extend(lines)
            self._quotes.setdefault(message, []).extend(others._quotes.get(message, ()))
        self._kept += others._kept
        return self

    def weave(self, dialog: Dialog) -> Dialog:
        """A dialog with what was kept since the last time between its lines, where it stood."""
        Budget().spend(Cost.LINES, len(dialog) + len(self._kept))
        notes = deque(sorted(self._kept, key=lambda note: note.line_number))
        self._kept = []
        lines: list[Line] = []
        for line in dialog:
            while notes and notes[0].line_number < line.line_number:
                lines.append(notes.popleft())
            lines.append(line)
        return Dialog((*lines, *notes))

    def add_links(self, text: str, line_number: int) -> None:
        """Add a notice of the addresses of a line's links, which aren't spoken."""
        for address in find_link_addresses(text):
            self.add(_LINKS, line_number, address)

    @contextmanager
    def leaving_out(self, line_number: int) -> Iterator[None]:
        """Turn an invalid value's `ScriptError` into a notice, as the line is kept without it."""
        try:
            yield
        except ScriptError as error:
            self.add(f"{error} It is left out.", line_number)

    def notices(self) -> tuple[Notice, ...]:
        """One notice for each message, at its first line; the message names the other lines."""
        return tuple(
            Notice(
                message + _quote(self._quotes.get(message, ())) + _list_further(lines[1:]),
                lines[0],
                tuple(lines[1:_MOST_PLACES]),
            )
            for message, lines in self._lines.items()
        )


def _quote(quotes: Sequence[str]) -> str:
    shown = [
        f"“{one if len(one) <= _SHOWN_CHARS else f'{one[:_SHOWN_CHARS]}…'}”"
        for one in quotes[:_SHOWN_QUOTES]
    ]
    more = " …" if len(quotes) > len(shown) else ""
    return f" {', '.join(shown)}{more}" if shown else ""


def _list_further(lines: list[int]) -> str:
    if not lines:
        return ""
    shown = ", ".join(str(line) for line in lines[:_SHOWN_LINES])
    more = len(lines) - _SHOWN_LINES
    noun = "line" if len(lines) == 1 else "lines"
    return f" (Also {noun} {shown}{f' and {more:,} more' if more > 0 else ''}.)"


FIRST_SPEAKER = "Narrator"
"""The speaker of text before the first name."""

MIN_PAUSE_S = 0.3
"""The shortest time between two subtitles that becomes a pause."""

NO_NAME = "This text has no speaker's name; it goes to “{}”. Change it where that is wrong."
_NO_ATTRIBUTES = Attributes()
_NAME_MARKS = str.maketrans("[]|", "()/")


_TOGETHER = "“{}” speak together here: it is a voice of its own, beside theirs."
_AND = regex.compile(r"\s*(?:&|\+|,|/)\s*|\s+(?:and|und|et|y|e|и|と|和)\s+", regex.IGNORECASE)
_ALL = word_set("all both together everyone everybody alle beide tous toutes todos ambos tutti")


def find_together(dialog: Dialog) -> Iterator[Notice]:
    """A notice for each name that stands for several speakers at once."""
    lines = {line.speaker: line for line in reversed(dialog.lines) if isinstance(line, Speech)}
    keys = set(map(name_key, lines))
    for name, line in reversed(lines.items()):
        parts = _AND.split(name_key(name))
        is_joint = len(parts) > 1 and keys.issuperset(parts)
        if is_joint or (len(keys) > 2 and name_key(name) in _ALL):
            yield Notice(_TOGETHER.format(name), line.line_number)


class DialogBuilder:
    """Collects lines without losing any text, and notes what it had to change."""

    def __init__(self, remarks: ImportNotices) -> None:
        self.remarks = remarks
        self._budget = Budget()
        self._lines: list[Line] = []
        self._speaker = FIRST_SPEAKER
        self._begins: dict[str, ParamValue] = {}

    def speech(
        self,
        speaker: str | None,
        text: str,
        line_number: int,
        attributes: Attributes = _NO_ATTRIBUTES,
    ) -> None:
        """Add speech; without a name it is the last speaker's."""
        with with_place(line_number):
            text = paragraph(text)
            cut_pauses(text)
        if speaker is None:
            self.remarks.add(NO_NAME.format(self._speaker), line_number)
        else:
            self._speaker = self._name(speaker, line_number)
        language, seed, params = attributes.language, attributes.seed, attributes.params
        if self._begins:
            params, self._begins = {**params, **self._begins}, {}
        self._append(Speech(self._speaker, text, language, seed, params, line_number))

    def begin_at(self, start_s: float) -> None:
        """Let the next line begin at a time of the scene; one that can't be used is left out."""
        self._begins = {START: start_s} if start_s <= MAX_START_S else {}

    def silence(self, duration_s: float, line_number: int) -> None:
        """Add a pause, limited to what a dialog allows."""
        if duration_s > MAX_PAUSE_S:
            message = f"The pause here is longer than {MAX_PAUSE_S:g} s; it is cut to that."
            self.remarks.add(message, line_number)
        self._append(Silence(min(duration_s, MAX_PAUSE_S), line_number))

    def audio(self, path: str, line_number: int) -> None:
        """Add an audio line."""
        with with_place(line_number):
            self._append(Audio(check_audio_path(path), line_number))

    def unspoken(self, text: str, kind: UnspokenKind, line_number: int) -> None:
        """Add a text that isn't spoken; nothing if it is empty."""
        with with_place(line_number):
            text = paragraph(text)
        if text:
            self._append(Unspoken(text, kind, line_number))

    def finish(self, *, nothing_found: str) -> ParsedScript:
        """Build the dialog.

        Raises:
            ScriptError: It has no lines; the message is `nothing_found`.
        """
        if all(isinstance(line, Unspoken) for line in self._lines):
            raise ScriptError(nothing_found)
        lines = tuple(self._lines)
        return ParsedScript(Dialog(lines), spelling_notices(lines))

    def _append(self, line: Line) -> None:
        self._budget.spend(Cost.LINES)
        self._lines.append(line)

    def _name(self, written: str, line_number: int) -> str:
        try:
            return clean_name(written)
        except NameRejected:
            name = _repair_name(written)
        self.remarks.add(
            f"“{_shorten_name(written)}” can't be a name here; it is “{name}”.", line_number
        )
        return name


def _repair_name(written: str) -> str:
    """The nearest valid name."""
    try:
        return clean_name(written.translate(_NAME_MARKS)[:MAX_NAME_CHARS])
    except NameRejected:
        return FIRST_SPEAKER


def _shorten_name(written: str) -> str:
    return written if len(written) <= MAX_NAME_CHARS else f"{written[:20]}…"
