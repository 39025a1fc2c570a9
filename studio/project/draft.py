"""A document while edits change it; a change takes as long in a long dialog as in a short one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from studio.dialog.model import (
    MAX_LINES,
    MAX_SCRIPT_BYTES,
    MAX_SPEAKERS,
    check_speaker_count,
    count_speakers,
    name_key,
    same_name,
)
from studio.dialog.pronunciation import MAX_PRONUNCIATIONS
from studio.errors import BadInput, NotFound
from studio.project.characters import PLAIN, change_character
from studio.project.comments import check_comments
from studio.project.document import Document, ProjectLine, ProjectSettings, change_line

_MAX_WORK_CHARS = 50_000_000
_ITEM_CHARS = 200
"""What a line costs besides its text, in characters that take as long."""

MAX_CHARACTERS = 5_000
MAX_CAST_NAMES = 2 * MAX_SPEAKERS
"""Those of deleted lines keep their voices."""

_NameTable = dict[str, tuple[str, Any]]
"""Values by the keys of names, with the names as they are written."""


class DocumentDraft:
    """Collects changes to a document, which itself doesn't change."""

    def __init__(self, document: Document) -> None:
        self._before = document
        self._work_chars = 0
        self._grown_chars = 0
        self.name = document.name
        self.lines = dict(document.lines)
        self.settings: ProjectSettings = document.settings
        self.locked_takes = dict.fromkeys(document.locked_takes)
        self.deleted_takes = dict.fromkeys(document.deleted_takes)
        self.accepted_takes = dict.fromkeys(document.accepted_takes)
        self.starred_takes = dict.fromkeys(document.starred_takes)
        self.pronunciations = dict(document.pronunciations)
        self.comments = dict(document.comments)
        self.characters = dict(document.characters)

    @cached_property
    def _order(self) -> LineOrder:
        return LineOrder(self._before.order)

    @cached_property
    def _speakers(self) -> SpeakerNames:
        return SpeakerNames(self.lines)

    @cached_property
    def _cast(self) -> _NameTable:
        return _by_key(self._before.cast)

    @cached_property
    def _first_names(self) -> _NameTable:
        return _by_key(self._before.first_names)

    def _has(self, part: str) -> bool:
        """Whether a part was needed by any edit; most edits need none."""
        return part in self.__dict__

    def finish(self) -> Document:
        """The document with all changes.

        Raises:
            BadInput: As `check_bounds`.
        """
        if self._has("_speakers"):
            self.lines |= self._speakers.renamed(self.lines)
        document = replace(
            self._before,
            name=self.name,
            lines=self.lines,
            order=tuple(self._order) if self._has("_order") else self._before.order,
            cast=_by_name(self._cast) if self._has("_cast") else self._before.cast,
            first_names=(
                _by_name(self._first_names)
                if self._has("_first_names")
                else self._before.first_names
            ),
            settings=self.settings,
            locked_takes=tuple(self.locked_takes),
            deleted_takes=tuple(self.deleted_takes),
            accepted_takes=tuple(self.accepted_takes),
            starred_takes=tuple(self.starred_takes),
            pronunciations=self.pronunciations,
            comments=self.comments,
            characters=self.characters,
        )
        check_bounds(self._before, document)
        return document

    def spend(self, items: int, chars: int = 0) -> None:
        """Count what the edits of one request have to read and write.

        Args:
            items: Lines, takes or words that they touch.
            chars: Characters that they go through besides.

        Raises:
            BadInput: It is more than a request may take.
        """
        self._work_chars += _ITEM_CHARS * items + chars
        if self._work_chars > _MAX_WORK_CHARS:
            raise BadInput("This is too much for one edit. Send it in several smaller ones.")

    def grow(self, more_chars: int) -> None:
        """Count text that edits are about to add; they may double the longest script.

        Raises:
            BadInput: It is too much.
        """
        self._grown_chars += max(0, more_chars)
        if self._grown_chars > MAX_SCRIPT_BYTES:
            raise BadInput("This makes the dialog far too long. Replace by something shorter.")

    def get_line(self, line_id: str) -> ProjectLine:
        """A line by its id.

        Raises:
            NotFound: It was deleted.
        """
        if line_id not in self.lines:
            raise NotFound("This line isn't there any more; somebody deleted it.")
        line = self.lines[line_id]
        return self._speakers.current(line) if self._has("_speakers") else line

    def iter_lines(self, line_ids: Iterable[str] | None) -> Iterator[ProjectLine]:
        """Those lines that exist; with None all, in any order."""
        for line_id in list(self.lines) if line_ids is None else line_ids:
            if line_id in self.lines:
                yield self.get_line(line_id)

    def insert(self, after: str | None, lines: Iterable[ProjectLine]) -> None:
        """Insert lines after one of them, or at the start; those that exist already stay.

        Raises:
            NotFound: There is no line `after`.
        """
        if after is not None:
            self.get_line(after)
        fresh = {line.line_id: line for line in lines if line.line_id not in self.lines}
        self._order.insert(after, fresh)  # before `lines` has them
        if self._has("_speakers"):
            for line in fresh.values():
                self._speakers.put(line)
        self.lines |= fresh

    def delete(self, line_ids: Iterable[str]) -> None:
        """Delete lines, if they exist."""
        for line_id in line_ids:
            if self.lines.pop(line_id, None) is not None:
                self._order.remove(line_id)
                if self._has("_speakers"):
                    self._speakers.remove(line_id)

    def move(self, line_ids: Iterable[str], after: str | None) -> None:
        """Move lines after another one, or to the start, in their present order.

        Raises:
            NotFound: One of them was deleted.
        """
        moved = [line.line_id for line in self.select_in_order(line_ids)]
        if after is not None:
            self.get_line(after)
        for line_id in moved:
            self._order.remove(line_id)
        self._order.insert(after, moved)

    def select_in_order(self, line_ids: Iterable[str]) -> list[ProjectLine]:
        """Lines in the order of playback."""
        wanted = {line_id: self.get_line(line_id) for line_id in line_ids}
        return [wanted[line_id] for line_id in self._order.sort(wanted)]

    def update_line(self, line_id: str, **fields: Any) -> None:
        """Change values of a line, which have been checked."""
        line = self.lines[line_id] = change_line(self.get_line(line_id), **fields)
        if self._has("_speakers"):
            self._speakers.remove(line_id)
            self._speakers.put(line)

    def cast_voice(self, name: str, voice: str | None) -> None:
        """Cast a speaker for a name; None for the speaker of that name."""
        self._cast.pop(name_key(name), None)
        if voice is not None:
            self._cast[name_key(name)] = name, voice

    def change_character(self, name: str, fields: Mapping[str, Any]) -> None:
        """Change a character's settings; one that is left with none is forgotten."""
        after = change_character(self.characters.pop(name_key(name), PLAIN), fields)
        if after != PLAIN:
            self.characters[name_key(name)] = after

    def rename_speaker(
        self, old_name: str, name: str, speaker_of: Callable[[str], str | None]
    ) -> None:
        """Rename the speaker of all its lines, who brings the voice along.

        Unless the new name has one: it speaks already, is cast, or the library has a speaker of
        that name.
        """
        is_other = not same_name(old_name, name)
        speaks_already = is_other and self._speakers.has(name)
        self._speakers.rename(old_name, name)
        old, new = name_key(old_name), name_key(name)
        character = self.characters.pop(old, None)
        assigned = self._cast.pop(old, ("", None))[1]
        first = self._first_names.pop(old, ("", old_name))[1]
        if speaks_already:
            return
        if character is not None:
            self.characters.setdefault(new, character)
        if is_other and not assigned:
            assigned = speaker_of(old_name)
        if is_other and ((new in self._cast and self._cast[new][1]) or speaker_of(name)):
            return
        self._cast.pop(new, None)
        self._first_names.pop(new, None)
        if assigned is not None:
            self._cast[new] = name, assigned
        if not same_name(first, name):
            self._first_names[new] = name, first


