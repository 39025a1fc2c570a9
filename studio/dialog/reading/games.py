"""What the dialogs of tools for games have in common: Ink, Twee (Twine), Ren'Py and Yarn Spinner.

They branch, and a scene doesn't: what is said is read from the top to the bottom, and a notice
names what only steers the game, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import regex

from studio.dialog.attributes import Attributes
from studio.dialog.model import ParamValue, UnspokenKind, check_line_length, name_key, with_place
from studio.dialog.reading.building import FIRST_SPEAKER, DialogBuilder, ImportNotices
from studio.dialog.reading.form import Explanation, Form, Read
from studio.dialog.reading.headings import Role
from studio.dialog.reading.lexer import Source, colon_header_of
from studio.dialog.reading.tables import OWN, read_own
from studio.dialog.reading_limits import PATTERN_S

STEERS = (
    "Choices, jumps, variables and commands of a game can't be followed; its parts are read one "
    "after another, and these stand between the lines:"
)
_NOTHING = "The game's script holds no lines that are said."
_ESCAPED = regex.compile(r"\\([^\w\s])")
_HELD = regex.compile(r"\0(\d+)\0")
_ROLES = {"line": Role.ID, "id": Role.ID, **dict.fromkeys(("audio", "voice", "vo"), Role.FILE)}


class GameReader:
    """Says rows; a row without a name is the narrator's, since games tell what happens so."""

    def __init__(self, remarks: ImportNotices) -> None:
        self.title: str | None = None
        self.is_code = False
        self.indent = 0
        self.builder = DialogBuilder(remarks)
        self._remarks = remarks
        self._own: dict[str, ParamValue] = {}
        self._is_glued = False
        self._last: _OpenSpeech | None = None

    def read(self, source: Source) -> Read:
        """Read all rows."""
        for number, raw in enumerate(source.text.splitlines(), start=1):
            row = raw.strip()
            self.indent = len(raw) - len(raw.lstrip())
            with with_place(number):
                check_line_length(0 if self.is_code else len(row))
            self.read_row(row, number)
        self.end()
        self._flush()
        return Read(self.builder.finish(nothing_found=_NOTHING), self.title)

    def read_row(self, row: str, number: int) -> None:
        """Read a row without white space around it, which may be empty."""
        raise NotImplementedError

    def end(self) -> None:
        """Read what no further row ends."""

    def steer(self, row: str, number: int) -> None:
        """Set aside what steers the game."""
        if row:
            self._remarks.set_aside(STEERS, number, row)

    def note(self, words: str, number: int) -> None:
        """Keep what the author wrote for the team."""
        self._flush()
        self.builder.unspoken(words, UnspokenKind.NOTE, number)

    def head(self, title: str, number: int) -> None:
        """Begin a part of the game."""
        self._flush()
        self.builder.unspoken(title.replace("_", " "), UnspokenKind.HEADING, number)

    def own(self, key: str, value: str) -> bool:
        """Keep the id, or the recording, of the next line; whether it was either."""
        role = _ROLES.get(key.casefold())
        if role is not None and value:
            self._own |= read_own(role, OWN[role], value)
        return role is not None

    def forget(self) -> None:
        """Leave what `own` has kept, as the line isn't said."""
        self._own = {}

    def glue(self) -> None:
        """Let what is said next go on with what was said last, unless somebody else says it."""
        self._is_glued = True

    def unglue(self) -> None:
        """Begin a line of its own, as a choice does."""
        self._is_glued = False

    def say(self, row: str, number: int, *, as_written: str = "") -> None:
        """Say a row whose name stands before a colon, if it has one."""
        header = colon_header_of(row)
        if header is None:
            self.speak(None, row, number)
        elif header.text:
            self.speak(header.speaker, header.text, number, header.attributes)
        else:
            self.note(as_written or row, number)

    def speak(
        self, name: str | None, text: str, number: int, attributes: Attributes | None = None
    ) -> None:
        """Say words, with the id and the recording that `own` has kept."""
        last, is_glued = self._last, self._is_glued
        if last and is_glued and name_key(name or last.name) == name_key(last.name):
            last.parts.append(text)
        else:
            self._flush()
            last = self._last = _OpenSpeech(name or FIRST_SPEAKER, [text], number, attributes)
        last.own |= self._own
        self._is_glued, self._own = False, {}

    def _flush(self) -> None:
        if said := self._last:
            given = said.attributes or Attributes()
            own = Attributes(given.language, given.seed, {**given.params, **said.own})
            self.builder.speech(said.name, " ".join(said.parts), said.number, own)
        self._last = None


@dataclass(slots=True)
class _OpenSpeech:
    """A speech that the next row may go on with."""

    name: str
    parts: list[str]
    number: int
    attributes: Attributes | None
    own: dict[str, ParamValue] = field(default_factory=dict)


def hide_escapes(row: str) -> str:
    """A row whose signs behind a backslash are no signs; no text file has a NUL."""
    return _ESCAPED.sub(lambda found: f"\0{ord(found[1])}\0", row) if "\\" in row else row


def show_escapes(row: str) -> str:
    """The signs that `hide_escapes` has hidden, without their backslashes."""
    return _HELD.sub(lambda found: chr(int(found[1])), row) if "\0" in row else row


def game_form(
    name: str,
    certainty: float,
    reader: type[GameReader],
    signs: tuple[str, ...],
    patterns: tuple[regex.Pattern[str], ...],
) -> Form:
    """A form whose texts have all of some patterns."""
    return Form(name, certainty, partial(_explain, reader, patterns), signs)


def _explain(
    reader: type[GameReader], patterns: tuple[regex.Pattern[str], ...], source: Source
) -> Explanation | None:
    if not all(one.search(source.text, timeout=PATTERN_S) for one in patterns):
        return None
    return Explanation(lambda remarks: reader(remarks).read(source))
