r"""Scripts as people write them.

    # A comment, as is a line that begins with two slashes.
    Anna: What she says,
    continued on the next line.

    After a blank line, a pause or audio, the same speaker begins a new line.
    [pause:1.5s]
    [Dr: Ames | lang:de | seed:42 | speed:1.2] Eine Zeile mit Eigenschaften.
    [audio: bell.wav]
    [Ben]
    \# A backslash takes the rest of its line literally, as text.

A header holds until the next one. Brackets write any name; `[Laugh |]` is a speaker called Laugh,
where `[laugh]` is a sound. A colon ends a name only before white space and after at most five
words without sentence marks, so `10:30 we leave` and `http://…` are text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import regex

from studio.dialog.attributes import Attributes
from studio.dialog.audio_path import read_path, write_path
from studio.dialog.header import Header, parse_header, write_header
from studio.dialog.model import (
    MAX_LINE_CHARS,
    MAX_LINES,
    MAX_SCRIPT_BYTES,
    Audio,
    Dialog,
    Line,
    ParsedScript,
    Silence,
    Speech,
)
from studio.dialog.paragraph import paragraph
from studio.dialog.place import placed
from studio.dialog.spelling import spelling_notices
from studio.dialog.tags import cut_pauses, leading_pauses, write_pause
from studio.errors import ScriptError

_LEADING_INVISIBLE = regex.compile(r"[\p{Cc}\p{Cf}\s]+")
_AUDIO = regex.compile(r"\[\s*audio\s*:(?P<path>[^|]*)\]", regex.IGNORECASE)
_AUDIO_BEGINS = regex.compile(r"\[\s*audio\s*:[^|\]]*(?:\]|$)", regex.IGNORECASE)


def parse_script(text: str) -> ParsedScript:
    """Read a script.

    Every kind of line break counts, in line numbers too.

    Raises:
        ScriptError: It is no dialog, or one of its lines can't be read; names the line.
    """
    if len(text) > MAX_SCRIPT_BYTES:
        raise ScriptError(
            f"The script is larger than {MAX_SCRIPT_BYTES // 1_000_000} MB. Divide it into parts."
        )
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), start=1):
        with placed(number):
            reader.read(line, number)
    lines = reader.finish()
    return ParsedScript(Dialog(lines), spelling_notices(lines))


def write_script(dialog: Dialog) -> str:
    """Write a dialog as a script that `parse_script` reads back to the same dialog.

    Raises:
        NameRejected: A speaker's name can't stand in a script.
        ScriptError: A text is too long.
    """
    return "".join(f"{_write_line(line)}\n" for line in dialog)


def _write_line(line: Line) -> str:
    match line:
        case Silence():
            return write_pause(line.duration_s)
        case Audio():
            return f"[audio: {write_path(line.path)}]"
        case Speech():
            attributes = Attributes(line.language, line.seed, line.params)
            return f"{write_header(line.speaker, attributes)} {paragraph(line.text)}".rstrip()


@dataclass(slots=True)
class _Draft:
    """A speech line that may still grow."""

    header: Header
    line_number: int
    parts: list[str] = field(default_factory=list)
    chars: int = 0

    def add(self, text: str) -> None:
        part = paragraph(text)
        cut_pauses(part)  # a bad pause is named with the line it stands on
        self.parts.append(part)
        self.chars += len(part)
        if self.chars > MAX_LINE_CHARS:
            paragraph("".join(self.parts))

    def finished(self) -> Speech:
        with placed(self.line_number):
            text = paragraph(" ".join(self.parts))
            if len(self.parts) > 1:
                cut_pauses(text)  # one that is broken across lines
        attributes = self.header.attributes
        return Speech(
            self.header.speaker,
            text,
            attributes.language,
            attributes.seed,
            attributes.params,
            self.line_number,
        )


class _Reader:
    """Takes a script line by line."""

    def __init__(self) -> None:
        self._entries: list[_Draft | Silence | Audio] = []
        self._draft: _Draft | None = None
        self._draft_at = 0
        self._paragraph_ended = False
        self._stray_line: int | None = None

    def read(self, raw: str, number: int) -> None:
        line = _without_leading_invisible(raw).rstrip()
        if not line:
            self._paragraph_ended = True
        elif line.startswith("\\"):
            self._continue(line[1:].strip(), number)
        elif not line.startswith(("#", "//")):
            self._read_structure(line, number)

    def _read_structure(self, line: str, number: int) -> None:
        pauses, rest = leading_pauses(line)
        entry = _read_entry(rest) if rest else None
        if rest and entry is None:
            self._continue(line, number)
            return
        for duration_s in pauses:
            self._append(Silence(duration_s, number))
        if isinstance(entry, str):
            self._append(Audio(entry, number))
        elif entry is not None:
            self._begin(entry, number)

    def _begin(self, header: Header, number: int) -> None:
        self._draft = _Draft(header, number)
        self._draft_at = len(self._entries)
        self._append(self._draft)
        self._paragraph_ended = False
        if header.text:
            self._draft.add(header.text)

    def _continue(self, text: str, number: int) -> None:
        draft = self._draft
        if draft is None:
            self._stray_line = self._stray_line or number
            return
        if self._paragraph_ended and (draft.parts or self._draft_at < len(self._entries) - 1):
            if not draft.parts:  # `[Anna]`, then a pause: her text comes behind it
                del self._entries[self._draft_at]
            self._begin(Header(draft.header.speaker, draft.header.attributes, ""), number)
        self._paragraph_ended = False
        assert self._draft is not None
        self._draft.add(text)

    def _append(self, entry: _Draft | Silence | Audio) -> None:
        if len(self._entries) >= MAX_LINES:
            raise ScriptError(f"A dialog has at most {MAX_LINES:,} lines. Divide it into parts.")
        self._entries.append(entry)
        self._paragraph_ended = True

    def finish(self) -> tuple[Line, ...]:
        self._refuse_stray_text()
        if not self._entries:
            raise ScriptError(
                "The script holds no lines. Write at least one, such as “Anna: Good evening.”"
            )
        return tuple(
            entry.finished() if isinstance(entry, _Draft) else entry for entry in self._entries
        )

    def _refuse_stray_text(self) -> None:
        if self._stray_line is None:
            return
        if self._draft is None:
            raise ScriptError(
                "This is not a dialog: no line begins with a speaker's name. Write lines such as "
                "“Anna: Good evening.” (with a space behind the colon) or “[Anna] Good evening.”"
            )
        raise ScriptError(
            "This text comes before the first speaker. Put a name before it, "
            "such as “Narrator: …”.",
            line=self._stray_line,
        )


def _without_leading_invisible(line: str) -> str:
    invisible = _LEADING_INVISIBLE.match(line)
    return line[invisible.end() :] if invisible else line


def _read_entry(line: str) -> Header | str | None:
    """A header, the path of reused audio, or None for text."""
    if audio := _AUDIO.fullmatch(line):
        return read_path(audio["path"].strip())
    if _AUDIO_BEGINS.match(line):
        raise ScriptError("Audio stands on a line of its own: [audio: path/to.wav].")
    return parse_header(line)