def check_bounds(before: Document, after: Document) -> None:
    """Check that a document isn't too large to be sent, saved and read as a script.

    One that was larger already may become smaller.

    Args:
        before: What was checked already; an empty one if nothing was.
        after: What it becomes, by an edit, by undo, or by being imported.

    Raises:
        BadInput: It has too many lines, speakers, characters, comments, pronunciations or names, or
            too much text.
    """
    if len(after.lines) > max(MAX_LINES, len(before.lines)):
        raise BadInput(f"A project has at most {MAX_LINES:,} lines. Divide it into parts.")
    if len(after.pronunciations) > max(MAX_PRONUNCIATIONS, len(before.pronunciations)):
        raise BadInput(
            f"A project has at most {MAX_PRONUNCIATIONS:,} pronunciations. Remove some first."
        )
    check_comments(after.comments, len(before.comments))
    _check_tables(before, after)
    _check_speakers(before, after)
    chars = _count_chars(after)
    if chars > MAX_SCRIPT_BYTES and chars > _count_chars(before):
        raise BadInput(
            f"A project has at most {MAX_SCRIPT_BYTES:,} characters. Divide it into parts."
        )


def _check_tables(before: Document, after: Document) -> None:
    """Check that a document knows not too many names that have a voice or settings."""
    for table in ("cast", "first_names"):
        count = len(getattr(after, table))
        if count > max(MAX_CAST_NAMES, len(getattr(before, table))):
            raise BadInput(f"At most {MAX_CAST_NAMES:,} names can have voices.")
    if len(after.characters) > max(MAX_CHARACTERS, len(before.characters)):
        raise BadInput(f"At most {MAX_CHARACTERS:,} characters can have settings.")


def _check_speakers(before: Document, after: Document) -> None:
    """Check that a document gets no further speaker when it has too many."""
    if len(after.lines) <= MAX_SPEAKERS:
        return
    count = _count_speakers(after)
    if count > MAX_SPEAKERS and count > _count_speakers(before):
        check_speaker_count(count)


