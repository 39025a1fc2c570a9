"""A document while it is being edited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from studio.dialog.attributes import checked_language
from studio.dialog.model import MAX_LINES
from studio.dialog.names import same_name
from studio.dialog.pronouncing import MAX_PRONUNCIATIONS
from studio.errors import BadInput, NotFound
from studio.project.document import Document, Line, ProjectSettings

_Value = TypeVar("_Value")


class Draft:
    """Takes one change after the other; nothing of the document it began with is changed."""

    def __init__(self, document: Document) -> None:
        """Begin with a document as it is."""
        self._before = document
        self.name = document.name
        self.lines = dict(document.lines)
        self.order = list(document.order)
        self.cast = dict(document.cast)
        self.first_names = dict(document.first_names)
        self.settings: ProjectSettings = document.settings
        self.locked_takes = list(document.locked_takes)
        self.deleted_takes = list(document.deleted_takes)
        self.accepted_takes = list(document.accepted_takes)
        self.pronunciations = dict(document.pronunciations)

    def finish(self) -> Document:
        """The document with all changes.

        Raises:
            BadInput: It has more lines than a dialog may have, or more pronunciations.
        """
        if len(self.pronunciations) > MAX_PRONUNCIATIONS:
            raise BadInput(
                f"A project has at most {MAX_PRONUNCIATIONS:,} pronunciations. Remove some first."
            )
        if len(self.order) > max(MAX_LINES, len(self._before.order)):
            raise BadInput(f"A project has at most {MAX_LINES:,} lines. Divide it into parts.")
        return replace(
            self._before,
            name=self.name,
            lines=self.lines,
            order=tuple(self.order),
            cast=self.cast,
            first_names=self.first_names,
            settings=self.settings,
            locked_takes=tuple(self.locked_takes),
            deleted_takes=tuple(self.deleted_takes),
            accepted_takes=tuple(self.accepted_takes),
            pronunciations=self.pronunciations,
        )

    def line(self, line_id: str) -> Line:
        """A line by its id.

        Raises:
            NotFound: It was deleted.
        """
        if line_id not in self.lines:
            raise NotFound("This line isn't there any more; somebody deleted it.")
        return self.lines[line_id]

    def place_after(self, line_id: str | None) -> int:
        """Where a line goes that is to be heard after that one; None is the beginning.

        Raises:
            NotFound: There is no such line.
        """
        return 0 if line_id is None else self.order.index(self.line(line_id).line_id) + 1

    def insert(self, place: int, lines: Iterable[Line]) -> None:
        """Put lines in, those that are there already excepted."""
        fresh = {line.line_id: line for line in lines if line.line_id not in self.lines}
        self.lines |= fresh
        self.order[place:place] = fresh

    def delete(self, line_ids: Iterable[str]) -> None:
        """Take lines out, as far as they are there."""
        gone = set(line_ids).intersection(self.lines)
        for line_id in gone:
            del self.lines[line_id]
        self.order = [line_id for line_id in self.order if line_id not in gone]

    def change(self, line_id: str, **fields: Any) -> None:
        """Give a line other values, checked already."""
        self.lines[line_id] = replace(self.line(line_id), **fields)

    def has_speaker(self, name: str) -> bool:
        """Whether any line is that speaker's."""
        return any(line.speaker and same_name(line.speaker, name) for line in self.lines.values())

    def forget_voice(self, name: str) -> None:
        """Keep nothing of what was chosen for a name."""
        self.cast = _without(self.cast, name)
        self.first_names = _without(self.first_names, name)

    def hand_on_voice(
        self, former: str, name: str, speaker_of: Callable[[str], str | None]
    ) -> None:
        """Let a speaker that got another name keep its voice.

        Unless the new name brings one along: it was cast, or the library has a speaker of it.
        """
        is_other = not same_name(former, name)
        assigned = _of_name(self.cast, former) or (speaker_of(former) if is_other else None)
        first = _of_name(self.first_names, former) or former
        brings_one = is_other and bool(_of_name(self.cast, name) or speaker_of(name))
        self.forget_voice(former)
        if brings_one:
            return
        self.forget_voice(name)
        if assigned is not None:
            self.cast[name] = assigned
        if not same_name(first, name):
            self.first_names[name] = first

    def in_order(self, line_ids: Iterable[str]) -> list[Line]:
        """Lines as they are heard.

        Raises:
            NotFound: One of them was deleted.
        """
        wanted = {self.line(line_id).line_id for line_id in line_ids}
        return [self.lines[line_id] for line_id in self.order if line_id in wanted]


def _of_name(table: Mapping[str, _Value], name: str) -> _Value | None:
    return next((value for one, value in table.items() if same_name(one, name)), None)


def _without(table: Mapping[str, _Value], name: str) -> dict[str, _Value]:
    return {one: value for one, value in table.items() if not same_name(one, name)}


def settings_of(draft: Draft, fields: Mapping[str, Any]) -> ProjectSettings:
    """The settings with other values, which are checked.

    Raises:
        BadInput: There is no such setting, or the value can't be used.
    """
    unknown = set(fields).difference(ProjectSettings.__dataclass_fields__)
    if unknown:
        raise BadInput(f"A project has no setting “{min(unknown)}”.")
    language = fields.get("language")
    if language is not None:
        fields = {**fields, "language": checked_language(str(language))}
    return replace(draft.settings, **fields)
