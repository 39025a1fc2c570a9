"""Applies edit operations to a document, all of them or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import groupby
from typing import Any, Protocol, TypeVar

from studio.dialog.attributes import check_language, check_seed
from studio.dialog.model import (
    MAX_LINES,
    MAX_SCRIPT_BYTES,
    check_line_length,
    clean_name,
    name_key,
    paragraph,
    same_name,
)
from studio.dialog.pronunciation import MAX_PRONUNCIATIONS, check_pronunciations
from studio.dialog.tags import write_pause
from studio.engine.job import MAX_TRIES
from studio.errors import BadInput, Conflict, NotFound
from studio.project import ops
from studio.project.document import (
    Document,
    LineKind,
    ProjectLine,
    ProjectSettings,
    clean_project_name,
    parse_fields,
    parse_line,
)

_Value = TypeVar("_Value")


class DocumentDraft:
    """Collects changes to a document, which itself doesn't change."""

    def __init__(self, document: Document) -> None:
        """Start with a document."""
        self._before = document
        self.name = document.name
        self.lines = dict(document.lines)
        self.order = list(document.order)
        self.cast = dict(document.cast)
        self._grown_chars = 0
        self.first_names = dict(document.first_names)
        self.settings: ProjectSettings = document.settings
        self.locked_takes = list(document.locked_takes)
        self.deleted_takes = list(document.deleted_takes)
        self.accepted_takes = list(document.accepted_takes)
        self.pronunciations = dict(document.pronunciations)

    def finish(self) -> Document:
        """The document with all changes.

        Raises:
            BadInput: It has too many lines or pronunciations.
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

    def get_line(self, line_id: str) -> ProjectLine:
        """A line by its id.

        Raises:
            NotFound: It was deleted.
        """
        if line_id not in self.lines:
            raise NotFound("This line isn't there any more; somebody deleted it.")
        return self.lines[line_id]

    def find_index_after(self, line_id: str | None) -> int:
        """The index after a line; None is the start of the dialog.

        Raises:
            NotFound: There is no such line.
        """
        return 0 if line_id is None else self.order.index(self.get_line(line_id).line_id) + 1

    def insert(self, place: int, lines: Iterable[ProjectLine]) -> None:
        """Insert lines, except those that exist already."""
        fresh = {line.line_id: line for line in lines if line.line_id not in self.lines}
        self.lines |= fresh
        self.order[place:place] = fresh

    def delete(self, line_ids: Iterable[str]) -> None:
        """Delete lines, if they exist."""
        gone = set(line_ids).intersection(self.lines)
        for line_id in gone:
            del self.lines[line_id]
        self.order = [line_id for line_id in self.order if line_id not in gone]

    def update_line(self, line_id: str, **fields: Any) -> None:
        """Change values of a line, which have been checked."""
        self.lines[line_id] = replace(self.get_line(line_id), **fields)

    def has_speaker(self, name: str) -> bool:
        """Whether a speaker has any line."""
        return any(line.speaker and same_name(line.speaker, name) for line in self.lines.values())

    def cast_voices(self, changes: Mapping[str, str | None]) -> None:
        """Cast speakers for names; None for the speaker of that name."""
        keys = {name_key(name) for name in changes}
        kept = {one: voice for one, voice in self.cast.items() if name_key(one) not in keys}
        self.cast = kept | {name: voice for name, voice in changes.items() if voice is not None}

    def count_text(self, more_chars: int) -> None:
        """Count characters that edits are about to add; they may double the longest script.

        Raises:
            BadInput: They are too many.
        """
        self._grown_chars += max(0, more_chars)
        if self._grown_chars > MAX_SCRIPT_BYTES:
            raise BadInput("This makes the dialog far too long. Replace by something shorter.")

    def remove_voice(self, name: str) -> None:
        """Remove the cast and the first name of a speaker."""
        self.cast = _remove_name(self.cast, name)
        self.first_names = _remove_name(self.first_names, name)

    def transfer_voice(
        self, old_name: str, name: str, speaker_of: Callable[[str], str | None]
    ) -> None:
        """Transfer a renamed speaker's voice to the new name.

        Unless the new name has one: it is cast, or the library has a speaker of that name.
        """
        is_other = not same_name(old_name, name)
        assigned = _find_by_name(self.cast, old_name) or (
            speaker_of(old_name) if is_other else None
        )
        first = _find_by_name(self.first_names, old_name) or old_name
        brings_one = is_other and bool(_find_by_name(self.cast, name) or speaker_of(name))
        self.remove_voice(old_name)
        if brings_one:
            return
        self.remove_voice(name)
        if assigned is not None:
            self.cast[name] = assigned
        if not same_name(first, name):
            self.first_names[name] = first

    def select_in_order(self, line_ids: Iterable[str]) -> list[ProjectLine]:
        """Lines in the order of playback.

        Raises:
            NotFound: One of them was deleted.
        """
        wanted = {self.get_line(line_id).line_id for line_id in line_ids}
        return [self.lines[line_id] for line_id in self.order if line_id in wanted]


def _find_by_name(table: Mapping[str, _Value], name: str) -> _Value | None:
    return next((value for one, value in table.items() if same_name(one, name)), None)


def _remove_name(table: Mapping[str, _Value], name: str) -> dict[str, _Value]:
    return {one: value for one, value in table.items() if not same_name(one, name)}


def change_settings(draft: DocumentDraft, fields: Mapping[str, Any]) -> ProjectSettings:
    """Change settings, checking the values.

    Raises:
        BadInput: There is no such setting, or its value is invalid.
    """
    unknown = set(fields).difference(ProjectSettings.__dataclass_fields__)
    if unknown:
        raise BadInput(f"A project has no setting “{min(unknown)}”.")
    language = fields.get("language")
    if language is not None:
        fields = {**fields, "language": check_language(str(language))}
    return replace(draft.settings, **fields)


class TakeInfo(Protocol):
    """A take as edits need it."""

    @property
    def take_id(self) -> str:
        """Its id."""
        ...

    @property
    def line_id(self) -> str:
        """Whose it is."""
        ...

    @property
    def seed(self) -> int:
        """What it was made with."""
        ...


@dataclass(frozen=True, slots=True)
class EditLookups:
    """Look-ups that edits need besides the document.

    Attributes:
        find_take: Finds a take by its id; raises `NotFound`.
        find_speaker_id: Finds the id of the library's speaker of a name; None if there is none.
    """

    find_take: Callable[[str], TakeInfo]
    find_speaker_id: Callable[[str], str | None]


def apply_edits(document: Document, edits: Iterable[ops.Op], outside: EditLookups) -> Document:
    """Apply edits to a document, all or none.

    Raises:
        BadInput: A value is invalid.
        NotFound: A line or take was deleted.
        Conflict: A take is locked.
    """
    draft = DocumentDraft(document)
    for is_cast, run in groupby(edits, lambda edit: isinstance(edit, ops.CastVoice)):
        if is_cast:  # together, as each would go through the whole cast
            draft.cast_voices(_collect_casts(run))
            continue
        for edit in run:
            _apply_edit(edit, draft, outside)
    return draft.finish()


def _collect_casts(edits: Iterable[ops.Op]) -> dict[str, str | None]:
    """The last voice for each name, in order."""
    latest: dict[str, tuple[str, str | None]] = {}
    for edit in edits:
        assert isinstance(edit, ops.CastVoice)
        name = clean_name(edit.speaker)
        latest.pop(name_key(name), None)
        latest[name_key(name)] = (name, edit.voice)
    return dict(latest.values())


@singledispatch
def _apply_edit(edit: object, draft: DocumentDraft, outside: EditLookups) -> None:
    raise AssertionError(f"nobody knows how to apply {edit}")


@_apply_edit.register
def _(edit: ops.Insert, draft: DocumentDraft, _: EditLookups) -> None:
    draft.insert(draft.find_index_after(edit.after), [parse_line(line) for line in edit.lines])


@_apply_edit.register
def _(edit: ops.Delete, draft: DocumentDraft, _: EditLookups) -> None:
    draft.delete(edit.line_ids)


@_apply_edit.register
def _(edit: ops.Move, draft: DocumentDraft, _: EditLookups) -> None:
    moved = draft.select_in_order(edit.line_ids)
    if edit.after in edit.line_ids:
        raise BadInput("A line can't be moved behind itself.")
    draft.delete(edit.line_ids)
    draft.insert(draft.find_index_after(edit.after), moved)


@_apply_edit.register
def _(edit: ops.SetFields, draft: DocumentDraft, _: EditLookups) -> None:
    fields = parse_fields({**edit.fields})
    if "chosen" in edit.fields or fields.get("speaker", "-") is None:
        raise BadInput("A line of speech needs a speaker, and its take is chosen by “choose”.")
    for line_id in edit.line_ids:
        draft.update_line(line_id, **fields)


@_apply_edit.register
def _(edit: ops.Choose, draft: DocumentDraft, outside: EditLookups) -> None:
    line = draft.get_line(edit.line_id)
    if edit.take_id is None:
        draft.update_line(line.line_id, chosen=None)
        return
    take = outside.find_take(edit.take_id)
    if take.line_id != line.line_id or take.take_id in draft.deleted_takes:
        raise NotFound("This take isn't there any more.")
    # The seed of a line with a seed of its own becomes that of the chosen take.
    seed = None if line.seed is None else take.seed
    draft.update_line(line.line_id, chosen=take.take_id, seed=seed)


@_apply_edit.register
def _(edit: ops.Split, draft: DocumentDraft, _: EditLookups) -> None:
    line = _require_speech(draft, edit.line_id)
    units = line.text.encode("utf-16-le")
    head, tail = (
        paragraph(part.decode("utf-16-le", "replace"))
        for part in (units[: 2 * edit.at], units[2 * edit.at :])
    )
    values = {"speaker": line.speaker, "language": line.language, "params": line.params}
    new = parse_line({"line_id": edit.new_line_id, "text": tail, "seed": line.seed, **values})
    draft.update_line(line.line_id, text=head)
    draft.insert(draft.find_index_after(line.line_id), [new])


@_apply_edit.register
def _(edit: ops.Join, draft: DocumentDraft, _: EditLookups) -> None:
    lines = draft.select_in_order(edit.line_ids)
    if not lines:
        return
    first = _require_speech(draft, lines[0].line_id)
    text = paragraph(" ".join(_to_text(line) for line in lines))
    draft.delete(line.line_id for line in lines[1:])
    draft.update_line(first.line_id, text=text)


@_apply_edit.register
def _(edit: ops.DeleteTake, draft: DocumentDraft, outside: EditLookups) -> None:
    take = outside.find_take(edit.take_id)
    if take.take_id in draft.deleted_takes:
        return
    line = draft.lines.get(take.line_id)
    if take.take_id in draft.locked_takes or (line and line.locked and line.chosen == take.take_id):
        raise Conflict("This take is locked. Unlock it first.")
    draft.deleted_takes.append(take.take_id)
    if line is not None and line.chosen == take.take_id:
        draft.update_line(line.line_id, chosen=None)


@_apply_edit.register
def _(edit: ops.LockTake, draft: DocumentDraft, outside: EditLookups) -> None:
    take_id = outside.find_take(edit.take_id).take_id
    others = [one for one in draft.locked_takes if one != take_id]
    draft.locked_takes = [*others, take_id] if edit.locked else others


@_apply_edit.register
def _(edit: ops.AcceptTake, draft: DocumentDraft, outside: EditLookups) -> None:
    take_id = outside.find_take(edit.take_id).take_id
    others = [one for one in draft.accepted_takes if one != take_id]
    draft.accepted_takes = [*others, take_id] if edit.accepted else others


@_apply_edit.register
def _(edit: ops.RenameSpeaker, draft: DocumentDraft, outside: EditLookups) -> None:
    old_name, name = clean_name(edit.from_), clean_name(edit.to)
    speaks_already = not same_name(old_name, name) and draft.has_speaker(name)
    for line in list(draft.lines.values()):
        if line.speaker is not None and same_name(line.speaker, old_name):
            draft.update_line(line.line_id, speaker=name)
    if speaks_already:
        draft.remove_voice(old_name)
    else:
        draft.transfer_voice(old_name, name, outside.find_speaker_id)


@_apply_edit.register
def _(edit: ops.SetSettings, draft: DocumentDraft, _: EditLookups) -> None:
    seed, backend = edit.fields.get("seed"), edit.fields.get("backend")
    if seed is not None:
        check_seed(seed)
    if backend is not None and not isinstance(backend, str):
        raise BadInput("A backend is chosen by its name.")
    if edit.fields.get("tries", 1) not in range(1, MAX_TRIES + 1):
        raise BadInput(f"A doubtful line is spoken 1 to {MAX_TRIES} times.")
    draft.settings = change_settings(draft, edit.fields)


@_apply_edit.register
def _(edit: ops.SetPronunciations, draft: DocumentDraft, _: EditLookups) -> None:
    put = check_pronunciations(one.entry() for one in edit.put)
    for written in edit.remove:
        draft.pronunciations.pop(written, None)
    draft.pronunciations |= {one.written: one for one in put}


@_apply_edit.register
def _(edit: ops.Rename, draft: DocumentDraft, _: EditLookups) -> None:
    draft.name = clean_project_name(edit.name)


@_apply_edit.register
def _(edit: ops.Replace, draft: DocumentDraft, _: EditLookups) -> None:
    find = re.escape(edit.find)
    if edit.whole_word:
        find = rf"(?<!\w){find}(?!\w)"
    pattern = re.compile(find, 0 if edit.match_case else re.IGNORECASE)
    among = draft.order if edit.line_ids is None else edit.line_ids
    for line_id in among:
        line = draft.lines.get(line_id)
        if line is None or line.kind is not LineKind.SPEECH:
            continue
        # Before the text is built, which could take gigabytes.
        found = sum(1 for _ in pattern.finditer(line.text))
        more_chars = found * (len(edit.with_) - len(edit.find))
        check_line_length(len(line.text) + more_chars)
        draft.count_text(more_chars)
        text = pattern.sub(lambda _: edit.with_, line.text)
        if text != line.text:
            draft.update_line(line_id, text=paragraph(text))


def _require_speech(draft: DocumentDraft, line_id: str) -> ProjectLine:
    line = draft.get_line(line_id)
    if line.kind is not LineKind.SPEECH:
        raise BadInput("Only a line of speech can be split or joined.")
    return line


def _to_text(line: ProjectLine) -> str:
    match line.kind:
        case LineKind.SPEECH:
            return line.text
        case LineKind.SILENCE:
            return write_pause(line.duration_s or 0.0)
        case LineKind.AUDIO:
            raise BadInput("Audio can't be joined with speech.")