def _count_speakers(document: Document) -> int:
    return count_speakers(line.speaker for line in document.lines.values())


def _count_chars(document: Document) -> int:
    lines = document.lines.values()
    settings = (line.params for line in lines if line.params)
    return sum(len(line.text) for line in lines) + sum(
        len(name) + (len(value) if isinstance(value, str) else 8)
        for params in settings
        for name, value in params.items()
    )


def _by_key(table: Mapping[str, Any]) -> _NameTable:
    return {name_key(name): (name, value) for name, value in table.items()}


def _by_name(table: _NameTable) -> dict[str, Any]:
    return dict(table.values())


_GAP = 1 << 128
"""Between the ranks of neighbours: so often, at least, there is room between two of them."""


class LineOrder:
    """The order of lines as a linked list, with a rank by which any of them are sorted."""

    def __init__(self, order: Iterable[str]) -> None:
        """Start with an order of unique ids; None stands for both ends."""
        ids = [None, *order, None]
        self._next: dict[str | None, str | None] = dict(pairwise(ids))
        self._previous: dict[str | None, str | None] = dict(pairwise(reversed(ids)))
        self._ranks: dict[str, int] = {}
        self._rank_all()

    def __iter__(self) -> Iterator[str]:
        at = self._next[None]
        while at is not None:
            yield at
            at = self._next[at]

    def sort(self, line_ids: Iterable[str]) -> list[str]:
        """Lines in this order."""
        return sorted(line_ids, key=self._ranks.__getitem__)

    def insert(self, after: str | None, line_ids: Iterable[str]) -> None:
        """Insert lines after another one; None is the start."""
        for line_id in line_ids:
            behind = self._next[after]
            self._link(after, line_id)
            self._link(line_id, behind)
            low = self._ranks[after] if after is not None else 0
            high = self._ranks[behind] if behind is not None else low + 2 * _GAP
            self._ranks[line_id] = (low + high) // 2
            if self._ranks[line_id] == low:
                self._rank_all()
            after = line_id

    def remove(self, line_id: str) -> None:
        """Remove a line."""
        self._link(self._previous.pop(line_id), self._next.pop(line_id))
        del self._ranks[line_id]

    def _link(self, one: str | None, other: str | None) -> None:
        self._next[one] = other
        self._previous[other] = one

    def _rank_all(self) -> None:
        self._ranks = {line_id: _GAP * place for place, line_id in enumerate(self, start=1)}


@dataclass(slots=True, eq=False)
class _Spelling:
    """A way in which some lines write a speaker's name; renamed for all of them at once."""

    name: str
    lines: int = 0
    merged_into: _Spelling | None = None

    def find(self) -> _Spelling:
        """The spelling that it is now; shortens the way there, as in any union-find."""
        root = self
        while root.merged_into is not None:
            root = root.merged_into
        at = self
        while at.merged_into is not None:
            at.merged_into, at = root, at.merged_into
        return root


class SpeakerNames:
    """Who speaks which line, so that renaming a speaker touches none of the lines."""

    def __init__(self, lines: Mapping[str, ProjectLine]) -> None:
        self._of_line: dict[str, _Spelling] = {}
        self._of_key: dict[str, dict[str, _Spelling]] = {}
        self._known: dict[str, _Spelling] = {}
        for line in lines.values():
            self.put(line)

    def has(self, name: str) -> bool:
        """Whether a speaker has any line."""
        return any(one.lines for one in self._of_key.get(name_key(name), {}).values())

    def put(self, line: ProjectLine) -> None:
        """Add a line with its own speaker."""
        if line.speaker is None:
            return
        one = self._known.get(line.speaker)
        if one is None:
            one = self._known[line.speaker] = _Spelling(line.speaker)
            self._of_key.setdefault(name_key(line.speaker), {})[line.speaker] = one
        one.lines += 1
        self._of_line[line.line_id] = one

    def remove(self, line_id: str) -> None:
        """Remove a line, if it has a speaker."""
        one = self._of_line.pop(line_id, None)
        if one is not None:
            one.find().lines -= 1

    def rename(self, old_name: str, name: str) -> None:
        """Rename a speaker in all its lines; lines that have the new name keep their spelling."""
        renamed = self._of_key.pop(name_key(old_name), {})
        for spelling in renamed:
            del self._known[spelling]
        found = self._of_key.setdefault(name_key(name), {})
        root = self._known.get(name)
        if root is None:
            root = self._known[name] = found[name] = _Spelling(name)
        for one in renamed.values():
            one.merged_into = root
            root.lines += one.lines

    def current(self, line: ProjectLine) -> ProjectLine:
        """A line with the name that its speaker has now."""
        one = self._of_line.get(line.line_id)
        name = line.speaker if one is None else one.find().name
        return line if name == line.speaker else change_line(line, speaker=name)

    def renamed(self, lines: Mapping[str, ProjectLine]) -> dict[str, ProjectLine]:
        """The lines whose speaker has another name now."""
        present = ((line, self.current(line)) for line in lines.values())
        return {line.line_id: line for was, line in present if line is not was}
